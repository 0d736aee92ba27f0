"""An index is made beside the event loop, once for all who wait for it."""

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from tests.factories import crib, definition, model_call

from toolcrib.definitions import Call, Result, text_result
from toolcrib.retrieval.base import Document, Index
from toolcrib.retrieval.lexical import LexicalIndex, LexicalRetriever
from toolcrib.sources.live import LiveDefinitions


async def ask(session: Any, name: str, arguments: Any) -> dict[str, Any]:
    (answer,) = await session.execute([model_call(name, arguments)])
    return json.loads(answer.result.text)


async def _answer_ok(call: Call) -> Result:
    return text_result("ok")


class _Slow:
    """A retriever whose index is made only once somebody else had a turn."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.made: list[int] = []
        """Documents of each index."""
        self.makers: list[int] = []
        """Threads that made them."""
        self._retriever = LexicalRetriever()

    def index(self, documents: Sequence[Document]) -> Index:
        assert self.may.wait(5), "the event loop waited for the index"
        self.made.append(len(documents))
        self.makers.append(threading.get_ident())
        return self._retriever.index(documents)


@pytest.mark.requirement("X1")
async def test_the_event_loop_goes_on_while_the_first_searches_wait_for_one_index() -> None:
    slow, before = _Slow(), set(threading.enumerate())
    holder = crib(retriever=lambda: slow)
    searches = [
        asyncio.create_task(ask(holder.session(), "tool_search", {"query": "create an issue"})) for _ in range(20)
    ]
    await asyncio.sleep(0)
    assert len(set(threading.enumerate()) - before) == 1
    slow.may.set()
    for body in await asyncio.gather(*searches):
        assert body["matches"][0]["name"] == "github__create_issue"
    assert slow.made == [6]


async def test_a_search_that_is_given_up_stops_no_other_and_hides_no_change() -> None:
    slow, listed = _Slow(), [definition("open_door", "Open the door.")]
    holder = crib(LiveDefinitions("live", lambda: listed, _answer_ok), retriever=lambda: slow)
    session, other = holder.session(), holder.session()
    session.assemble()
    impatient = asyncio.create_task(ask(session, "tool_search", {"query": "open the door"}))
    patient = asyncio.create_task(ask(other, "tool_search", {"query": "open the door"}))
    await asyncio.sleep(0)
    impatient.cancel()
    slow.may.set()
    assert [match["name"] for match in (await patient)["matches"]] == ["open_door"]
    listed.append(definition("close_window", "Close the window."))
    body = await ask(session, "tool_search", {"query": "close the window"})
    assert body["matches"][0]["name"] == "close_window"


async def test_a_tool_that_comes_while_the_index_is_made_is_found_and_its_index_is_made_beside_the_loop_too() -> None:
    slow, listed = _Slow(), [definition("open_door", "Open the door.")]
    holder = crib(LiveDefinitions("live", lambda: listed, _answer_ok), retriever=lambda: slow)
    search = asyncio.create_task(ask(holder.session(), "tool_search", {"query": "close the window"}))
    await asyncio.sleep(0)
    listed.append(definition("close_window", "Close the window."))
    slow.may.set()
    assert (await search)["matches"][0]["name"] == "close_window"
    assert slow.made == [1, 2]
    assert threading.get_ident() not in slow.makers


async def test_searches_that_run_at_once_reach_guard_and_feed_in_their_order() -> None:
    slow = _Slow()
    holder = crib(retriever=lambda: slow)
    calls = [model_call("tool_search", {"query": f"need {n}"}, f"call-{n}") for n in range(8)]
    running = asyncio.create_task(holder.session().execute(calls, mode="parallel"))
    await asyncio.sleep(0)
    slow.may.set()
    await running
    searched = [event.call_id for event in holder.activity.events if event.stage == "search"]
    assert searched == [f"call-{n}" for n in range(8)]


async def test_the_time_of_a_first_search_is_told_with_its_index() -> None:
    now = [1.0]

    class Hour(LexicalRetriever):
        def index(self, documents: Sequence[Document]) -> LexicalIndex:
            now[0] += 3_600.0
            return super().index(documents)

    holder = crib(retriever=Hour, clock=lambda: now[0])
    await ask(holder.session(), "tool_search", {"query": "create an issue"})
    (searched,) = [event for event in holder.activity.events if event.stage == "search"]
    assert searched.duration_ms == 3_600_000.0
