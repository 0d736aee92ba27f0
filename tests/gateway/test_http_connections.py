"""Connections: bounded in size, time and number, replies in order, and an end that loses nothing."""

import asyncio
import re
import socket
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.http_clients import Answer, HttpClient, Wire, client_of

from toolcrib.gateway import http_connections
from toolcrib.gateway.http_connections import Connection, HttpServer, Take
from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.http_wire import Head, Refused
from toolcrib.limits import (
    CONNECTIONS_MAX,
    HEAD_MAX_BYTES,
    KEEP_ALIVE_S,
    PIPELINE_MAX,
    REQUEST_MAX_BYTES,
    REQUEST_READ_S,
    SSE_PING_S,
    STREAM_BACKLOG,
)


class Echo:
    """Answers with what it was sent; or does with a reply whatever a test wants."""

    def __init__(self, take: Take | None = None) -> None:
        self.heads: list[Head] = []
        self._take = take or (lambda body, reply: reply.send(200, b'{"got":%d}' % len(body)))

    def open(self, head: Head) -> Take:
        self.heads.append(head)
        if head.path == "/no":
            raise Refused(403, "No.")
        if head.path == "/broken":
            raise RuntimeError("a secret")
        return self._take


def running(work: Callable[[], Any]) -> Take:
    return lambda body, reply: reply.run(work(), 1)


async def forever() -> bytes:
    await asyncio.Event().wait()
    return b"{}"


async def test_one_connection_serves_request_after_request() -> None:
    async with client_of(Echo()) as client:
        for size in (0, 5):
            client.send(body=b"x" * size)
            answer = await client.answer()
            assert (answer.status, answer.json) == (200, {"got": size})
            assert "connection" not in answer.headers and answer.headers["date"].endswith("GMT")
        assert not client.wire.closed


