"""Raw MCP clients for benchmarks, over pipes and over HTTP: cheap enough not to be what is measured."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import orjson

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_INFO = {"name": "bench", "version": "1"}


class Client(Protocol):
    """Asks the process in the middle."""

    async def ask(self, method: str, params: Any) -> Any: ...

    async def notify(self, method: str) -> None: ...


def cpu_s(pid: int) -> float:
    """User and system time that a process has spent so far, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.split("VmRSS:")[1].split()[0]) / 1000


class StdioClient:
    """Over the pipes of a child."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._child.stdout is not None
        while line := await self._child.stdout.readline():
            message = orjson.loads(line)
            future = self._waiting.pop(message.get("id"), None)
            if future is not None:
                future.set_result(message)

    async def ask(self, method: str, params: Any) -> Any:
        assert self._child.stdin is not None
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._child.stdin.write(orjson.dumps(message) + b"\n")
        return await future

    async def notify(self, method: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(orjson.dumps({"jsonrpc": "2.0", "method": method}) + b"\n")


class HttpClient:
    """Over connections that are kept, as many as there are questions at once; one session of the old era."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._numbers = count(1)
        self._session = self._extra = b""

    async def ask(self, method: str, params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        return orjson.loads(await self._post(orjson.dumps(message)))

    async def notify(self, method: str) -> None:
        await self._post(orjson.dumps({"jsonrpc": "2.0", "method": method}))

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    async def _post(self, body: bytes) -> bytes:
        head = self._extra or (b"mcp-session-id: %b\r\n" % self._session if self._session else b"")
        request = (
            b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:%d\r\naccept: application/json, text/event-stream\r\n"
            b"content-type: application/json\r\n%bcontent-length: %d\r\n\r\n%b" % (self._port, head, len(body), body)
        )
        while True:
            kept = bool(self._idle)
            reader, writer = self._idle.pop() if kept else await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(request)
            try:
                raw = await reader.readuntil(b"\r\n\r\n")
                break
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                if not kept:  # one that lay idle may have been closed meanwhile
                    raise
        head = raw.lower()
        if (place := head.find(b"mcp-session-id: ")) >= 0 and not self._session:
            self._session = raw[place + 16 : raw.index(b"\r\n", place)]
        answer = await _read_body(reader, head)
        if b"connection: close" in head:
            writer.close()
        else:
            self._idle.append((reader, writer))
        if not head.startswith(b"http/1.1 2"):
            raise ConnectionError(f"{head[9:12].decode()}: {answer[:300]!r}")
        if b"text/event-stream" in head:
            answer = next(line[6:] for line in answer.splitlines() if line.startswith(b"data: {"))
        return answer


class ModernClient(HttpClient):
    """The same without a session: every request says everything about itself, in its body and in its headers."""

    async def ask(self, method: str, params: Any) -> Any:
        headers = [b"mcp-protocol-version: 2026-07-28", b"mcp-method: " + method.encode()]
        if method == "tools/call":
            headers.append(b"mcp-name: " + params["name"].encode())
        if method == "tools/call" and params["name"] == "tool_call":
            headers.append(b"mcp-param-tool: " + params["arguments"]["name"].encode())
        self._extra = b"\r\n".join([*headers, b""])
        return await super().ask(method, {**params, "_meta": META})


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if (place := head.find(b"content-length: ")) >= 0:
        return await reader.readexactly(int(head[place + 16 : head.index(b"\r\n", place)]))
    if b"chunked" not in head:
        return b""
    parts: list[bytes] = []
    while size := int(await reader.readline(), 16):
        parts.append((await reader.readexactly(size + 2))[:-2])
    await reader.readline()
    return b"".join(parts)


async def shake_hands(client: Client, *, patience_s: float = 60) -> None:
    """The handshake of the old era, and a first list; the process may still be starting."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _INFO}
    async with asyncio.timeout(patience_s):
        while True:
            try:
                await client.ask("initialize", params)
                break
            except (OSError, EOFError):
                await asyncio.sleep(0.1)
    await client.notify("notifications/initialized")
    await client.ask("tools/list", {})


@asynccontextmanager
async def process(command: Sequence[str], *, pipes: bool) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A process, ended in the end."""
    mode = asyncio.subprocess.PIPE if pipes else asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(
        *command, stdin=mode, stdout=mode, stderr=asyncio.subprocess.DEVNULL, limit=2**25
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.terminate()
        try:
            async with asyncio.timeout(15):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()
