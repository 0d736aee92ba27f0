"""The gateway's process against others in the same place: the CPU of one call, of one search, of a start, of a session.

All stand in front of the same small server and are asked by the same raw client, over pipes and over HTTP, one
question at a time, 32 and 200 at once. What counts is the CPU time (user and system) that the process in the middle
spends; the first questions warm up and are not counted; middles take turns, and the median round of each is taken.
Everything runs where there is no network but loopback. Peers take part where they are installed.
"""

import argparse
import asyncio
import json
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from bench import peers
from bench.catalogs import queries
from bench.mcp_clients import Client, HttpClient, ModernClient, StdioClient, cpu_s, process, resident_mb, shake_hands
from bench.measure import Family

MIDDLES = Path(__file__).parent / "middles"
AT_ONCE = (1, 32, 200)
ROUNDS = 7
MESSAGE = {"message": "x" * 200}
_PORTS = iter(range(18_700, 18_900))


@dataclass(frozen=True, slots=True)
class Middle:
    """Something that stands in the middle."""

    name: str
    command: list[str]
    port: int | None
    tool: str
    arguments: dict[str, Any]
    calls: int
    """Calls per cell, at least as many as there are at once."""
    modern: bool = False
    """Whether the client speaks the stateless protocol."""


def upstream(*arguments: str) -> list[str]:
    return [sys.executable, str(MIDDLES / "upstream.py"), *arguments]


def toolcrib(folder: Path, server: dict[str, list[str]], *, gate: str, port: int | None) -> list[str]:
    """The command of our gateway in front of these servers."""
    config = folder / f"{gate}-{port}.json"
    servers = {name: {"command": command[0], "args": command[1:]} for name, command in server.items()}
    config.write_bytes(orjson.dumps({"tools": {"tool_search": {"enabled": gate}}, "mcpServers": servers}))
    where = [] if port is None else ["--http", f"127.0.0.1:{port}", "--allow-unauthenticated"]
    return [sys.executable, "-m", "toolcrib", "serve", "--config", str(config), *where]


def middles(folder: Path, *, http: bool) -> list[Middle]:
    """All that can take part."""

    def script(name: str, port: int | None, *more: str) -> list[str]:
        where = [] if name == "relay_stdio" else ["stdio" if port is None else str(port)]
        return [sys.executable, "-m", f"bench.middles.{name}", *where, *more, *upstream()]

    def place() -> int | None:
        return next(_PORTS) if http else None

    found: list[Middle] = []
    port = place()
    bridged = {"name": "b__echo", "arguments": MESSAGE}
    ours = {"b": upstream()}
    found.append(
        Middle("toolcrib, bridged", toolcrib(folder, ours, gate="on", port=port), port, "tool_call", bridged, 400)
    )
    if http:
        port = next(_PORTS)
        command = toolcrib(folder, ours, gate="on", port=port)
        found.append(Middle("toolcrib, stateless", command, port, "tool_call", bridged, 400, modern=True))
    port = place()
    found.append(
        Middle("toolcrib, direct", toolcrib(folder, ours, gate="off", port=port), port, "b__echo", MESSAGE, 400)
    )
    port = place()
    found.append(
        Middle("bare relay", script("relay_http" if http else "relay_stdio", port), port, "echo", MESSAGE, 400)
    )
    port = place()
    found.append(Middle("SDK, typed", script("sdk_proxy", port), port, "echo", MESSAGE, 100))
    if peers.has("fastmcp"):
        port = place()
        found.append(Middle("FastMCP proxy", script("fastmcp_proxy", port, "plain"), port, "echo", MESSAGE, 50))
    if http and (command := peers.mcp_proxy()):
        port = next(_PORTS)
        found.append(Middle("mcp-proxy", [*command, "--port", str(port), *upstream()], port, "echo", MESSAGE, 50))
    if http and (command := peers.supergateway()):
        port = next(_PORTS)
        more = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", str(port)]
        line = shlex.join(upstream())
        found.append(Middle("supergateway", [*command, "--stdio", line, *more], port, "echo", MESSAGE, 50))
    return found


