"""Clients of the gateway for tests: raw messages in, raw messages out."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from toolcrib.crib import Crib
from toolcrib.gateway.approvals import ClientApprover
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.desk import ApprovalDesk
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.server import Gateway
from toolcrib.gateway.stdio import StdioServer
from toolcrib.settings import ProfileSettings, Settings
from toolcrib.sources.mcp_source import McpSource

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NO_DESK = Path(os.devnull, "desk")
"""No directory can be made there: nobody can be asked at the command line."""


class RawClient:
    """Speaks to a gateway in memory."""

    crib: Crib
    changes: ChangeFeed

    def __init__(self, server: StdioServer, *, modern: bool, capabilities: dict[str, Any] | None = None) -> None:
        self.server = server
        self.modern = modern
        self.capabilities = capabilities or {}
        self.messages: list[dict[str, Any]] = []
        self.ids = count(1)
        self.news = asyncio.Event()

    def take(self, data: bytes) -> None:
        self.messages.extend(orjson.loads(line) for line in data.splitlines())
        self.news.set()

    def send(self, message: dict[str, Any]) -> None:
        self.server.feed(orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")

    async def next(self, **wanted: Any) -> dict[str, Any]:
        """The first message that says this."""
        while True:
            for message in self.messages:
                if all(message.get(key) == value for key, value in wanted.items()):
                    self.messages.remove(message)
                    return message
            self.news.clear()
            await self.news.wait()

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer to a request."""
        if self.modern:
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": self.capabilities}
            params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
        identifier = next(self.ids)
        self.send({"id": identifier, "method": method, "params": params})
        return await self.next(id=identifier)

    async def call(self, tool: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
        return await self.ask("tools/call", name=tool, arguments=arguments or {}, **more)

    async def names(self) -> list[str]:
        return [tool["name"] for tool in (await self.ask("tools/list"))["result"]["tools"]]


@asynccontextmanager
async def gateway_client(
    *sources: McpSource,
    modern: bool = False,
    capabilities: dict[str, Any] | None = None,
    profile: ProfileSettings | None = None,
    settings: Settings | None = None,
    lock: Path | None = None,
    desk: Path = NO_DESK,
    clock: Callable[[], float] = time.time,
) -> AsyncGenerator[RawClient]:
    """A client of a gateway over these sources; `clock` is that of approvals."""
    waiting = ApprovalDesk(desk, ttl_s=(settings or Settings()).approvals.ttl_s, clock=clock)
    approver = ClientApprover(desk=waiting, clock=clock)
    crib = Crib(*sources, settings=settings, core=(), approver=approver, lock=lock)
    gateway = Gateway(crib, Profiles({"test": profile or ProfileSettings()}))
    async with crib:
        changes = ChangeFeed(crib)
        principal = gateway.profiles.principal("tester", "test")
        box: list[RawClient] = []
        server = StdioServer(gateway, principal, lambda data: box[0].take(data), changes)
        client = RawClient(server, modern=modern, capabilities=capabilities)
        box.append(client)
        client.crib, client.changes = crib, changes
        if not modern:
            info = {"name": "t", "version": "1"}
            await client.ask(
                "initialize", protocolVersion="2025-11-25", capabilities=client.capabilities, clientInfo=info
            )
        try:
            yield client
        finally:
            await server.close()
            changes.close()
