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
from toolcrib.gateway.http_connections import Connection, HttpServer, Take
from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.http_wire import Head, Refused
from toolcrib.limits import REQUEST_READ_S, WRITE_STALL_S
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


class Healthy:
    """Answers at once, and notes how much waited to be read at that time."""

    def __init__(self) -> None:
        self.server = HttpServer(self)
        self.waiting: list[int] = []

    def open(self, head: Head) -> Take:
        (connection,) = self.server.connections
        self.waiting.append(connection.unread)
        return lambda body, reply: reply.send(200, b'{"status":"ok"}')


@pytest.mark.requirement("F10")
async def test_a_client_that_asks_and_asks_and_does_not_read_is_not_answered_ahead_of_its_reading():
    app, asked = Healthy(), 5_000
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        for end, size in ((listener, socket.SO_SNDBUF), (client, socket.SO_RCVBUF)):
            end.setsockopt(socket.SOL_SOCKET, size, 16 * 1024)
        await app.server.listen(listener)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, listener.getsockname())
        sending = asyncio.create_task(loop.sock_sendall(client, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n" * asked))
        await eventually(lambda: any(connection.is_full for connection in app.server.connections))
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert len(app.waiting) < asked / 2
        answers = b""
        while answers.count(b"200 OK") < asked:
            answers += await loop.sock_recv(client, 1024 * 1024)
        await sending
        await app.server.close()
    assert len(app.waiting) == asked
    assert max(app.waiting) <= 64 * 1024 + len(answers) // asked


class Begun:
    """Answers at once, on a wire that is full after every reply until the client reads."""

    def __init__(self) -> None:
        self.count = 0
        self.connection = Connection(HttpServer(self))
        self.wire = Filling(self.connection)
        self.connection.connection_made(self.wire)

    def open(self, head: Head) -> Take:
        if head.path == "/no":
            raise Refused(403, "No.")
        return self._take

    def _take(self, body: bytes, reply: Reply) -> None:
        self.count += 1
        reply.send(200, b"{}")


class Filling(Wire):
    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def write(self, data: Any) -> None:
        super().write(data)
        self._connection.pause_writing()


GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.requirement("F10")
async def test_nothing_is_begun_or_refused_for_a_client_that_does_not_read_until_it_reads():
    app = Begun()
    refused = b"POST /no HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n."
    app.connection.data_received(GET + refused + GET)
    for replies, begun in ((1, 1), (2, 1), (3, 2)):
        await asyncio.sleep(0)
        assert (app.wire.data.count(b"HTTP/1.1"), app.count, app.wire.reading) == (replies, begun, False)
        app.connection.resume_writing()
    assert app.wire.reading
    assert [part[:3] for part in app.wire.data.split(b"HTTP/1.1 ")[1:]] == [b"200", b"403", b"200"]


@pytest.mark.requirement("F10")
async def test_a_client_that_is_not_read_from_is_not_late_and_gets_its_time_once_it_is():
    app = Begun()
    app.connection.data_received(GET + b"GET / HT")
    now = asyncio.get_running_loop().time()
    app.connection.tick(now + 2 * REQUEST_READ_S)
    assert not app.wire.closed
    app.connection.resume_writing()
    app.connection.tick(now + 2 * REQUEST_READ_S)
    assert app.wire.closed and b"408 Request Timeout" in app.wire.data


@pytest.mark.requirement("K12")
async def test_what_waits_for_a_client_to_read_is_not_begun_after_the_end():
    app = Begun()
    app.connection.data_received(GET + GET)
    app.connection.retire()
    assert app.wire.closed
    app.connection.resume_writing()
    assert app.count == 1


@pytest.mark.requirement("F11")
async def test_what_is_no_request_is_not_answered_before_those_that_wait():
    app = Begun()
    app.connection.data_received(GET + GET + b"\x16\x03\x01")
    assert app.wire.closed and app.wire.data.count(b"HTTP/1.1") == 1


@pytest.mark.requirement("L7")
@pytest.mark.usefixtures("patient_queue")
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
