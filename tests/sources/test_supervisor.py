import asyncio
import random

import pytest
from tests.fakes.memory_upstream import MemoryLink, MemoryServer, eventually, tool
from tests.sources.test_link import Caller

from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.errors import SourceUnavailable
from toolcrib.execution.dispatch import Era
from toolcrib.sources.link import Link, Listener
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.supervisor import Breaker, Pace


@pytest.mark.requirement("K5", "K9")
def test_pauses_grow_with_jitter_and_a_server_that_keeps_failing_is_left_alone():
    now = 0.0
    breaker = Breaker(clock=lambda: now, rng=random.Random(7))
    pauses: list[float] = []
    for _ in range(5):
        pauses.append(breaker.note_failure())
        now += 1
    assert all(0 <= pause <= 2 ** (number + 1) for number, pause in enumerate(pauses[:4]))
    assert pauses[4] == 60
    assert breaker.is_open
    now += 60
    assert not breaker.is_open
    breaker.note_success()
    assert breaker.note_failure() <= 2


@pytest.mark.requirement("K6")
async def test_restarts_of_all_servers_keep_their_distance(monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    pace = Pace(clock=lambda: 100.0, every_s=1.0)
    await asyncio.gather(*(pace.wait() for _ in range(5)))
    assert slept == [0, 1, 2, 3, 4]


@pytest.mark.requirement("K1", "X17")
async def test_an_error_that_nobody_foresaw_is_a_reason_that_does_not_quote_it_and_the_server_is_started_again(
    caplog: pytest.LogCaptureFixture,
):
    server = MemoryServer()

    async def fail(listener: Listener, era: Era | None) -> Link:
        if not failures:
            return await server.connect(listener, era)
        raise failures.pop()

    failures = [ValueError("Bearer sk-12345678")]
    source = McpSource("one", fail, rng=random.Random(1))
    async with Crib(source):
        await source.settled.wait()
        assert (source.health.state, source.health.reason) == ("down", "it cannot be started: ValueError")
        assert "in fail" in caplog.text
        assert "sk-12345678" not in caplog.text
        await eventually(lambda: source.health.state == "up")


@pytest.mark.requirement("K1", "X17")
async def test_a_list_that_breaks_its_reader_is_a_reason_and_is_read_again(monkeypatch: pytest.MonkeyPatch):
    source = McpSource("one", MemoryServer().connect, rng=random.Random(1))

    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise RecursionError

    monkeypatch.setattr(source, "_freeze", fail)
    async with Crib(source):
        await source.settled.wait()
        assert source.health.reason == "its list cannot be read: RecursionError"
        await eventually(lambda: source.health.state == "up")


@pytest.mark.requirement("K8", "X17")
async def test_half_a_list_is_no_list():
    server = MemoryServer([tool("first")])
    source = server.source("one")
    async with Crib(source):
        await source.settled.wait()
        before = source.snapshot()

        def broken(params: dict[str, object]) -> object:
            return {"tools": [tool("second")], "nextCursor": "x"} if not params.get("cursor") else {"nonsense": 1}

        server.methods["tools/list"] = broken
        server.push({"method": "notifications/tools/list_changed"})
        await eventually(lambda: source.refreshes and server.count("tools/list") >= 3)
        assert source.snapshot() is before


@pytest.mark.requirement("S18", "X17")
async def test_an_unchanged_list_keeps_the_same_objects_and_a_changed_one_the_same_tools():
    server = MemoryServer([tool("first"), tool("second")])
    source = server.source("one")
    async with Crib(source):
        await source.settled.wait()
        before = source.snapshot()
        server.push({"method": "notifications/tools/list_changed"})
        await eventually(lambda: server.count("tools/list") >= 2 and source.refreshes == 1)
        assert source.snapshot() is before
        server.tools = [tool("first"), tool("third")]
        server.push({"method": "notifications/tools/list_changed"})
        await eventually(lambda: source.snapshot() is not before)
        assert source.snapshot()[0].tools[0] is before[0].tools[0]


@pytest.mark.requirement("X17")
async def test_a_server_on_demand_is_stopped_after_its_list_and_started_by_a_call():
    server = MemoryServer()
    source = server.source("one", start="on_demand")
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        await eventually(lambda: not source.is_up)
        assert len(server.links) == 1
        assert source.snapshot()[0].unavailable is None
        assert (await crib.session().call("one__echo", {"text": "hi"})).text == "hi"
        assert len(server.links) == 2


@pytest.mark.requirement("X17")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_idles_is_stopped_whoever_listens_to_its_changes(era: Era):
    async def listen(params: JsonObject) -> JsonObject:
        await asyncio.Event().wait()
        return {}

    server = MemoryServer(era=era, subscriptions__listen=listen)
    source = server.source("one", start="idle_stop", idle_stop_s=0.05)
    async with Crib(source):
        await source.settled.wait()
        await eventually(lambda: not source.is_up)
        assert source.snapshot()[0].unavailable is None
        assert server.count("subscriptions/listen") == (era == "modern")


@pytest.fixture
def may_end(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Servers take until this is set to end."""
    may_end, close = asyncio.Event(), MemoryLink.close

    async def close_slowly(self: MemoryLink) -> None:
        self.fail(self.reason or "it was stopped")
        await may_end.wait()
        await close(self)

    monkeypatch.setattr(MemoryLink, "close", close_slowly)
    return may_end


async def call_while_it_ends(crib: Crib, source: McpSource, may_end: asyncio.Event) -> None:
    await source.settled.wait()
    await eventually(lambda: not source.is_up)
    call = asyncio.create_task(crib.session().call("one__echo", {"text": "hi"}))
    await eventually(source._wanted.is_set)
    may_end.set()
    assert (await call).text == "hi"


@pytest.mark.requirement("X17")
async def test_a_server_that_is_called_while_it_ends_on_purpose_is_looked_after_when_it_is_back(may_end: asyncio.Event):
    server = MemoryServer()
    source = server.source("one", start="on_demand")
    crib = Crib(source)
    async with crib:
        await call_while_it_ends(crib, source, may_end)
        await eventually(lambda: server.count("tools/list") == 2)
        server.links[-1].fail("it crashed")
        await eventually(lambda: source.health.state == "down")
        assert source.health.reason == "it crashed"


@pytest.mark.requirement("X17")
async def test_a_server_that_is_called_while_it_ends_for_idling_is_stopped_when_it_idles_again(may_end: asyncio.Event):
    server = MemoryServer()
    source = server.source("one", start="idle_stop", idle_stop_s=0.05)
    crib = Crib(source)
    async with crib:
        await call_while_it_ends(crib, source, may_end)
        await eventually(lambda: server.count("tools/list") == 2)
        await eventually(lambda: not server.links[1].is_open)
        assert source.health.state == "stopped"


@pytest.mark.requirement("K1", "X17")
async def test_a_call_that_starts_a_server_in_the_moment_of_its_end_keeps_what_it_started():
    async def when_all_is_well(params: JsonObject) -> JsonObject:
        await eventually(lambda: source.health.state == "up")
        return {"content": [{"type": "text", "text": "done"}]}

    server = MemoryServer(tools__call=when_all_is_well)
    source = server.source("one")
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        server.links[-1].fail("it crashed")
        result = await crib.session().call("one__echo", {"text": "hi"})
        assert result.text == "done"
        assert [link.is_open for link in server.links] == [False, True]
        health = source.health
        assert (health.state, health.restarts, health.failure) == ("up", 1, "it crashed")


@pytest.mark.requirement("X17", "H4")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_after_the_end_starts_nothing(era: Era):
    server = MemoryServer(era=era)
    source = server.source("one", era="mirror")
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        session = crib.session()
    assert "it was closed" in (await session.call("one__echo", {"text": "hi"})).text
    with pytest.raises(SourceUnavailable, match="it was closed"):
        await source.relay("tools/call", {"name": "echo"}, Caller("ann"))
    assert [link.is_open for link in server.links] == [False]


@pytest.mark.requirement("K1", "K5")
async def test_nobody_waits_for_a_server_that_is_known_to_be_down():
    server = MemoryServer()
    source = server.source("one")
    async with Crib(source):
        await source.settled.wait()
        lane = source._lane(None)
        lane.note_down("it fell")
        lane._retry_at = float("inf")
        await lane.stop()
        with pytest.raises(SourceUnavailable, match="it fell"):
            await source.relay("tools/call", {"name": "echo"}, None)
