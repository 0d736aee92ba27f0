"""The gateway under pressure: slow readers, no more descriptors, no more disk, and a neighbour who wants everything."""

import asyncio
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually
from tests.gateway.clients import META
from tests.gateway.http_clients import Wire
from tests.in_front.gateways import command

from toolcrib.crib import Crib
from toolcrib.gateway.http_connections import Connection, HttpServer
from toolcrib.limits import WRITE_STALL_S
from toolcrib.settings import ActivitySettings, LimitSettings, Settings


class Unread(Wire):
    """A connection whose client reads when it likes."""

    waiting = 0

    def get_write_buffer_size(self) -> int:
        return self.waiting


@pytest.mark.requirement("F10")
async def test_a_client_that_reads_nothing_is_cut_off_and_one_that_reads_slowly_is_not():
    class Never:
        def open(self, head: Any) -> Any:
            raise AssertionError("nobody asks")

    wire = Unread()
    connection = Connection(HttpServer(Never()))
    connection.connection_made(wire)
    now = asyncio.get_running_loop().time()
    for second in range(200):
        wire.waiting = 1_000_000 - second
        connection.tick(now + second)
    assert not wire.aborted
    for second in range(200, 200 + int(WRITE_STALL_S)):
        connection.tick(now + second)
    assert not wire.aborted
    connection.tick(now + 200 + WRITE_STALL_S)
    assert wire.aborted


@pytest.mark.requirement("L7")
async def test_a_neighbour_who_wants_everything_does_not_keep_others_waiting():
    release = asyncio.Event()
    started: list[str] = []

    async def work(params: dict[str, Any]) -> dict[str, Any]:
        text = params["arguments"]["text"]
        started.append(text)
        if text == "noisy":
            await release.wait()
        return {"content": [{"type": "text", "text": text}]}

    crib = Crib(source := MemoryServer(tools__call=work).source("one"), settings=Settings(limits=LimitSettings()))
    async with crib:
        await source.settled.wait()
        noisy, quiet = crib.session(principal="noisy"), crib.session(principal="quiet")
        tasks = [asyncio.create_task(noisy.call("one__echo", {"text": "noisy"})) for _ in range(200)]
        await eventually(lambda: started)
        answers = [(await quiet.call("one__echo", {"text": str(number)})).text for number in range(50)]
        assert answers == [str(number) for number in range(50)]
        assert started.count("noisy") == LimitSettings().concurrency_per_session
        release.set()
        assert all(not answer.is_error for answer in await asyncio.gather(*tasks))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.requirement("K10")
async def test_a_full_disk_loses_the_feed_and_no_call(tmp_path: Path):
    feed = tmp_path / "feed.jsonl"
    crib = Crib(source := MemoryServer().source("one"), settings=Settings(activity=ActivitySettings(file=str(feed))))
    async with crib:
        await source.settled.wait()
        feed.unlink()
        feed.symlink_to("/dev/full")
        answer = await crib.session().call("one__echo", {"text": "hi"})
    assert answer.text == "hi"
    assert crib.activity.dropped > 0


def ask(port: int) -> int:
    """The status of one call, over a connection of its own."""
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})
    head = (
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        "Mcp-Method: tools/list\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.encode() + body)
        answer = connection.recv(65_536)
    return int(answer.split(b" ", 2)[1])


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("K11")
def test_without_descriptors_it_lives_on_and_serves_again_when_there_are_some(tmp_path: Path):
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))

    process = subprocess.Popen(
        [*command(tmp_path), "--http", "127.0.0.1:0", "--allow-unauthenticated"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=few,
    )  # fmt: skip
    assert process.stderr is not None
    held: list[socket.socket] = []
    try:
        found = next(filter(None, (re.search(r"127\.0\.0\.1:(\d+)/mcp", line) for line in process.stderr)))
        os.set_blocking(process.stderr.fileno(), False)
        port = int(found.group(1))
        assert ask(port) == 200
        for _ in range(150):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", port), timeout=2))
        assert ask(port) == 503
        for connection in held:
            connection.close()
        until = time.monotonic() + 40
        while ask(port) != 200:
            assert time.monotonic() < until
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        for connection in held:
            connection.close()
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
