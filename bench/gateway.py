"""CPU of one bridged call in the gateway's process, against FastMCP's proxy and a relay that only rewrites ids.

    python -m bench.gateway --fastmcp /path/to/python-with-fastmcp [--calls 400]

All stand in front of the same small server, over stdio and over HTTP, and are driven by the same raw client, one call
at a time and 32 at once. What counts is the CPU time (user and system) that the process in the middle spends, read
from the operating system before and after the calls; the first calls warm up and are not counted. Each row is run
`--rounds` times and the best round is taken. Ratios hold on any machine; absolute figures do not.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

SERVER = """
import sys, json
out = sys.stdout.buffer
for line in sys.stdin.buffer:
    message = json.loads(line)
    key, method = message.get("id"), message.get("method")
    if key is None:
        continue
    if method == "initialize":
        info = {"name": "b", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
        result = {"tools": [{"name": "echo", "description": "Repeats a message.", "inputSchema": schema}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["message"]}]}
    elif method == "ping":
        result = {}
    else:
        error = {"jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "no"}}
        out.write(json.dumps(error).encode() + b"\\n")
        out.flush()
        continue
    out.write(json.dumps({"jsonrpc": "2.0", "id": key, "result": result}).encode() + b"\\n")
    out.flush()
"""

RELAY = """
import asyncio, sys, msgspec
class E(msgspec.Struct, omit_defaults=True):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    jsonrpc: str = ""
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
decode, encode = msgspec.json.Decoder(E).decode, msgspec.json.encode
async def main():
    child = await asyncio.create_subprocess_exec(*sys.argv[1:], stdin=-1, stdout=-1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout.buffer)
    ids = {}
    async def up():
        number = 0
        while line := await reader.readline():
            message = decode(line)
            if message.id is not msgspec.UNSET:
                number += 1
                ids[number] = message.id
                message.id = msgspec.Raw(str(number).encode())
            child.stdin.write(encode(message) + b"\\n")
        child.stdin.close()
    async def down():
        while line := await child.stdout.readline():
            message = decode(line)
            if message.id is not msgspec.UNSET:
                message.id = ids.pop(int(bytes(message.id)))
            out.write(encode(message) + b"\\n")
    await asyncio.gather(up(), down())
import uvloop
uvloop.run(main())
"""

FASTMCP = """
import sys
from fastmcp.server import create_proxy
from fastmcp.client.transports import StdioTransport
proxy = create_proxy(StdioTransport(sys.argv[2], sys.argv[3:]))
if sys.argv[1] == "stdio":
    proxy.run(transport="stdio", show_banner=False)
else:
    proxy.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="warning")
"""


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has spent so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class StdioClient:
    """A raw client over pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.pid = process.pid
        self._process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._task = asyncio.create_task(self._read())
        self._number = 0

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = orjson.loads(line)
            future = self._waiting.pop(message.get("id"), None)
            if future is not None:
                future.set_result(message)

    async def ask(self, method: str, params: Any) -> Any:
        assert self._process.stdin is not None
        self._number += 1
        future = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(orjson.dumps(message) + b"\n")
        return await future

    def notify(self, method: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"jsonrpc": "2.0", "method": method}) + b"\n")


class HttpClient:
    """A raw client over HTTP, with the same old handshake for everybody."""

    def __init__(self, pid: int, url: str) -> None:
        import httpx2

        self.pid = pid
        self._url = url
        self._client = httpx2.AsyncClient(timeout=60)
        self._headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        self._number = 0

    async def ask(self, method: str, params: Any) -> Any:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        response = await self._client.post(self._url, content=orjson.dumps(message), headers=self._headers)
        if "mcp-session-id" in response.headers:
            self._headers["mcp-session-id"] = response.headers["mcp-session-id"]
        found = re.search(rb"^data: (\{.*\})\r?$", response.content, re.MULTILINE)
        return orjson.loads(found.group(1) if found else response.content)

    def notify(self, method: str) -> None:
        self._note = asyncio.create_task(
            self._client.post(
                self._url, content=orjson.dumps({"jsonrpc": "2.0", "method": method}), headers=self._headers
            )
        )


