"""Connections of HTTP clients: bounded in number, size and time, one reply after the other.

A head, a body and a silence each have a limit, so that nobody holds a connection by sending a byte now and then. A
request is judged by its head before its body is read; what is refused is not kept. TLS is left to a reverse proxy.
One clock ticks for all connections, so that a request costs no timer.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.http_wire import (
    CONTINUE,
    ONCE,
    Field,
    Head,
    Known,
    Refused,
    ResponseWriter,
    build_head,
    plain_head,
    too_large,
    with_length,
)  # fmt: skip
from toolcrib.gateway.listening import connections_room
from toolcrib.limits import (
    CONNECTIONS_MAX,
    DRAIN_S,
    HEAD_MAX_BYTES,
    KEEP_ALIVE_S,
    PIPELINE_MAX,
    REQUEST_MAX_BYTES,
    REQUEST_READ_S,
    WRITE_STALL_S,
)

logger = logging.getLogger("toolcrib.gateway")

_TICK_S = 1.0
_PIECE_BYTES = 16 * 1024
"""What is parsed before it is looked whether the client is too far ahead: one read can bring thousands of requests."""

Take = Callable[[bytes, Reply], None]
"""Takes the body of a request that was let in, and answers. Raises `Refused`."""


class Application(Protocol):
    """What answers requests."""

    def open(self, head: Head) -> Take:
        """What takes the body, if the request is let in. Raises `Refused`."""
        ...


class HttpServer:
    """All connections of one application."""

    def __init__(self, app: Application, *, most: int = CONNECTIONS_MAX) -> None:
        self.app = app
        self.writer = ResponseWriter()
        self.room = min(most, connections_room())
        self.connections: set[Connection] = set()
        self._listening: asyncio.Server | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def listen(self, listener: socket.socket) -> None:
        """Serves the clients that come to a socket."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Connection(self), sock=listener, backlog=CONNECTIONS_MAX)
        self._ticking = loop.call_later(_TICK_S, self._tick)

    async def close(self) -> None:
        """Takes no more clients, lets what is under way end, but not for ever (K12)."""
        if self._listening is not None:
            self._listening.close()
        for connection in tuple(self.connections):
            connection.retire()
        try:
            async with asyncio.timeout(DRAIN_S):
                await self._idle.wait()
        except TimeoutError:
            tasks = [task for connection in self.connections if (task := connection.task) is not None]
            for connection in tuple(self.connections):
                connection.abort()
                connection.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._ticking is not None:
            self._ticking.cancel()

    def enter(self, connection: "Connection") -> bool:
        """Takes a new connection, if there is room for one."""
        if len(self.connections) >= self.room:
            return False
        self.connections.add(connection)
        self._idle.clear()
        return True

    def leave(self, connection: "Connection") -> None:
        """Forgets a connection."""
        self.connections.discard(connection)
        if not self.connections:
            self._idle.set()

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in tuple(self.connections):
            connection.tick(now)
        self._ticking = loop.call_later(_TICK_S, self._tick)