async def test_a_client_that_wants_to_close_or_speaks_the_old_version_is_closed() -> None:
    for request in (b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", b"GET / HTTP/1.0\r\nhost: x\r\n\r\n"):
        async with client_of(Echo()) as client:
            client.feed(request)
            assert (await client.answer()).headers["connection"] == "close"
            assert client.wire.closed


async def test_a_request_may_come_byte_by_byte_and_in_chunks() -> None:
    raw = b"POST /mcp HTTP/1.1\r\nHost:  x \r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    app = Echo()
    async with client_of(app) as client:
        for byte in raw:
            client.feed(bytes([byte]))
        assert (await client.answer()).json == {"got": 5}
    assert app.heads[0].headers["host"] == "x"


@pytest.mark.requirement("E3")
async def test_a_head_and_a_body_have_a_size() -> None:
    async with client_of(Echo()) as client:
        client.feed(b"GET / HTTP/1.1\r\nx: ")
        for _ in range(HEAD_MAX_BYTES // 4096 + 1):
            client.feed(b"a" * 4096)
        assert (await client.answer()).status == 431 and client.wire.closed
    async with client_of(Echo()) as client:
        client.feed(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n" % (REQUEST_MAX_BYTES + 1))
        client.feed(b"a" * (REQUEST_MAX_BYTES + 1))
        assert (await client.answer()).status == 413 and client.wire.closed


@pytest.mark.requirement("E3")
async def test_a_head_that_comes_at_once_has_a_size_too() -> None:
    async with client_of(app := Echo()) as client:
        client.feed(b"GET / HTTP/1.1\r\nhost: x\r\nx: %b\r\n\r\n" % (b"a" * 2 * HEAD_MAX_BYTES))
        assert (await client.answer()).status == 431 and client.wire.closed and not app.heads


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("path", ["/yes", "/no"])
@pytest.mark.parametrize(
    "after", [b"0\r\n" + b"x: y\r\n" * 16_384, b"0\r\nx: " + b"y" * 98_304, b"1;x=" + b"y" * 98_304]
)
async def test_what_surrounds_a_body_in_chunks_has_a_size(path: str, after: bytes) -> None:
    for step in (1_000, len(after)):
        async with client_of(Echo()) as client:
            client.feed(b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n" % path.encode())
            pieces = [after[at : at + step] for at in range(0, len(after), step)]
            for piece in pieces:
                client.feed(piece)
            assert client.wire.closed and (await client.answer()).status == 431


async def test_many_chunks_and_fields_after_them_are_a_body_and_nothing_else() -> None:
    async with client_of(app := Echo()) as client:
        raw = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n%b0\r\nhost: y\r\n\r\n" % (
            b"1\r\na\r\n" * HEAD_MAX_BYTES
        )
        for at in range(0, len(raw), 1_001):
            client.feed(raw[at : at + 1_001])
        assert (await client.answer()).json == {"got": HEAD_MAX_BYTES}
        client.send()
        assert (await client.answer()).status == 200
    assert app.heads[0].headers["host"] == "x" and not app.heads[0].repeated


@pytest.mark.parametrize("cut", [1, 40, 90])
async def test_the_body_before_a_head_is_no_part_of_it(cut: int) -> None:
    request = (
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n"
        + b" " * 100_000
    )
    async with client_of(app := Echo()) as client:
        client.feed(request + request[:cut])
        client.feed(request[cut:])
        assert client.wire.data.count(b'{"got":100000}') == len(app.heads) == 2
        assert not client.wire.closed


@pytest.mark.requirement("E3")
async def test_whoever_sends_too_slowly_or_nothing_is_closed() -> None:
    async with client_of(Echo()) as client:
        client.feed(b"GET / HT")
        now = asyncio.get_running_loop().time()
        client.connection.tick(now + REQUEST_READ_S - 1)
        assert not client.wire.closed
        client.connection.tick(now + REQUEST_READ_S + 1)
        assert (await client.answer()).status == 408 and client.wire.closed
    async with client_of(Echo()) as client:
        client.connection.tick(asyncio.get_running_loop().time() + KEEP_ALIVE_S + 1)
        assert client.wire.closed and not client.wire.data


@pytest.mark.requirement("F11")
@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(raw: bytes) -> None:
    async with client_of(Echo()) as client:
        client.feed(raw)
        assert (await client.answer()).status == 400


@pytest.mark.requirement("F11")
@pytest.mark.parametrize("size", [1, 7, 1_000])
async def test_the_offer_of_another_protocol_is_not_taken_and_the_request_is_answered_once(size: int) -> None:
    offer = b"connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
    raw = b"POST /yes HTTP/1.1\r\nhost: x\r\n%bcontent-length: 5\r\n\r\n12345" % offer
    chunked = b"POST /yes HTTP/1.1\r\nhost: x\r\n%btransfer-encoding: chunked\r\n\r\n2\r\n12\r\n0\r\n\r\n" % offer
    nothing = b"GET /yes HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    together = raw + chunked + nothing + raw
    async with client_of(Echo()) as client:
        for at in range(0, len(together), size):
            client.feed(together[at : at + size])
        assert client.wire.data.count(b"HTTP/1.1 200 OK") == client.wire.data.count(b"HTTP/1.1") == 4
        assert re.findall(rb'{"got":(\d)}', client.wire.data) == [b"5", b"2", b"0", b"5"]
        client.wire.data = b""
        client.send(path="/yes", body=b"12")
        assert (await client.answer()).json == {"got": 2}
        assert not client.wire.data


async def test_a_refusal_comes_before_the_body_and_the_connection_lives_on() -> None:
    async with client_of(Echo()) as client:
        client.feed(b"POST /no HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        assert (await client.answer()).status == 403
        client.feed(b"body")
        client.send(path="/yes", body=b"12")
        assert (await client.answer()).json == {"got": 2}


async def test_a_client_that_asks_whether_to_send_is_told_to() -> None:
    async with client_of(Echo()) as client:
        client.feed(b"POST /yes HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        assert client.wire.data == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.wire.data = b""
        client.feed(b"body")
        assert (await client.answer()).json == {"got": 4}


async def test_a_failure_of_ours_tells_nothing_of_itself() -> None:
    def fail(body: bytes, reply: Reply) -> None:
        raise RuntimeError("a secret")

    for path in ("/broken", "/yes"):
        async with client_of(Echo(fail)) as client:
            client.send(path=path)
            answer = await client.answer()
            assert answer.status == 500 and b"secret" not in answer.body


async def test_requests_sent_ahead_are_answered_in_order_and_no_more_than_some_are_read() -> None:
    gates = [asyncio.Event() for _ in range(PIPELINE_MAX + 2)]
    seen = iter(range(len(gates)))

    def take(body: bytes, reply: Reply) -> None:
        number = next(seen)

        async def work() -> bytes:
            await gates[number].wait()
            return b"%d" % number

        reply.run(work(), number)

    async with client_of(Echo(take)) as client:
        for _ in range(PIPELINE_MAX + 1):
            client.send()
        assert not client.wire.reading
        for gate in reversed(gates):
            gate.set()
        for number in range(PIPELINE_MAX + 1):
            while client.wire.data.count(b"HTTP/1.1") <= number:
                client.wire.news.clear()
                await client.wire.news.wait()
        assert client.wire.reading
        order = [int(part.split(b'"result":')[1].rstrip(b"}")) for part in client.wire.data.split(b"HTTP/1.1")[1:]]
        assert order == sorted(order) and len(order) == PIPELINE_MAX + 1


class Asked:
    """Keeps every request that was read, and every reply that has begun, until a test answers."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.begun: list[tuple[str, Reply]] = []

    def open(self, head: Head) -> Take:
        self.paths.append(head.path)
        return lambda body, reply: self.begun.append((head.path, reply))

    async def answer(self) -> None:
        """Answers the request whose turn it is; the next one begins."""
        self.begun[-1][1].send(200, b"{}")
        await asyncio.sleep(0)


@pytest.mark.requirement("F10")
async def test_a_client_that_is_far_ahead_is_read_again_only_when_it_no_longer_is() -> None:
    app = Asked()
    async with client_of(app) as client:
        client.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * (3 * PIPELINE_MAX))
        for _ in range(3 * PIPELINE_MAX):
            assert client.wire.reading is (len(app.paths) - len(app.begun) < PIPELINE_MAX)
            await app.answer()
        assert client.wire.reading and client.wire.data.count(b"200 OK") == 3 * PIPELINE_MAX


@pytest.mark.requirement("F10")
async def test_what_one_read_brings_is_parsed_as_it_is_answered() -> None:
    app = Asked()
    requests = [b"GET /%04d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(8_000)]
    at_once = PIPELINE_MAX + 16 * 1024 // len(requests[0]) + 1
    async with client_of(app) as client:
        client.feed(b"".join(requests))
        for number in range(len(requests)):
            assert len(app.paths) - number <= at_once
            await app.answer()
        assert [path for path, _ in app.begun] == app.paths == [f"/{number:04}" for number in range(len(requests))]
        assert client.wire.reading


async def test_what_waits_unparsed_ends_with_the_connection() -> None:
    app = Asked()
    client = HttpClient(app)
    client.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 2_000)
    read = len(app.paths)
    app.begun[0][1].keep_alive = False
    await app.answer()
    assert client.wire.closed and len(app.begun) == 1 and len(app.paths) == read < 2_000
    client.connection.connection_lost(None)


async def test_a_thousand_refusals_in_one_piece_are_a_thousand_refusals() -> None:
    async with client_of(Echo()) as client:
        client.feed(b"GET /no HTTP/1.1\r\nhost: x\r\n\r\n" * 1_000)
        while client.wire.data.count(b"403 Forbidden") < 1_000:
            client.wire.news.clear()
            await client.wire.news.wait()


async def test_the_head_alone_is_sent_without_a_body() -> None:
    async with client_of(Echo()) as client:
        client.feed(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert client.wire.data.endswith(b"\r\n\r\n") and b"content-length: 9" in client.wire.data


async def test_a_long_silence_becomes_a_stream_with_a_sign_of_life() -> None:
    done = asyncio.Event()

    async def work() -> bytes:
        await done.wait()
        return b"{}"

    async with client_of(Echo(running(work))) as client:
        client.send()
        now = asyncio.get_running_loop().time()
        client.connection.tick(now + SSE_PING_S / 2)
        assert not client.wire.data
        client.connection.tick(now + SSE_PING_S + 1)
        assert b"text/event-stream" in client.wire.data and b": ping" in client.wire.data
        done.set()
        assert (await client.answer()).events[-1]["result"] == {}


@pytest.mark.requirement("H3")
async def test_a_client_that_does_not_read_is_cut_off_and_its_call_cancelled() -> None:
    replies: list[Reply] = []

    def take(body: bytes, reply: Reply) -> None:
        replies.append(reply)
        reply.run(forever(), 1)

    async with client_of(Echo(take)) as client:
        client.send()
        client.connection.pause_writing()
        for _ in range(STREAM_BACKLOG):
            replies[0].push(b"{}")
        sent = len(client.wire.data)
        client.connection.resume_writing()
        assert client.wire.data.count(b"data: {}") == STREAM_BACKLOG and len(client.wire.data) > sent
        client.connection.pause_writing()
        with pytest.raises(ConnectionError):
            for _ in range(STREAM_BACKLOG + 1):
                replies[0].push(b"{}")
        assert client.wire.aborted
        task = replies[0].task
        assert task is not None
        await asyncio.wait({task})
        assert task.cancelled()


async def test_there_is_room_for_so_many_connections() -> None:
    server = HttpServer(Echo())
    server.room = CONNECTIONS_MAX
    wires = [Wire() for _ in range(CONNECTIONS_MAX + 1)]
    for wire in wires:
        Connection(server).connection_made(wire)
    assert not any(wire.closed for wire in wires[:-1])
    assert wires[-1].closed and Answer(wires[-1].data, whole=True).status == 503


@pytest.mark.requirement("K12")
async def test_closing_lets_what_is_under_way_end_and_takes_nobody_new() -> None:
    done, begun = asyncio.Event(), asyncio.Event()

    async def work() -> bytes:
        begun.set()
        await done.wait()
        return b"{}"

    server = HttpServer(Echo(running(work)))
    listener = socket.create_server(("127.0.0.1", 0))
    await server.listen(listener)
    address = listener.getsockname()
    idle = await asyncio.open_connection(*address)
    busy = await asyncio.open_connection(*address)
    busy[1].write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    await begun.wait()
    closing = asyncio.create_task(server.close())
    assert await idle[0].read() == b""
    with pytest.raises(OSError):
        await asyncio.open_connection(*address)
    done.set()
    assert b'"result":{}' in await busy[0].read()
    await closing
    for _, writer in (idle, busy):
        writer.close()


async def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "DRAIN_S", 0.01)
    client = HttpClient(Echo(running(forever)))
    client.send()
    task = client.connection.task
    assert task is not None
    await client.server.close()
    assert task.cancelled() and client.wire.aborted


PIECES = [b"{}", b'{"a":1}', b"x" * 200, b""]
HEADS = [
    b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-Other: 1\r\ncontent-length:%d\r\n\r\n",
    b"POST /mcp?q=1 HTTP/1.1\r\nHost: x\r\nContent-Length: %d \r\nAccept: */*\r\n\r\n",
]


@given(
    st.lists(st.tuples(st.sampled_from(HEADS), st.sampled_from(PIECES)), min_size=1, max_size=6),
    st.lists(st.integers(1, 400), max_size=6),
)
def test_a_request_that_needs_no_parser_is_read_as_by_the_parser(
    requests: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    class Noting:
        def __init__(self) -> None:
            self.seen: list[tuple[str, str, dict[str, str], bytes]] = []

        def open(self, head: Head) -> Take:
            head.cleared = True

            def take(body: bytes, reply: Reply) -> None:
                fields = {name: value for name, value in head.headers.items() if name != "content-length"}
                self.seen.append((head.method, head.path, fields, body))
                reply.send(200, b"{}")

            return take

    def read(messages: list[bytes], *, together: bool, cuts: list[int]) -> tuple[Any, int]:
        app = Noting()
        client = HttpClient(app)
        for message in messages:
            if not together:
                client = HttpClient(app)
            places = sorted({0, len(message), *(cut for cut in cuts if cut < len(message))})
            for start, end in pairwise(places):
                client.feed(message[start:end])
        return app.seen, client.wire.data.count(b"HTTP/1.1 200 OK")

    async def both() -> None:
        messages = [head % len(body) + body for head, body in requests]
        apart, _ = read(messages, together=False, cuts=[])
        assert len(apart) == len(messages)
        for pieces in ([], cuts):
            assert read(messages, together=True, cuts=pieces) == (apart, len(messages))

    asyncio.run(both())


@pytest.mark.requirement("F11", "G5")
@pytest.mark.parametrize("field", ["Host", "Origin", "Authorization", "Mcp-Session-Id"])
async def test_who_asks_and_where_is_said_once(field: str) -> None:
    app = Echo()
    async with client_of(app) as client:
        twice = f"{field}: a\r\n{field.lower()}: a\r\n"
        client.feed(f"POST /yes HTTP/1.1\r\nhost: x\r\n{twice}content-length: 0\r\n\r\n".encode())
        answer = await client.answer()
    assert (answer.status, field.lower() in answer.json["error"]) == (400, True)
    assert not app.heads
