"""However and whenever serving ends, it ends."""

import asyncio
import contextlib
import os
import random
import signal
import socket
from pathlib import Path

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer
from tests.gateway.clients import META

from toolcrib.crib import Crib
from toolcrib.errors import RequiredToolsMissing
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.http import serve_http
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.run import Options, run_gateway
from toolcrib.gateway.server import Gateway
from toolcrib.settings import Settings

TIMES = 60


class Door:
    """A port that is ours from the start, and open once the gateway listens: nobody else can come in between."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.was_opened = False

    def open(self, *address: object, **options: object) -> socket.socket:
        """In the place of `socket.create_server`."""
        self.was_opened = True
        self.socket.listen()
        return self.socket

    def is_closed(self) -> bool:
        """Whether the gateway let go of it, if it ever had it."""
        if not self.was_opened:
            self.socket.close()
        return self.socket.fileno() == -1


async def hang(params: object) -> None:
    await asyncio.Event().wait()


async def knock(port: int, rng: random.Random) -> None:
    """A client that comes, says nothing, a part, a whole request that is never answered, and may not read."""
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        params = {"name": "one__echo", "arguments": {}, "_meta": META}
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        head = (
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: */*\r\n"
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: one__echo\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        message = head.encode() + body
        writer.write(message[: rng.choice((0, 30, len(head) + 5, len(message)))])
        try:
            await asyncio.Event().wait()
        finally:
            writer.close()


@pytest.mark.timeout(180)
@pytest.mark.requirement("K12")
async def test_serving_ends_whenever_it_is_cancelled_or_told_to_stop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.http_connections.DRAIN_S", 0.05)
    rng = random.Random(7)
    for number in range(TIMES):
        crib = Crib(MemoryServer(tools__call=hang).source("one"), core=())
        gateway, stop = Gateway(crib, Profiles({})), asyncio.Event()
        async with crib:
            changes, door = ChangeFeed(crib), Door()
            monkeypatch.setattr("toolcrib.gateway.listening.socket.create_server", door.open)
            options = Options(http=f"127.0.0.1:{door.port}", allow_unauthenticated=True)
            serving = asyncio.create_task(serve_http(gateway, changes, options, Settings(), stop))
            clients = [asyncio.create_task(knock(door.port, rng)) for _ in range(rng.randrange(6))]
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)
            await asyncio.sleep(rng.choice((0, 0.002, 0.02)))
            if number % 2:
                stop.set()
            else:
                serving.cancel()
            done, _ = await asyncio.wait({serving}, timeout=60)
            assert done, f"it did not end (round {number})"
            for client in clients:
                client.cancel()
            await asyncio.gather(serving, *clients, return_exceptions=True)
            assert door.is_closed()


async def test_a_gateway_that_is_told_to_end_while_it_waits_for_required_tools_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = tmp_path / "toolcrib.yaml"
    config.write_text("profiles: {night: {required_tools: [send]}}\n", encoding="utf-8")

    async def wait_settled(self: Gateway) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await hang(None)

    monkeypatch.setattr(Gateway, "wait_settled", wait_settled)
    monkeypatch.setattr("toolcrib.gateway.run._spare_the_collector", lambda: None)
    await asyncio.wait_for(run_gateway(Options(config=config, profile="night")), 10)


async def test_a_gateway_without_its_required_tools_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.run._spare_the_collector", lambda: None)
    config = tmp_path / "toolcrib.yaml"
    config.write_text("profiles: {night: {required_tools: [send]}}\n", encoding="utf-8")
    with pytest.raises(RequiredToolsMissing, match="send"):
        await run_gateway(Options(config=config, profile="night"))
