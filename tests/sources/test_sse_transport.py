"""The older transport, against a server on the official SDK's own implementation of it, over real HTTP."""

import asyncio
import gc
import warnings
from collections.abc import Iterator
from typing import Literal

import pytest
from mcp.server.mcpserver import Context, MCPServer
from starlette.applications import Starlette
from tests.fakes.web import serve
from tests.gateway.clients import gateway_client

from toolcrib.crib import Crib
from toolcrib.settings import ServerSettings
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.processes import Guard
from toolcrib.sources.servers import open_server
from toolcrib.sources.supervisor import Pace


def application(base: str) -> Starlette:
    server = MCPServer("old")

    @server.tool()
    def echo(text: str) -> str:
        """Repeats a text."""
        return text

    @server.tool()
    async def count(ctx: Context) -> str:
        """Counts to three, and says so."""
        for number in (1, 2, 3):
            await ctx.report_progress(number, 3)
        return "three"

    return server.sse_app()


@pytest.fixture(autouse=True)
def _streams_of_the_sdk() -> Iterator[None]:
    """The SDK's server leaves streams open when its listener ends; they are collected here, and not in another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def source(base: str, era: Literal["auto", "legacy"] = "auto") -> McpSource:
    entry = ServerSettings(url=f"{base}/sse", type="sse", era=era)
    return open_server("old", entry, guard=Guard(), pace=Pace(clock=lambda: 0.0, every_s=0))


@pytest.mark.parametrize(("era", "spoken"), [("legacy", "legacy"), ("auto", "modern")])
@pytest.mark.requirement("X17")
async def test_a_server_on_the_older_transport_is_listed_and_called(era: Literal["auto", "legacy"], spoken: str):
    async with serve(application) as base:
        crib = Crib(upstream := source(base, era))
        async with crib:
            await upstream.settled.wait()
            assert upstream.snapshot()[0].unavailable is None
            answers = await asyncio.gather(
                *(crib.session().call("old__echo", {"text": str(number)}) for number in range(20))
            )
            assert [answer.text for answer in answers] == [str(number) for number in range(20)]
            assert upstream.peer is not None
            assert upstream.peer.era == spoken


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.requirement("X17", "X18")
async def test_clients_of_both_eras_reach_it_and_hear_its_progress(modern: bool):
    async with serve(application) as base, gateway_client(source(base), modern=modern) as client:
        assert await client.names() == ["old__echo", "old__count"]
        answer = await client.call("old__count", _meta={"progressToken": "mine"})
        progress = [
            message["params"] for message in client.messages if message.get("method") == "notifications/progress"
        ]
    assert answer["result"]["content"][0]["text"] == "three"
    assert [(item["progressToken"], item["progress"]) for item in progress] == [("mine", 1), ("mine", 2), ("mine", 3)]


@pytest.mark.requirement("X17", "K1")
async def test_a_server_that_goes_away_is_marked_and_its_tools_stay():
    async with serve(application) as base:
        crib = Crib(upstream := source(base))
        await crib.start()
        await upstream.settled.wait()
    while upstream.snapshot()[0].unavailable is None:  # noqa: ASYNC110 - the event is the transport's
        await asyncio.sleep(0.01)
    assert [tool.leaf for tool in upstream.snapshot()[0].tools] == ["echo", "count"]
    await crib.close()
