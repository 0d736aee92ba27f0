"""Errands: calls without a task are answered, bounded, cancelled and told of like those with one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.clients import RawClient, gateway_client

from toolcrib.activity import Event
from toolcrib.errors import SourceUnavailable
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.execution.executor import Executor
from toolcrib.gateway.server import Gateway
from toolcrib.scope import Scope
from toolcrib.settings import LimitSettings, ProfileSettings, Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.json_rpc import RpcError

HI = {"name": "one__echo", "arguments": {"text": "hi"}}


def bridging(**limits: Any) -> Settings:
    search = ToolSearchSettings(enabled="on", retrieval="lexical")
    return Settings(tools=ToolsSettings(tool_search=search), limits=LimitSettings(**limits))


@asynccontextmanager
async def asking(server: MemoryServer, settings: Settings | None = None, **more: Any) -> AsyncGenerator[RawClient]:
    async with gateway_client(server.source("one"), settings=settings or bridging(), **more) as client:
        await client.names()
        yield client


def told(client: RawClient) -> list[tuple[Any, ...]]:
    """What the feed says of calls, but for their names and times."""

    def facts(event: Event) -> tuple[Any, ...]:
        said = event.as_json()
        return tuple((key, value) for key, value in said.items() if key not in {"call_id", "at", "duration_ms"})

    return [facts(event) for event in client.crib.activity.events if event.call_id]


def refuse(params: dict[str, Any]) -> Any:
    raise RpcError(-32007, "not today", {"why": "rain"})


ANSWERS: dict[str, Any] = {
    "a result": lambda params: {"content": [{"type": "text", "text": "hi"}]},
    "a failure": lambda params: {"content": [{"type": "text", "text": "no"}], "isError": True},
    "a long result": lambda params: {"content": [{"type": "text", "text": "x" * 5_000}]},
    "many blocks": lambda params: {"content": [{"type": "text", "text": "x"}] * 150},
    "no object": lambda params: [1, 2],
    "a refusal": refuse,
}


@pytest.mark.requirement("X13", "X15")
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_call_without_a_task_has_the_answer_and_the_feed_of_one_with_a_task(
    kind: str, modern: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def outcome() -> tuple[Any, ...]:
        server = MemoryServer(tools__call=ANSWERS[kind])
        async with asking(server, bridging(result_max_chars=1_000), modern=modern) as client:
            answers = [await client.call("tool_call", HI), await client.call("tool_call", HI)]
            return answers, told(client), [message.get("params") for message in server.received]

    swift = await outcome()
    monkeypatch.setattr(Gateway, "begin", lambda *_: None)
    assert await outcome() == swift


async def test_no_task_is_made_for_the_usual_call() -> None:
    release = asyncio.Event()
    server = MemoryServer(tools__call=lambda params: release.wait())
    async with asking(server) as client:
        before = len(asyncio.all_tasks())
        client.send({"id": 7, "method": "tools/call", "params": {"name": "tool_call", "arguments": HI}})
        assert server.count("tools/call") == 1
        assert len(asyncio.all_tasks()) == before + 1  # the server's own
        release.set()
        await client.next(id=7)


@pytest.mark.requirement("K3")
async def test_a_deadline_ends_a_call_tells_the_server_and_gives_the_place_to_the_next() -> None:
    waits = [True]

    async def work(params: dict[str, Any]) -> Any:
        if waits.pop() if waits else False:
            await asyncio.Event().wait()
        return {"content": []}

    server = MemoryServer(tools__call=work)
    async with asking(server, bridging(call_deadline_s=0.02, concurrency_per_session=1)) as client:
        for number in (1, 2):
            client.send({"id": f"c{number}", "method": "tools/call", "params": {"name": "tool_call", "arguments": HI}})
        late = await client.next(id="c1")
        assert "did not answer within" in str(late) and late["result"]["isError"]
        assert (await client.next(id="c2"))["result"] == {"content": []}
        assert server.count("notifications/cancelled") == 1
        assert client.server._running == {}


async def test_whoever_waits_too_long_in_line_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.execution.dispatch.QUEUE_WAIT_S", 0.02)
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    async with asking(server, bridging(concurrency_per_session=1)) as client:
        for number in (1, 2):
            client.send({"id": f"c{number}", "method": "tools/call", "params": {"name": "tool_call", "arguments": HI}})
        away = await client.next(id="c2")
        assert "Too many calls" in str(away)
        assert server.count("tools/call") == 1


@pytest.mark.usefixtures("patient_queue")
async def test_places_go_to_whoever_came_first_and_who_was_cancelled_in_line_loses_none() -> None:
    release, seen = asyncio.Event(), list[str]()

    async def work(params: dict[str, Any]) -> Any:
        seen.append(params["arguments"]["text"])
        await release.wait()
        return {"content": []}

    server = MemoryServer(tools__call=work)
    async with asking(server, bridging(concurrency_per_session=2)) as client:
        for number in range(6):
            arguments = {"name": "one__echo", "arguments": {"text": str(number)}}
            client.send(
                {"id": number + 100, "method": "tools/call", "params": {"name": "tool_call", "arguments": arguments}}
            )
        client.send({"method": "notifications/cancelled", "params": {"requestId": 103}})
        await eventually(lambda: len(seen) == 2)
        release.set()
        for number in (100, 101, 102, 104, 105):
            await client.next(id=number)
        assert seen == ["0", "1", "2", "4", "5"]
        assert server.count("notifications/cancelled") == 0
        assert client.server._gateway.in_flight == 0
        cancelled = [event for event in client.crib.activity.events if event.reason == "cancelled"]
        assert [(event.stage, event.outcome) for event in cancelled] == [("dispatch", "failed")]


async def test_a_server_that_ends_fails_its_calls_and_the_next_one_starts_it_again() -> None:
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    async with asking(server) as client:
        client.send({"id": "a", "method": "tools/call", "params": {"name": "tool_call", "arguments": HI}})
        await eventually(lambda: server.count("tools/call"))
        server.links[-1].fail("it went away")
        answer = await client.next(id="a")
        assert "it went away" in str(answer) and answer["result"]["isError"]
        assert not server.links[-1].waiters


async def test_who_comes_later_does_not_overtake_a_request_that_waits_for_its_task() -> None:
    server = MemoryServer()
    async with asking(server) as client:
        repaired = {"name": "one__echo", "arguments": orjson.dumps({"text": "first"}).decode()}
        second = {"name": "one__echo", "arguments": {"text": "second"}}
        client.send({"id": "x", "method": "tools/list", "params": {}})
        client.send({"id": "a", "method": "tools/call", "params": {"name": "tool_call", "arguments": repaired}})
        client.send({"id": "b", "method": "tools/call", "params": {"name": "tool_call", "arguments": second}})
        await client.next(id="b")
        calls = [message for message in server.received if message.get("method") == "tools/call"]
        assert [call["params"]["arguments"]["text"] for call in calls] == ["first", "second"]


@pytest.mark.requirement("S20")
async def test_a_tool_that_went_away_or_changed_is_not_called_as_it_was() -> None:
    server = MemoryServer()
    async with asking(server) as client:
        await client.call("tool_call", HI)
        server.tools = [tool("other")]
        server.push({"method": "notifications/tools/list_changed"})
        await eventually(lambda: client.crib.inventory.toolsets[0].tools[0].name == "one__other")
        answer = await client.call("tool_call", HI)
        assert "not available" in str(answer)
        assert server.count("tools/call") == 1


async def test_arguments_that_do_not_fit_are_refused_or_repaired_as_ever() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    server = MemoryServer([tool("echo", inputSchema=schema)])
    async with asking(server) as client:
        await client.call("tool_call", {"name": "one__echo", "arguments": {"n": 1}})
        wrong = await client.call("tool_call", {"name": "one__echo", "arguments": {"n": []}})
        assert wrong["result"]["isError"] and server.count("tools/call") == 1
        await client.call("tool_call", {"name": "one__echo", "arguments": {"n": "2"}})
        assert server.received[-1]["params"]["arguments"] == {"n": 2}


@pytest.mark.requirement("S21")
async def test_what_one_session_found_out_is_good_for_another_with_the_same_scope_alone() -> None:
    server = MemoryServer([tool("echo"), tool("other")])
    settings = bridging()
    async with asking(server, settings, profile=ProfileSettings(tools=("one__echo",))) as client:
        await client.call("tool_call", HI)
        principal = client.server._principal
        rules = ApprovalPolicy(default="ask")
        first = client.crib.open_session(scope=principal.scope, window=None, required=(), principal="a")
        second = client.crib.open_session(scope=principal.scope, window=None, required=(), principal="b")
        wider = client.crib.open_session(scope=Scope(), window=None, required=(), principal="c")
        stricter = client.crib.open_session(
            scope=principal.scope, window=None, required=(), principal="d", policy=rules
        )
        assert first._paths is second._paths
        assert len({id(session._paths) for session in (first, wider, stricter)}) == 3


async def test_a_fault_of_our_own_before_a_call_leaves_it_to_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("not foreseen")

    server = MemoryServer()
    async with asking(server) as client:
        monkeypatch.setattr(client.crib.executor, "begin", broken)
        assert (await client.call("tool_call", HI))["result"]["content"] == [{"type": "text", "text": "hi"}]
        assert client.server._gateway.in_flight == 0


async def test_a_fault_of_our_own_after_a_call_is_answered_as_one_and_costs_nobody_else_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("not foreseen")

    server = MemoryServer()
    async with asking(server) as client:
        monkeypatch.setattr(client.crib.executor, "note_answer", broken)
        failed = await client.call("tool_call", HI)
        assert failed["error"]["message"] == "The gateway failed; its log says why."
        monkeypatch.undo()
        assert (await client.call("tool_call", HI))["result"]["content"] == [{"type": "text", "text": "hi"}]
        assert client.server._gateway.in_flight == 0
        assert client.server._running == {}


def deaf(server: MemoryServer) -> None:
    """Its input is closed: nothing can be sent to it any more, though its output is open."""

    def send(*_: object) -> None:
        raise SourceUnavailable("its input is closed")

    server.links[-1].send = send


@pytest.mark.requirement("K3")
async def test_a_server_that_cannot_be_told_holds_nobody_up() -> None:
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    async with asking(server, bridging(call_deadline_s=0.02)) as client:
        for number in (1, 2):
            client.send({"id": f"c{number}", "method": "tools/call", "params": {"name": "tool_call", "arguments": HI}})
        deaf(server)
        client.send({"method": "notifications/cancelled", "params": {"requestId": "c1"}})
        assert "did not answer within" in str(await client.next(id="c2"))
        assert client.server._running == {}
        assert client.crib.dispatcher.everybody.free == bridging().limits.concurrency_global


async def test_an_error_that_cannot_be_written_is_answered_without_its_data() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]

    def refuse_deeply(params: dict[str, Any]) -> Any:
        raise RpcError(-32007, "not today", deep)

    async with asking(MemoryServer(tools__call=refuse_deeply)) as client:
        assert (await client.call("tool_call", HI))["error"] == {"code": -32007, "message": "not today"}


@pytest.mark.parametrize("spelling", [b"hi", b"\\u0068i", b"h\\u0069"])
async def test_the_way_of_a_call_is_found_once_however_the_call_is_spelt(
    spelling: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    path = Executor.path

    def counted(self: Executor, tool: Any, runner: Any, policy: Any) -> Any:
        found.append(tool.name)
        return path(self, tool, runner, policy)

    monkeypatch.setattr(Executor, "path", counted)
    async with asking(MemoryServer()) as client:
        await client.call("tool_call", HI)
        for number in (7, 8):
            call = {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": "tool_call", "arguments": HI},
            }
            client.server.feed(orjson.dumps(call).replace(b'"hi"', b'"%b"' % spelling) + b"\n")
            assert "result" in await client.next(id=number)
    assert found == ["one__echo"]


@pytest.mark.parametrize("result", [b"{}", b"{ }", b"{\t\r }", b'{ "content":[]}'])
async def test_a_result_with_blanks_in_it_stays_json_for_a_modern_client(result: bytes) -> None:
    async with asking(MemoryServer(tools__call=lambda params: orjson.Fragment(result)), modern=True) as client:
        answer = await asyncio.wait_for(client.call("tool_call", HI), 5)
        assert answer["result"] == {"resultType": "complete", **orjson.loads(result)}


@pytest.mark.requirement("E1")
async def test_a_call_that_is_refused_is_answered_however_large_its_id_is() -> None:
    async with asking(MemoryServer()) as client:
        client.server.feed(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":""}}\n' % (10**30))
        await eventually(lambda: not client.server._running)
        assert [message["id"] for message in client.messages] == [1e30]


async def test_a_call_that_left_the_line_keeps_none_of_its_arguments() -> None:
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    async with asking(server, bridging(concurrency_per_session=1)) as client:
        for number in (1, 2):
            client.send({"id": f"c{number}", "method": "tools/call", "params": {"name": "tool_call", "arguments": HI}})
        client.send({"method": "notifications/cancelled", "params": {"requestId": "c2"}})
        (turn,) = client.server._client.session.places._line
        assert turn.errand is None


async def test_a_policy_that_was_replaced_counts_from_the_next_call_on() -> None:
    async with asking(MemoryServer()) as client:
        assert not (await client.call("tool_call", HI))["result"].get("isError")
        session = client.server._client.session
        session.policy = ApprovalPolicy(default="deny")
        assert (await client.call("tool_call", HI))["result"]["isError"]
        session.policy = None
        assert not (await client.call("tool_call", HI))["result"].get("isError")
        client.crib.approvals.policy = ApprovalPolicy(default="deny")
        assert (await client.call("tool_call", HI))["result"]["isError"]