@asynccontextmanager
async def process(*command: str, pipes: bool):
    mode = asyncio.subprocess.PIPE if pipes else asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(
        *command, stdin=mode, stdout=mode, stderr=asyncio.subprocess.DEVNULL, limit=2**24
    )
    try:
        yield child
    finally:
        child.terminate()
        await child.wait()


async def measure(client: Any, tool: str, arguments: Any, calls: int, at_once: int) -> float:
    """Microseconds of CPU per call in the process in the middle."""

    async def one() -> None:
        answer = await client.ask("tools/call", {"name": tool, "arguments": arguments})
        if "x" * 200 not in str(answer):
            raise AssertionError(f"a wrong answer: {answer}")

    async def worker(count: int) -> None:
        for _ in range(count):
            await one()

    await worker(50)
    before = cpu_seconds(client.pid)
    await asyncio.gather(*(worker(calls // at_once) for _ in range(at_once)))
    return (cpu_seconds(client.pid) - before) / (calls // at_once * at_once) * 1e6


async def shake(client: Any) -> None:
    info = {"name": "bench", "version": "1"}
    for attempt in range(100):
        try:
            await client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
            break
        except Exception:
            if attempt == 99:
                raise
            await asyncio.sleep(0.2)
    client.notify("notifications/initialized")
    await client.ask("tools/list", {})


async def run(options: argparse.Namespace, folder: Path) -> None:
    for name, text in (("server.py", SERVER), ("relay.py", RELAY), ("proxy.py", FASTMCP)):
        (folder / name).write_text(text)
    server = [sys.executable, str(folder / "server.py")]
    config = folder / "servers.json"
    settings = {
        "tools": {"tool_search": {"enabled": "on"}},
        "mcpServers": {"b": {"command": server[0], "args": server[1:]}},
    }
    config.write_bytes(orjson.dumps(settings))
    message = {"message": "x" * 200}
    bridged = {"name": "b__echo", "arguments": message}
    serve = [sys.executable, "-m", "toolcrib", "serve", "--config", str(config)]
    proxy = [options.fastmcp, str(folder / "proxy.py")]
    rows: list[tuple[str, list[str], str | None, str, Any]] = [
        ("relay, stdio", [sys.executable, str(folder / "relay.py"), *server], None, "echo", message),
        ("toolcrib, stdio", serve, None, "tool_call", bridged),
        ("toolcrib, HTTP", [*serve, "--http", "127.0.0.1:18771", "--allow-unauthenticated"],
         "http://127.0.0.1:18771/mcp", "tool_call", bridged),
    ]  # fmt: skip
    if options.fastmcp:
        rows[1:1] = [("FastMCP proxy, stdio", [*proxy, "stdio", *server], None, "echo", message)]
        rows.append(("FastMCP proxy, HTTP", [*proxy, "18772", *server], "http://127.0.0.1:18772/mcp", "echo", message))
    print(f"{'CPU µs per call in the middle':32} {'1 at a time':>12} {'32 at once':>12}   n = {options.calls}")
    for label, command, url, tool, arguments in rows:
        best: dict[int, float] = {}
        async with process(*command, pipes=url is None) as child:
            client: Any = StdioClient(child) if url is None else HttpClient(child.pid, url)
            await shake(client)
            for _ in range(options.rounds):
                for at_once in (1, 32):
                    cost = await measure(client, tool, arguments, options.calls, at_once)
                    best[at_once] = min(cost, best.get(at_once, cost))
        print(f"{label:32} {best[1]:12.0f} {best[32]:12.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fastmcp", help="a Python that has fastmcp installed")
    parser.add_argument("--calls", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(options, Path(folder)))


if __name__ == "__main__":
    main()
