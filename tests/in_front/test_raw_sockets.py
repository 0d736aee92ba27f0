"""Clients that are nothing but sockets: many at once, all with the same ids, each with its own answers."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer
from tests.gateway.clients import META

from toolcrib.crib import Crib
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.door import Door
from toolcrib.gateway.http import HttpApp
from toolcrib.gateway.http_connections import HttpServer
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.server import Gateway
from toolcrib.settings import ProfileSettings

CLIENTS, CALLS = 200, 5


@asynccontextmanager
async def served(server: MemoryServer) -> AsyncGenerator[tuple[str, int]]:
    crib = Crib(source := server.source("one"), core=())
    gateway = Gateway(crib, Profiles({"test": ProfileSettings()}))
    async with crib:
        await source.settled.wait()
        changes = ChangeFeed(crib)
        app = HttpApp(gateway, changes, door=Door(tokens=None), anonymous=gateway.profiles.principal("me", "test"))
        server_side, listening = HttpServer(app), socket.create_server(("127.0.0.1", 0))
        await server_side.listen(listening)
        try:
            yield listening.getsockname()[:2]
        finally:
            app.sessions.close()
            changes.close()
            await server_side.close()


class Socket:
    """One client: a connection, and HTTP written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, modern: bool) -> None:
        self.reader, self.writer, self.modern = reader, writer, modern
        self.session = ""

    async def post(self, identifier: int, method: str, params: dict[str, Any], *, name: str = "") -> Any:
        lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
                 "Accept: application/json, text/event-stream"]  # fmt: skip
        if self.modern:
            params = {**params, "_meta": META}
            lines += ["MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}"]
            lines += [f"Mcp-Name: {name}"] if name else []
        elif self.session:
            lines.append(f"Mcp-Session-Id: {self.session}")
        body = orjson.dumps({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})
        self.writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        fields = {key.lower(): value for key, value in pairs}
        answer = orjson.loads(await self.reader.readexactly(int(fields["content-length"])))
        self.session = fields.get("mcp-session-id", self.session)
        assert answer["id"] == identifier
        return answer["result"]


async def live(address: tuple[str, int], number: int) -> list[str]:
    """One client's life; its answers."""
    reader, writer = await asyncio.open_connection(*address)
    client = Socket(reader, writer, modern=number % 2 == 0)
    try:
        if not client.modern:
            info = {"name": "raw", "version": "1"}
            await client.post(
                0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
            )
        answers: list[str] = []
        for identifier in range(CALLS):
            nonce = f"{number}-{identifier}"
            params = {"name": "one__echo", "arguments": {"text": nonce}}
            result = await client.post(identifier, "tools/call", params, name="one__echo")
            answers.append(result["content"][0]["text"])
        return answers
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.timeout(180)
@pytest.mark.requirement("L1", "L3")
@pytest.mark.usefixtures("patient_queue")
async def test_two_hundred_clients_with_the_same_ids_each_get_their_own_answers():
    server = MemoryServer()
    async with served(server) as address:
        answers = await asyncio.gather(*(live(address, number) for number in range(CLIENTS)))
    for number, own in enumerate(answers):
        assert own == [f"{number}-{identifier}" for identifier in range(CALLS)]
    assert server.count("tools/call") == CLIENTS * CALLS
