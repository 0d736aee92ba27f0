"""An MCP server in the same process: what a gateway test needs of one, without pipes, ports or waiting."""

import asyncio
import inspect
import random
from collections.abc import Callable
from itertools import count
from typing import Any

import orjson

from toolcrib.execution.dispatch import Era
from toolcrib.sources.json_rpc import METHOD_NOT_FOUND, RpcError, error_line, result_line
from toolcrib.sources.link import Link, Listener, Waiter
from toolcrib.sources.mcp_source import McpOptions, McpSource
from toolcrib.sources.withheld import NOTHING, Withheld

Method = Callable[..., Any]


class _Patient(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return b


class MemoryServer:
    """Answers requests with functions; remembers everything that it was sent."""

    def __init__(self, tools: list[dict[str, Any]] | None = None, *, era: Era = "legacy", **methods: Method) -> None:
        self.tools = tools if tools is not None else [tool("echo")]
        self.era = era
        self.received: list[dict[str, Any]] = []
        self.links: list[MemoryLink] = []
        self.withheld: Withheld = NOTHING
        self.methods: dict[str, Method] = {
            "tools/list": lambda params: {"tools": self.tools},
            "tools/call": _echo,
            **{name.replace("__", "/"): method for name, method in methods.items()},
        }
        capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}, "logging": {}}
        if era == "modern":
            self.methods["server/discover"] = lambda params: {
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete",
            }  # fmt: skip
        else:
            self.methods["initialize"] = lambda params: {
                "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "x"},
            }  # fmt: skip

    def count(self, method: str) -> int:
        """How often a method was asked for."""
        return sum(message.get("method") == method for message in self.received)

    async def connect(self, listener: Listener, era: Era | None) -> Link:
        """A new connection."""
        link = MemoryLink(self, listener)
        self.links.append(link)
        return link

    def source(self, name: str = "memory", **options: Any) -> McpSource:
        """A source over this server; after a failure it waits as long as it may, so that tests can look."""
        return McpSource(name, self.connect, options=McpOptions(**options), rng=_Patient())

    def push(self, message: dict[str, Any]) -> None:
        """Sends a message of the server's own to whoever is connected."""
        self.links[-1].receive(orjson.dumps({"jsonrpc": "2.0", **message}))


class MemoryLink(Link):
    """One connection to a server in memory."""

    def __init__(self, server: MemoryServer, listener: Listener) -> None:
        super().__init__("memory", listener=listener, withheld=server.withheld)
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, data: bytes, waiter: Waiter | None = None) -> None:
        message = orjson.loads(data)
        self._server.received.append(message)
        if "method" in message and "id" in message:
            task = asyncio.get_running_loop().create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: dict[str, Any]) -> None:
        try:
            method = self._server.methods.get(message["method"])
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, "not here")
            result = method(message.get("params") or {})
            if inspect.isawaitable(result):
                result = await result
            self.receive(result_line(message["id"], orjson.dumps(result)))
        except RpcError as error:
            self.receive(error_line(message["id"], error))

    async def close(self) -> None:
        self.fail(self.reason or "it was stopped")
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def eventually(condition: Callable[[], object]) -> None:
    """Lets others run until something has happened; the ceiling of every test is the ceiling here.

    What happens in memory takes a few turns of the loop; whoever waits longer waits for another thread or process, and
    must not keep the processor from it.
    """
    for turn in count():
        if condition():
            return
        await asyncio.sleep(0 if turn < 1_000 else 0.005)


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    """A definition as `tools/list` gives it."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": description or f"The tool {name}.", "inputSchema": schema, **more}


def _echo(params: dict[str, Any]) -> dict[str, Any]:
    text = str(params.get("arguments", {}).get("text", params["name"]))
    return {"content": [{"type": "text", "text": text}], "vendorField": {"kept": True}}
