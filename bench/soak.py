"""A minute of load: `python -m bench.soak [--clients 200] [--seconds 60]`.

So many clients over HTTP, each with a session of its own, call a tool through the bridge as fast as they are answered.
Reported are calls a second, errors, how long an answer took, what the gateway's process holds in memory at the start,
after warming up and at the end, and how late its event loop is: the time that a request for `/health` takes, which
does nothing but wait for its turn. Everything runs where there is no network but loopback.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench import peers
from bench.gateway import MESSAGE, toolcrib, upstream
from bench.mcp_clients import HttpClient, cpu_s, process, resident_mb, shake_hands
from bench.measure import percentile

PORT = 18_690
CALL = {"name": "tool_call", "arguments": {"name": "b__echo", "arguments": MESSAGE}}


async def load(clients: list[HttpClient], until: float) -> tuple[list[float], int]:
    """Seconds that each answer took, and how many were wrong."""
    took: list[float] = []
    wrong = 0

    async def one(client: HttpClient) -> None:
        nonlocal wrong
        while time.monotonic() < until:
            started = time.monotonic()
            answer = await client.ask("tools/call", CALL)
            took.append(time.monotonic() - started)
            if answer.get("result", {}).get("content", [{}])[0].get("text") != MESSAGE["message"]:
                wrong += 1

    results = await asyncio.gather(*(one(client) for client in clients), return_exceptions=True)
    return took, wrong + sum(isinstance(result, BaseException) for result in results)


async def watch(until: float) -> list[float]:
    """Milliseconds that a request waits for its turn, some twenty times a second."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    waits: list[float] = []
    while time.monotonic() < until:
        started = time.monotonic()
        writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b'"ok"}')
        waits.append((time.monotonic() - started) * 1000)
        await asyncio.sleep(0.05)
    writer.close()
    return waits


async def soak(count: int, seconds: float) -> bool:
    """Whether nothing went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        command = toolcrib(Path(folder), {"b": upstream()}, gate="on", port=PORT)
        async with process(command, pipes=False) as child:
            clients = [HttpClient(PORT) for _ in range(count)]
            await shake_hands(clients[0])
            at_start = resident_mb(child.pid)
            await asyncio.gather(*(shake_hands(client) for client in clients[1:]))
            await load(clients, time.monotonic() + seconds / 10)
            warm, cpu, started = resident_mb(child.pid), cpu_s(child.pid), time.monotonic()
            (took, wrong), waits = await asyncio.gather(load(clients, started + seconds), watch(started + seconds))
            lasted, spent = time.monotonic() - started, cpu_s(child.pid) - cpu
            end = resident_mb(child.pid)
    print(f"{count} clients, {lasted:.0f} s: {len(took):,} calls, {len(took) / lasted:,.0f} a second, {wrong} errors")
    ms = [1000 * value for value in took]
    print(f"answer: p50 {statistics.median(ms):.0f} ms, p99 {percentile(ms, 0.99):.0f} ms, slowest {max(ms):.0f} ms")
    print(f"gateway: {spent / len(took) * 1e6:.0f} µs CPU a call, {spent / lasted:.0%} of one core")
    print(
        f"event loop: p50 {statistics.median(waits):.1f} ms late, p99 {percentile(waits, 0.99):.1f}, most {max(waits):.1f}"
    )
    print(f"memory: {at_start:.1f} MB at the start, {warm:.1f} warm, {end:.1f} at the end")
    return not wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200, help="clients at once")
    parser.add_argument("--seconds", type=float, default=60, help="how long")
    options = parser.parse_args()
    if not peers.is_isolated():
        print(peers.run_isolated("bench.soak", f"--clients={options.clients}", f"--seconds={options.seconds}"), end="")
        return
    raise SystemExit(0 if asyncio.run(soak(options.clients, options.seconds)) else 1)


if __name__ == "__main__":
    main()
