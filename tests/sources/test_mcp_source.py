import asyncio
import random
from typing import Any

import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.clients import gateway_client

from toolcrib.config import build_settings
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.limits import BREAKER_FAILURES
from toolcrib.settings import Settings
from toolcrib.sources.choosing import Choice
from toolcrib.sources.json_rpc import RpcError
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.servers import open_servers
from toolcrib.sources.withheld import Withheld

FOUR = [tool("read_file"), tool("read_dir"), tool("write_file"), tool("delete_file")]


async def listed(source: McpSource) -> list[str]:
    async with gateway_client(source) as client:
        return await client.names()


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(include=("read_*",)), ["one__read_file", "one__read_dir"]),
        (Choice(exclude=("*_file",)), ["one__read_dir"]),
        (Choice(include=("*_file",), exclude=("delete_*", "write_file")), ["one__read_file"]),
        (Choice(include=()), []),
    ],
)
@pytest.mark.requirement("X17")
async def test_a_server_gives_the_tools_that_its_patterns_choose_by_its_own_names(choice: Choice, expected: list[str]):
    assert await listed(MemoryServer(FOUR).source("one", choice=choice)) == expected


@pytest.mark.requirement("X17", "A2")
async def test_a_tool_that_is_left_out_cannot_be_called_and_its_server_is_not_asked():
    server = MemoryServer(FOUR)
    async with gateway_client(server.source("one", choice=Choice(exclude=("delete_*",)))) as client:
        await client.names()
        answer = await client.call("one__delete_file")
    assert "not available" in answer["error"]["message"]
    assert server.count("tools/call") == 0


@pytest.mark.requirement("X17")
async def test_a_pattern_that_no_tool_meets_is_reported_and_the_others_count():
    source = MemoryServer(FOUR).source("one", choice=Choice(include=("*", "raed_*"), exclude=("delte_*", "write_*")))
    names = await listed(source)
    (toolset,) = source.snapshot()
    assert "one__write_file" not in names
    assert [(item.name, item.reason) for item in toolset.skipped] == [
        ("raed_*", "no tool meets this pattern of `include`"),
        ("delte_*", "no tool meets this pattern of `exclude`"),
    ]


async def test_the_patterns_of_a_server_come_from_its_entry():
    settings: Settings = build_settings(
        {"mcpServers": {"one": {"command": "x", "include": ["read_*"], "exclude": ["read_dir"]}}}
    )
    (source,) = open_servers(settings)
    assert source.options.choice == Choice(include=("read_*",), exclude=("read_dir",))


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("error", "again"), [(None, True), (RpcError(-32603, "too many"), True), (RpcError(-32601, "not here"), False)]
)
async def test_a_modern_server_that_ends_its_stream_of_changes_is_asked_again_if_it_knows_how(
    error: RpcError | None, again: bool
):
    def listen(params: Any) -> Any:
        if error is not None:
            raise error
        return {"resultType": "complete"}

    class Hasty(random.Random):
        def uniform(self, a: float, b: float) -> float:
            return a

    server = MemoryServer(era="modern", subscriptions__listen=listen)
    source = McpSource("one", server.connect, rng=Hasty())
    async with gateway_client(source):
        await source.settled.wait()
        await eventually(lambda: server.count("subscriptions/listen") >= (3 if again else 1))
        for _ in range(20):
            await asyncio.sleep(0)
        # After a few in a row it is left alone for a while.
        assert server.count("subscriptions/listen") <= (BREAKER_FAILURES if again else 1)
        assert source.health.state == "up"


@pytest.mark.requirement("X17", "X27")
async def test_a_server_tells_how_it_is_since_when_and_why_it_last_failed():
    server, now = MemoryServer(), [0.0]
    source = McpSource("one", server.connect, clock=lambda: now[0], rng=random.Random(1))
    assert (source.health.state, source.health.restarts) == ("starting", 0)
    async with gateway_client(source):
        await source.settled.wait()
        now[0] = 100.0
        up = source.health
        assert (up.state, up.since_s, up.reason, up.failure) == ("up", 100.0, None, None)
        server.links[-1].fail("it ended")
        await eventually(lambda: source.health.state == "down")
        now[0] = 130.0
        down = source.health
        assert (down.reason, down.since_s, down.failure_s) == ("it ended", 30.0, 30.0)
        await eventually(lambda: source.health.state == "up")
        again = source.health
        assert (again.restarts, again.failure, again.failure_s, again.since_s) == (1, "it ended", 30.0, 0.0)


def refuse(params: JsonObject) -> JsonObject:
    raise RpcError(-32000, "x" * 295 + "sk-12345678")


@pytest.mark.requirement("X17", "K1")
@pytest.mark.parametrize(
    ("method", "reason"), [("initialize", "it refused the handshake: x"), ("tools/list", "its list cannot be read: x")]
)
async def test_why_a_server_refuses_is_told_without_its_secrets(
    method: str, reason: str, caplog: pytest.LogCaptureFixture
):
    server = MemoryServer()
    server.methods[method] = refuse
    server.withheld = Withheld(["sk-12345678"])
    source = server.source("shy")
    async with Crib(source):
        await source.settled.wait()
        told = str(source.snapshot()[0].unavailable) + str(source.health)
    assert reason in told
    assert "sk-" not in told + caplog.text


@pytest.mark.requirement("X17")
async def test_a_list_that_fails_later_is_logged_without_the_secrets_of_the_server(caplog: pytest.LogCaptureFixture):
    server = MemoryServer(prompts__list=refuse)
    server.withheld = Withheld(["sk-12345678"])
    source = server.source("shy")
    with caplog.at_level("INFO", "toolcrib"):
        async with Crib(source):
            await source.settled.wait()
            server.methods["tools/list"] = refuse
            server.push({"method": "notifications/tools/list_changed"})
            await eventually(lambda: "its changed list cannot be read" in caplog.text)
    assert "prompts/list is not answered: x" in caplog.text
    assert "sk-" not in caplog.text
