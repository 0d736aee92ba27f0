"""The gateway in front of real servers: what they cost, what is saved, and a configuration to paste into a client.

It serves HTTP on loopback until Ctrl-C, with the console beside it. Behind it stand two MCP servers of other people (`mcp-server-git` over this
repository, `mcp-server-time`), each a process of its own, and more than 226 functions of Python's standard library.

    python examples/gateway.py --port 8765
    python examples/gateway.py --check      # connects to itself as a client would, and ends
"""

import argparse
import asyncio
import json
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from rich.console import Console
from rich.table import Table
from stdlib_toolsets import stdlib_toolsets

from toolcrib import Crib
from toolcrib.config import build_settings
from toolcrib.console.app import Console as WebConsole
from toolcrib.definitions import JsonObject
from toolcrib.gateway.approvals import ClientApprover
from toolcrib.gateway.auth import TokenFile
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.desk import ApprovalDesk
from toolcrib.gateway.http import open_door, serve_http
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.run import Options, use_fast_loop
from toolcrib.gateway.server import Gateway
from toolcrib.sources.servers import open_servers
from toolcrib.tokens import estimate_tokens

WINDOW = 128_000
START_S = 60.0
REPOSITORY = Path(__file__).resolve().parents[1]

console = Console(highlight=False)


def settings_of(tokens: Path) -> JsonObject:
    """What a configuration file would say."""
    programs = Path(sys.executable).parent
    return {
        "mcpServers": {
            "git": {"command": str(programs / "mcp-server-git"), "args": ["--repository", str(REPOSITORY)]},
            "time": {"command": str(programs / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        },
        "profiles": {"default": {"context": WINDOW}},
        "gateway": {"tokens": str(tokens)},
    }


def find_port(wanted: int) -> int:
    """The port, or any free one if something else listens there."""
    for port in (wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return probe.getsockname()[1]
    raise SystemExit("no port of 127.0.0.1 is free")


def show_costs(crib: Crib) -> None:
    """Prints what every server costs on each turn, and what is left of it."""
    table = Table(box=None, pad_edge=False)
    table.add_column("server")
    for title in ("tools", "tokens/turn"):
        table.add_column(title, justify="right")
    own = [toolset for toolset in crib.inventory.toolsets if toolset.origin != "mcp"]
    for toolset in crib.inventory.toolsets:
        if toolset.origin == "mcp":
            problem = f"  ({toolset.unavailable})" if toolset.unavailable else ""
            cost = estimate_tokens(sum(tool.chars for tool in toolset.tools))
            table.add_row(f"{toolset.name}{problem}", f"{len(toolset.tools)}", f"{cost:,}")
    cost = estimate_tokens(sum(tool.chars for toolset in own for tool in toolset.tools))
    table.add_row(f"{len(own)} Python modules", f"{sum(len(toolset.tools) for toolset in own)}", f"{cost:,}")
    console.print(table)
    assembly = crib.session(model_context=WINDOW).assemble().assembly
    direct, now = estimate_tokens(assembly.catalog.chars), assembly.tokens
    console.print(f"\nall attached   {direct:>7,} tokens on every turn  {'█' * 30}")
    bar = "█" * max(1, round(30 * now / direct))
    console.print(
        f"with Toolcrib  {now:>7,} tokens on every turn  {bar}  [bold]{100 * (1 - now / direct):.1f} % saved[/]"
    )


def show_client(port: int, token: str) -> None:
    """Prints what a client needs to connect."""
    entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": f"Bearer {token}"}}
    console.print("\nFor an MCP client (the token is shown once, and ends with this program):\n")
    print(json.dumps({"mcpServers": {"toolcrib": entry}}, indent=2))
    console.print("\nServing until Ctrl-C.")


async def check(port: int, token: str, stop: asyncio.Event) -> None:
    """Connects as a client would: lists, searches, and calls a tool of each server. Raises if an answer is wrong."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as client:

        async def ask(method: str, **params: object) -> dict[str, Any]:
            answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            if "mcp-session-id" in answer.headers:
                client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            return answer.json()["result"]

        async def call(name: str, **arguments: object) -> str:
            result = await ask("tools/call", name="tool_call", arguments={"name": name, "arguments": arguments})
            assert not result.get("isError"), result
            return result["content"][0]["text"]

        try:
            await until_open(port)
            me = {"name": "check", "version": "1"}
            await ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=me)
            names = [tool["name"] for tool in (await ask("tools/list"))["tools"]]
            assert names == ["tool_search", "tool_describe", "tool_call"], names
            found = await ask("tools/call", name="tool_search", arguments={"query": "what time is it in a time zone"})
            assert "time__get_current_time" in found["content"][0]["text"], found
            assert "UTC" in await call("time__get_current_time", timezone="UTC")
            assert "branch" in await call("git__git_status", repo_path=str(REPOSITORY))
            assert "120" in await call("factorial", n=5)
            console.print("Checked: three tools are listed; a tool of each server was found and called.")
        finally:
            stop.set()


async def until_open(port: int) -> None:
    """Waits until somebody listens."""
    async with asyncio.timeout(10):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


async def main(port: int, *, checking: bool) -> None:
    """Starts everything, tells about it, serves, and ends it."""
    with tempfile.TemporaryDirectory() as place:
        tokens = Path(place) / "tokens.json"
        settings = build_settings(settings_of(tokens))
        token, _ = TokenFile(tokens).create("this-machine", profile="default", days=1)
        sources = (*open_servers(settings), *stdlib_toolsets())
        desk = ApprovalDesk()
        crib = Crib(*sources, settings=settings, core=(), approver=ClientApprover(desk=desk))
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with crib:
            console.print("Starting the servers …")
            await crib.settle(wait_s=START_S)
            show_costs(crib)
            show_client(port, token)
            sys.stdout.flush()
            changes = ChangeFeed(crib)
            try:
                gateway = Gateway(crib, Profiles(settings.profiles), desk=desk)
                checked = asyncio.ensure_future(check(port, token, stop)) if checking else None
                options = Options(http=f"127.0.0.1:{port}")
                door = open_door(options, settings)
                page = WebConsole(gateway, door, tell=partial(print, flush=True))
                await serve_http(gateway, changes, options, settings, stop, door=door, annex=page)
                if checked is not None:
                    await checked
            finally:
                changes.close()
    console.print("\nEnded.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serves real tools through the gateway, on loopback.")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--check", action="store_true", help="connect to itself as a client would, and end")
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=use_fast_loop()) as runner, suppress(KeyboardInterrupt):
        runner.run(main(find_port(given.port), checking=given.check))