@asynccontextmanager
async def opened(middle: Middle) -> AsyncGenerator[tuple[int, Client]]:
    """The process of a middle and a client of it."""
    async with process(middle.command, pipes=middle.port is None) as child:
        client: Client = StdioClient(child) if middle.port is None else HttpClient(middle.port)
        await shake_hands(client)
        if middle.modern and middle.port is not None:
            client = ModernClient(middle.port)
        yield child.pid, client


async def cost_us(pid: int, client: Client, middle: Middle, at_once: int) -> float:
    """Microseconds of CPU per call."""
    calls = max(middle.calls, at_once) // at_once

    async def worker(count: int) -> None:
        for _ in range(count):
            answer = await client.ask("tools/call", {"name": middle.tool, "arguments": middle.arguments})
            if MESSAGE["message"] not in str(answer):
                raise AssertionError(f"{middle.name}: a wrong answer: {str(answer)[:300]}")

    await asyncio.gather(*(worker(1) for _ in range(at_once)))
    before = cpu_s(pid)
    await asyncio.gather(*(worker(calls) for _ in range(at_once)))
    return (cpu_s(pid) - before) / (calls * at_once) * 1e6


async def measure_calls(*, http: bool) -> dict[str, dict[int, float]]:
    """By middle and number at once: microseconds of CPU per call."""
    samples: dict[str, dict[int, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            running = [
                (middle, *await stack.enter_async_context(opened(middle)))
                for middle in middles(Path(folder), http=http)
            ]
            for _ in range(ROUNDS):
                for at_once in AT_ONCE:
                    for middle, pid, client in running:
                        cost = await cost_us(pid, client, middle, at_once)
                        samples.setdefault(middle.name, {}).setdefault(at_once, []).append(cost)
    return {name: {n: statistics.median(costs) for n, costs in cells.items()} for name, cells in samples.items()}


def calls_family() -> Family:
    """CPU per call, over pipes and over HTTP."""
    rows: list[list[str]] = []
    lines: dict[str, dict[int, float]] = {}
    for http in (False, True):
        found = asyncio.run(measure_calls(http=http))
        ours, way = found["toolcrib, bridged"], "HTTP" if http else "stdio"
        for name, cells in found.items():
            lines[f"{name}, {way}"] = {n: cost / 1000 for n, cost in cells.items()}
            ratios = {n: cells[n] / ours[n] for n in AT_ONCE}
            shown = [
                f"{cells[n]:,.0f} ({ratio:.2g}×)" if ratio < 99.5 else f"{cells[n]:,.0f} ({ratio:,.0f}×)"
                for n, ratio in ratios.items()
            ]
            rows.append([way, name, *shown, f"{cells[200] / cells[1]:.2f}×"])
    return Family(
        name="gateway",
        title="One call through the process in the middle (CPU µs; × against ours, bridged)",
        headings=["over", "middle", *(f"{n} at once" for n in AT_ONCE), "growth 1 → 200"],
        rows=rows,
        lines=lines,
        notes=[_versions()],
    )


async def search_costs(command: list[str], tool: str, call: tuple[str, dict[str, Any]], count: int) -> list[float]:
    """Milliseconds of CPU of each search; now and then a tool is called, as after any search."""
    costs: list[float] = []
    async with process(command, pipes=True) as child:
        client = StdioClient(child)
        await shake_hands(client, patience_s=120)
        for number, query in enumerate(queries(count + 1)):
            before = cpu_s(child.pid)
            answer = await client.ask("tools/call", {"name": tool, "arguments": {"query": query}})
            cost = (cpu_s(child.pid) - before) * 1000
            if "error" in answer or answer["result"].get("isError"):
                raise AssertionError(f"a search failed: {str(answer)[:300]}")
            if number:  # the first one builds the index
                costs.append(cost)
            if number % 5 == 0:
                await client.ask("tools/call", {"name": call[0], "arguments": call[1]})
    return costs


def search_family(tools: int = 2_000) -> Family:
    """CPU per search over many tools, and of a call through the search's own bridge."""
    with tempfile.TemporaryDirectory() as folder:
        ours = toolcrib(Path(folder), {"b": upstream(str(tools))}, gate="on", port=None)
        found = {
            "toolcrib": asyncio.run(
                search_costs(ours, "tool_search", ("tool_call", {"name": "b__echo", "arguments": MESSAGE}), 40)
            )
        }
        if peers.has("fastmcp"):
            theirs = [sys.executable, "-m", "bench.middles.fastmcp_proxy", "stdio", "search", *upstream(str(tools))]
            found["FastMCP, search transform"] = asyncio.run(
                search_costs(theirs, "search_tools", ("call_tool", {"name": "echo", "arguments": MESSAGE}), 5)
            )
    base = statistics.median(found["toolcrib"])
    rows = [
        [
            name,
            f"{statistics.median(costs):.2f}",
            f"{max(costs):.2f}",
            f"{statistics.median(costs) / base:,.0f}×",
            str(len(costs)),
        ]
        for name, costs in found.items()
    ]
    return Family(
        name="gateway-search",
        title=f"One search over {tools:,} tools through the process in the middle (CPU ms, stdio, index built)",
        headings=["middle", "median", "slowest", "against ours", "n"],
        rows=rows,
        notes=[_versions()],
    )


async def first_list_s(folder: Path, slowest_s: float) -> tuple[float, int]:
    """Seconds from the start with 20 servers to the first answered list, and the tools listed in it."""
    servers = {f"s{number}": upstream() for number in range(19)}
    servers["slow"] = upstream("1", str(slowest_s))
    started = time.monotonic()
    async with process(toolcrib(folder, servers, gate="off", port=None), pipes=True) as child:
        client = StdioClient(child)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        await client.ask("initialize", params)
        listed = await client.ask("tools/list", {})
        return time.monotonic() - started, len(listed["result"]["tools"])


async def session_kb(middle: Middle, sessions: int) -> float:
    """Kilobytes of resident memory that each open session adds."""
    assert middle.port is not None
    async with opened(middle) as (pid, _):
        for _ in range(20):
            await shake_hands(HttpClient(middle.port))
        before = resident_mb(pid)
        for _ in range(sessions):
            client = HttpClient(middle.port)
            await shake_hands(client)
            client.close()
        return (resident_mb(pid) - before) / sessions * 1000


def start_family() -> Family:
    """Start-up with 20 servers, and memory per session."""
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        quick = asyncio.run(first_list_s(Path(folder), 0))
        slow = asyncio.run(first_list_s(Path(folder), 40))
        rows.append(["first list, 20 servers", f"{quick[0]:.2f} s ({quick[1]} tools)"])
        rows.append(["first list, one of 20 takes 40 s", f"{slow[0]:.2f} s ({slow[1]} tools)"])
        wanted = ("toolcrib, bridged", "SDK, typed", "FastMCP proxy")
        for middle in (middle for middle in middles(Path(folder), http=True) if middle.name in wanted):
            kb = asyncio.run(session_kb(middle, 200))
            rows.append([f"memory per session, {middle.name}", f"{kb:.0f} kB"])
    return Family(
        name="gateway-start",
        title="Start-up on the clock, and memory of an open HTTP session",
        headings=["what", "measured"],
        rows=rows,
    )


def _versions() -> str:
    found = [f"{name} {version(name)}" for name in ("mcp", "fastmcp") if peers.has(name)]
    found += ["mcp-proxy"] if peers.mcp_proxy() else []
    found += ["supergateway"] if peers.supergateway() else []
    where = "nothing but loopback" if peers.is_isolated() else "the network of this machine: no namespace could be had"
    return f"Peers: {', '.join(found)}; they saw {where}. Calls: median of {ROUNDS} rounds."


FAMILIES = {"calls": calls_family, "search": search_family, "start": start_family}


def report(which: str) -> Family:
    """One of the families, measured where there is no network."""
    return Family(**_read(peers.run_isolated("bench.gateway", which)))


def _read(text: str) -> dict[str, Any]:
    raw = json.loads(text)
    raw["lines"] = {name: {int(n): ms for n, ms in cells.items()} for name, cells in raw["lines"].items()}
    return raw


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=FAMILIES, help="what to measure; `python -m bench` has them as tables")
    print(json.dumps(asdict(FAMILIES[parser.parse_args(arguments).family]())))


if __name__ == "__main__":
    main()