class Connection(asyncio.Protocol):
    """One client's connection: reads requests, and writes their replies in order."""

    def __init__(self, server: HttpServer) -> None:
        self.is_full = False
        self._server = server
        self._app = server.app
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._address = "?"
        self._since = self._loop.time()
        """When the request began that is being read, the last reply ended, or the client had read it."""
        self._unread = 0
        self._read_at = self._since
        """What waited to be read at the last look, and when it last became less."""
        self._reply: Reply | None = None
        self._queue: deque[tuple[Take | Refused, bytes, bool, bool, bool]] = deque()
        """Whole requests that wait for the reply before theirs, or for the client to read it."""
        self._rest = b""
        """What came, and is not parsed as long as the client is too far ahead."""
        self._retired = self._paused = False
        self._ignoring = False
        self._in_head = True
        self._around_body = 0
        """What came of the request since it began, or since the last piece with a part of its body."""
        self._target = b""
        self._fields: list[Field] = []
        self._method = ""
        self._said: tuple[str, bytes, list[Field]] | None = None
        self._head = Head(method="", path="", headers={})
        """The last head, and what it was read from."""
        self._known: Known | None = None
        self._learnt: Head | None = None
        """What the client always says, and the head that it was learnt from."""
        self._begun = 0
        """Requests that the parser has seen."""
        self._verdict: Take | Refused | None = None
        self._answered = False
        self._body: list[bytes] = []
        self._body_size = 0
        self._reading = False

    @property
    def task(self) -> "asyncio.Task[None] | None":
        """What the client waits for now."""
        return self._reply.task if self._reply is not None else None

    @property
    def unread(self) -> int:
        """Bytes that wait for the client to read."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast("asyncio.Transport", transport)
        peer = cast("object", transport.get_extra_info("peername"))
        if isinstance(peer, tuple) and peer:
            self._address = str(cast("tuple[object, ...]", peer)[0])
        if not self._server.enter(self):
            self._ignoring = True
            self._refuse_now(Refused(503, "Too many connections are open."))

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._ignoring = True
        self._queue.clear()
        self._rest = b""
        if self._reply is not None:
            self._reply.gone()
            self._reply = None
        self._server.leave(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        if self._ignoring:
            return
        fresh = not self._reading
        if fresh:
            known = self._known
            if known is not None and self._reply is None and not self._queue:
                body = known.body_of(data, REQUEST_MAX_BYTES)
                if body is not None:
                    self._since = self._loop.time()
                    self._answered = False
                    self._start(self._admit(known.head), body, True, True, False)
                    return
            self._reading = True
            self._since = self._loop.time()
        begun = self._begun
        if len(data) <= _PIECE_BYTES and not self._paused:
            self._parse_piece(data)
        else:
            self._parse(self._rest + data)
        if fresh and self._begun == begun + 1 and not (self._reading or self._ignoring or self._rest):
            self._learn(data)

    def _parse(self, data: bytes) -> None:
        """Parses until the client is too far ahead; the rest waits as bytes, which cost the least."""
        at = 0
        while at < len(data) and not self._paused and not self._ignoring:
            self._parse_piece(data[at : at + _PIECE_BYTES])
            at += _PIECE_BYTES
        self._rest = b"" if self._ignoring else data[at:]

    def _parse_piece(self, data: bytes) -> None:
        begun, body_size, rest = self._begun, self._body_size, data
        try:
            while rest:
                rest = self._feed(rest)
        except httptools.HttpParserError:
            self._refuse_now(Refused(400, "This is no HTTP request."))
        if not self._reading or self._begun != begun:
            return  # where in these bytes the request began is not known
        if self._body_size != body_size:
            self._around_body = 0
            return
        self._around_body += len(data)
        if self._around_body > HEAD_MAX_BYTES:
            self._refuse_now(Refused(431, f"The fields of a request have at most {HEAD_MAX_BYTES} bytes."))

    def _feed(self, data: bytes) -> bytes:
        """Parses; what is left begins with a head that is to be read again. Raises `HttpParserError`."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._method == "CONNECT":
                self._refuse_now(Refused(400, "No other protocol is spoken here."))
                return b""
            # The offer of another protocol is not taken (RFC 9110 7.8): the request is what it is without it.
            head = plain_head(self._fields, self._method, self._target, self._parser.get_http_version())
            self._parser = httptools.HttpRequestParser(self)
            return head + data[cast("int", upgrade.args[0]) :]
        return b""

    def _learn(self, data: bytes) -> None:
        """Remembers a request that came alone, whole and as usual: the next ones need no parser if they are like it."""
        head = self._head
        if head is not self._learnt and head.cleared and self._parser.should_keep_alive():
            self._learnt = head
            if self._parser.get_http_version() == "1.1":
                self._known = Known.of(data, head)

    def pause_writing(self) -> None:
        """The client reads too slowly: nothing more is read from it, and nothing more begun for it."""
        self.is_full = True
        self._keep_pace()

    def resume_writing(self) -> None:
        """The client has read."""
        self.is_full = False
        if self._reply is not None:
            self._reply.flush()
        else:
            self._since = self._loop.time()
            self._advance()
        self._keep_pace()

    # What the parser calls

    def on_message_begin(self) -> None:
        """A request begins."""
        self._begun += 1
        self._reading = self._in_head = True
        self._around_body = self._body_size = 0
        self._target = b""
        self._fields, self._body = [], []
        self._verdict = None
        self._answered = False

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field; those after a body say nothing that is heard."""
        if self._in_head:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole: the request is judged."""
        self._in_head = False
        self._method = self._parser.get_method().decode("latin-1")
        if self._parser.should_upgrade():
            return
        head = self._read_head()
        verdict = self._verdict = self._judge(head)
        if self._must_wait():
            return
        if isinstance(verdict, Refused) and "content-length" in head.headers:
            # Whoever sends much, or waits to be told to, is told now.
            self._answer_early(verdict)
        elif "expect" in head.headers:
            self.write(CONTINUE)

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        self._body_size += len(data)
        if self._body_size > REQUEST_MAX_BYTES:
            self._refuse_now(too_large())
        elif not isinstance(self._verdict, Refused):
            self._body.append(data)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._parser.should_upgrade():
            return
        self._reading = False
        self._since = self._loop.time()
        verdict = self._verdict
        if verdict is None or self._answered or self._ignoring:
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        chunked = self._parser.get_http_version() != "1.0"
        item = (verdict, body, self._parser.should_keep_alive(), chunked, self._method == "HEAD")
        if self._must_wait():
            self._queue.append(item)
            self._keep_pace()
            return
        self._start(*item)

    def _read_head(self) -> Head:
        """The head; a client that says the same as before has the same one."""
        said = (self._method, self._target, self._fields)
        before = self._said
        if said != before:
            self._said = said
            head = None
            if before is not None and said[0] == before[0] and said[1] == before[1]:
                head = with_length(self._head, before[2], self._fields)
            self._head = head or build_head(
                self._fields, method=self._method, target=self._target.decode("latin-1"), address=self._address
            )
        return self._head

    # What a reply does

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def finish(self, keep_alive: bool) -> None:
        """The reply is complete: the next one, or the end."""
        self._reply = None
        self._since = self._loop.time()
        if not keep_alive or self._retired:
            self._close()
        elif self._queue and not self.is_full:
            self._loop.call_soon(self._advance)

    def abort(self) -> None:
        """Ends the connection at once."""
        self._ignoring = True
        if self._transport is not None:
            self._transport.abort()

    # What the server does

    def cancel(self) -> None:
        """Ends what the client waits for."""
        if self._reply is not None:
            self._reply.cancel()

    def retire(self) -> None:
        """Ends the connection as soon as nothing is under way."""
        self._retired = True
        if self._reply is not None:
            self._reply.keep_alive = False
        else:
            self._close()

    def tick(self, now: float) -> None:
        """Ends a silence: of a reply by a word, of a client by closing."""
        if self._is_stalled(now):
            self.abort()
        elif self._reply is not None:
            self._reply.tick(now)
        elif self._paused:
            pass  # nothing is read from the client, so it cannot be late
        elif self._reading and now - self._since > REQUEST_READ_S:
            self._refuse_now(Refused(408, "The request came too slowly."))
        elif now - self._since > KEEP_ALIVE_S:
            self._close()

    # Inside

    def _is_stalled(self, now: float) -> bool:
        """Whether the client has read nothing for too long of what waits for it (F10)."""
        unread = self.unread
        if unread == 0 or unread < self._unread:
            self._read_at = now
        self._unread = unread
        return unread > 0 and now - self._read_at > WRITE_STALL_S

    def _judge(self, head: Head) -> Take | Refused:
        """What takes the body, or why it is not read."""
        if twice := head.repeated & ONCE:
            return Refused(400, f"A request has one field {min(twice)}.")
        verdict, length = self._admit(head), head.headers.get("content-length")
        if not isinstance(verdict, Refused) and length and int(length) > REQUEST_MAX_BYTES:
            return too_large()
        return verdict

    def _admit(self, head: Head) -> Take | Refused:
        """What the application says to a head that is in order."""
        try:
            return self._app.open(head)
        except Refused as error:
            return error
        except Exception:
            logger.exception("a request failed")
            return Refused(500, "The gateway failed; its log says why.")

    def _must_wait(self) -> bool:
        """Whether a request that is read now is answered later."""
        return self._reply is not None or self.is_full or bool(self._queue)

    def _advance(self) -> None:
        """Answers the next request that waits."""
        if self._reply is not None or self.is_full or self._ignoring or not self._queue:
            return
        self._start(*self._queue.popleft())
        self._keep_pace()

    def _keep_pace(self) -> None:
        """Reads from a client only as long as it reads itself, and is not too far ahead of its replies."""
        transport = self._transport
        paused = self.is_full or len(self._queue) >= PIPELINE_MAX
        if paused is self._paused or transport is None or transport.is_closing():
            return
        self._paused = paused
        if paused:
            transport.pause_reading()
            return
        self._parse(self._rest)
        if not self._paused and not transport.is_closing():
            transport.resume_reading()

    def _start(self, verdict: Take | Refused, body: bytes, keep_alive: bool, chunked: bool, bodiless: bool) -> None:
        keep_alive = keep_alive and not self._retired
        reply = Reply(self, self._server.writer, self._loop, self._since, keep_alive, chunked, bodiless)
        self._reply = reply
        try:
            if isinstance(verdict, Refused):
                raise verdict
            verdict(body, reply)
        except Refused as error:
            reply.refuse(error)
        except Exception:
            logger.exception("a request failed")
            reply.refuse(Refused(500, "The gateway failed; its log says why."))

    def _answer_early(self, error: Refused) -> None:
        """Answers before the body has come; the rest of it is read and dropped, within its limits."""
        self._answered = True
        self._start(error, b"", self._parser.should_keep_alive(), True, self._method == "HEAD")

    def _refuse_now(self, error: Refused) -> None:
        """Ends the connection with a word; a reply under way keeps its own end."""
        self._reading = False
        if self._reply is not None:
            self._retired = self._ignoring = True
            self._queue.clear()
            return
        if self._answered or self._queue:
            self._close()
            return
        self._ignoring = True
        self._start(error, b"", False, True, False)

    def _close(self) -> None:
        """Takes nothing more, and ends the connection once the client has read what was sent."""
        self._ignoring = True
        self._queue.clear()
        self._rest = b""
        if self._transport is not None:
            self._transport.close()
