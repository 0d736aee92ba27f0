"""What changed is all that is looked at, and nothing is left of what went away.

Caches are bounded, and none keeps the toolset alive that it was derived from.
"""

import gc
import weakref
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tests.factories import crib, definition, settings

from toolcrib.definitions import Call, Result, Toolset, text_result
from toolcrib.intake.freezing import freeze_tool
from toolcrib.limits import CACHE_CATALOGS
from toolcrib.session import Session
from toolcrib.sources.base import build_toolset, freeze_toolset
from toolcrib.sources.listed import ListedToolsets


def test_a_toolset_that_changed_often_enough_is_gone_although_it_was_assembled_listed_and_searched() -> None:
    def offered(number: int) -> Toolset:
        return freeze_toolset("mcp-door", [definition("open_door", f"Open door {number}.")], origin="mcp")

    first = offered(0)
    ghost = weakref.ref(first)
    subject = crib(ListedToolsets("listed", (first,)), settings=settings(enabled="on", retrieval="lexical"))
    del first
    session = subject.session()
    for number in range(1, CACHE_CATALOGS + 3):
        session.assemble()
        assert session.search("open door").names == ("door__open_door",)
        session.begin_turn()
        subject.remove("listed")
        subject.add(ListedToolsets("listed", (offered(number),)))
    session.assemble()
    gc.collect()
    assert ghost() is None


class Meddling:
    """A source that does something while it is asked, as another thread might."""

    name = "meddling"

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def snapshot(self) -> tuple[Toolset, ...]:
        self._act()
        return ()

    def watch(self, changed: Callable[[], None]) -> bool:
        return False

    async def call(self, call: Call, context: Any) -> Result:
        return text_result("")

    async def close(self) -> None:
        pass


def test_a_source_that_goes_while_the_sources_are_asked_is_gone_at_the_next_look() -> None:
    going: list[str] = []
    door = freeze_toolset("mcp-door", [definition("open_door")], origin="mcp")
    subject = crib(Meddling(lambda: [subject.remove(going.pop()) for _ in going[:]]), ListedToolsets("door", (door,)))
    assert [toolset.name for toolset in subject.stock.look().toolsets] == ["mcp-door"]
    going.append("door")
    subject.stock.look()
    assert not subject.stock.look().toolsets


class Changing:
    """A source whose toolsets are replaced at will."""

    name = "changing"

    def __init__(self) -> None:
        self._toolsets: tuple[Toolset, ...] = ()
        self._changed: Callable[[], None] = lambda: None

    def put(self, toolsets: tuple[Toolset, ...]) -> None:
        self._toolsets = toolsets
        self._changed()

    def snapshot(self) -> tuple[Toolset, ...]:
        return self._toolsets

    def watch(self, changed: Callable[[], None]) -> bool:
        self._changed = changed
        return True

    async def call(self, call: Call, context: object) -> Result:
        return text_result(call.tool.name)

    async def close(self) -> None:
        return None


def offered(name: str, number: int, *, prefix: str) -> Toolset:
    words = ("opens a door", "closes the window of a house", "opens a letter")[number % 3]
    raws = [definition(f"tool_{place}_{name}", f"{words} {place}.") for place in range(number % 3 + 1)]
    if not prefix:  # names that another toolset may have taken
        raws += [definition("shared", words), definition("cat__own", words)][: number + 1]
    core = [definition("read_file", "Reads a file.")] if number == 3 else []
    tools = [freeze_tool(raw, toolset=name, origin="mcp", prefix=prefix) for raw in raws]
    tools += [freeze_tool(raw, toolset=name, origin="plugin") for raw in core]
    return build_toolset(name, tools, origin="mcp", prefix=prefix, unavailable="It is away." if number == 4 else None)


POOL = {
    (name, number): offered(name, number, prefix="" if name in {"bare", "plain"} else name)
    for name in ("ant", "bare", "bee", "cat", "dog", "plain")
    for number in range(5)
}
OFFERS = st.lists(st.sampled_from(sorted(POOL)), unique_by=lambda each: each[0], max_size=6).map(
    lambda keys: tuple(POOL[key] for key in keys)
)


def account(session: Session) -> list[object]:
    """Everything that a session can say of its tools."""
    turn, catalog = session.assemble(), session.catalog
    answers: list[object] = []
    for query in ("open a door", "close window", "tool_0_cat"):
        session.begin_turn()
        answers.append(session.search(query).body)
    names = [tool.name for tool in catalog]
    found = [tool.name if (tool := catalog.get(name)) else None for name in (*names, "cat__tool_1_cat", "nothing")]
    owners = [type(session.require_granted(tool)) for tool in catalog]
    counts = [catalog.size, catalog.chars, catalog.mark, dict(catalog.unavailable)]
    return [turn.encoded, turn.assembly.tokens, answers, names, found, owners, counts]


@profile(max_examples=150, deadline=None)
@given(st.lists(OFFERS, min_size=2, max_size=6))
def test_whatever_changed_before_a_crib_is_as_one_that_saw_nothing_of_it(passes: list[tuple[Toolset, ...]]) -> None:
    chosen = settings(enabled="on", retrieval="lexical", listing_max_tokens=40)
    source = Changing()
    old = crib(source, settings=chosen)
    scopes: list[dict[str, Any]] = [{}, {"tools": ["*cat*", "*dog*", "*0*"]}, {"read_only": True}]
    for toolsets in passes:
        source.put(toolsets)
        fresh_source = Changing()
        fresh_source.put(toolsets)
        fresh = crib(fresh_source, settings=chosen)
        for scope in scopes:
            assert account(old.session(**scope)) == account(fresh.session(**scope))
        assert [skipped.name for skipped in old.skipped] == [skipped.name for skipped in fresh.skipped]


def dealt(first: Changing, second: Changing, *toolsets: tuple[Toolset, ...]) -> None:
    first.put(toolsets[0])
    second.put(toolsets[1])


def two_sources() -> tuple[Changing, Changing]:
    first, second = Changing(), Changing()
    first.name, second.name = "first", "second"
    return first, second


def test_a_toolset_that_moves_to_another_source_is_run_by_that_one() -> None:
    first, second = two_sources()
    subject = crib(first, second, settings=settings(enabled="on", retrieval="lexical"))
    toolset = POOL["ant", 0]
    for held in (((), (toolset,)), ((toolset,), ()), ((), (toolset,))):
        dealt(first, second, *held)
        tool = next(iter(subject.session().catalog))
        assert subject.runner_of(tool) is (first if held[0] else second)


def test_a_toolset_that_two_sources_had_is_run_by_the_one_that_is_left() -> None:
    first, second = two_sources()
    subject = crib(first, second, settings=settings(enabled="on", retrieval="lexical"))
    toolset = POOL["ant", 0]
    dealt(first, second, (toolset,), (toolset,))
    assert subject.session().catalog.size
    dealt(first, second, (), (toolset,))
    assert subject.runner_of(next(iter(subject.session().catalog))) is second
    dealt(first, second, (toolset,), (toolset,))
    assert subject.session().catalog.size
    subject.stock.remove("first")
    assert subject.runner_of(next(iter(subject.session().catalog))) is second
