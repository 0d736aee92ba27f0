"""The answer to one HTTP request: plain JSON where that is all, a stream of events where more is to be said first.

A stream begins only when there is something to send besides the answer, or when the answer takes long; until then a
wrong request can still get its proper status. Whoever closes the connection cancels what it asked for (F8). A client
that does not read is cut off, not buffered for.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

import orjson

from toolcrib.execution.errands import Errand
from toolcrib.gateway.http_wire import JSON, LAST_CHUNK, Field, Refused, ResponseWriter, chunk_of
from toolcrib.gateway.relay import FAILURE
from toolcrib.limits import SSE_PING_S, STREAM_BACKLOG
from toolcrib.sources.json_rpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Identifier,
    RpcError,
    error_line,
    one_line,
    result_body,
)  # fmt: skip

logger = logging.getLogger("toolcrib.gateway")

STATUS: Mapping[int, int] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The status of an error that a modern client gets as plain JSON."""

_STREAM: Sequence[Field] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_PING = b": ping\r\n\r\n"


class Line(Protocol):
    """The connection that a reply is written to."""

    is_full: bool
    """Whether the client reads more slowly than is written."""

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        ...

    def finish(self, keep_alive: bool) -> None:
        """Is told that the reply is complete."""
        ...

    def abort(self) -> None:
        """Ends the connection at once."""
        ...


class Reply:
    """One response, written once: as a whole, or as a stream of events."""

    def __init__(
        self,
        line: Line,
        writer: ResponseWriter,
        loop: asyncio.AbstractEventLoop,
        now: float,
        keep_alive: bool,
        chunked: bool,
        bodiless: bool,
    ) -> None:
        self.keep_alive = keep_alive
        self.closed = False
        """Whether nothing more can be sent."""
        self.task: asyncio.Task[None] | None = None
        self.errand: Errand | None = None
        """What the client waits for: one of them, or neither."""
        self.loop = loop
        self._work: Coroutine[Any, Any, bytes] | None = None
        """What has not begun yet."""
        self._line = line
        self._writer = writer
        self._chunked = chunked
        self._bodiless = bodiless
        self._streaming = False
        self._whole = False
        """Whether the response comes as a whole, however long it takes."""
        self._waiting: list[bytes] = []
        self._written_at = now

    # What an application does

    def send(self, status: int, body: bytes = b"", fields: Sequence[Field] = (), kind: Field = JSON) -> None:
        """Sends a whole response."""
        if self.closed:
            return
        if status == 200 and body and kind is JSON and not fields and self.keep_alive:
            head = self._writer.json_head(len(body))
        else:
            shown = (kind, *fields) if body else fields
            head = self._writer.head(status, shown, length=len(body), keep_alive=self.keep_alive, chunked=False)
        self._line.write(head if self._bodiless else head + body)
        self._end()

    def refuse(self, error: Refused) -> None:
        """Sends a refusal."""
        self.send(error.status, orjson.dumps({"error": str(error)}), error.headers)

    def send_error(self, status: int, error: RpcError, identifier: Identifier | None = None) -> None:
        """Sends an error as a whole response."""
        self.send(status, error_line(identifier, error).rstrip())

    def run(
        self, work: Coroutine[Any, Any, bytes], identifier: Identifier, *, statuses: Mapping[int, int] | None = None
    ) -> None:
        """Runs the work and answers with its result; it is cancelled if the client goes away."""
        self._work = work
        self.task = self.loop.create_task(self._answer(work, identifier, statuses or {}))

    def run_whole(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs work that sends a whole response itself: nothing is said before it, however long it takes."""
        self._whole = True
        self.task = self.loop.create_task(work)

    def conclude(self, status: int, body: bytes) -> None:
        """Sends the answer: as a whole response, or as the last event of a stream."""
        self.errand = None
        if self.closed:
            return
        if not self._streaming:
            if status == 200 and self.keep_alive and not self._bodiless:
                # The usual answer, without asking again what it is.
                self.closed, line = True, self._line
                line.write(self._writer.json_head(len(body)) + body)
                line.finish(True)
            else:
                self.send(status, body)
            return
        self.flush()
        self._emit(event_of(body))
        self.close()

    def break_off(self) -> None:
        """Ends the connection, because there will be no answer."""
        self.errand = None
        if not self.closed:
            self._line.abort()
            self.closed = True

    def begin_stream(self, fields: Sequence[Field] = ()) -> None:
        """Begins a stream; nothing of it is an answer yet."""
        if self._streaming or self.closed:
            return
        self._streaming = True
        self.keep_alive = self.keep_alive and self._chunked
        shown = (*_STREAM, *fields)
        self._line.write(self._writer.head(200, shown, length=None, keep_alive=self.keep_alive, chunked=self._chunked))

    def push(self, message: bytes, backlog: int = STREAM_BACKLOG) -> None:
        """Sends a message before the answer; so many may wait. Raises `ConnectionError` if nobody reads."""
        if self.closed:
            raise ConnectionError("the client went away")
        self.begin_stream()
        if not self._line.is_full:
            self._emit(event_of(message))
        elif len(self._waiting) < backlog:
            self._waiting.append(event_of(message))
        else:
            self._line.abort()
            self.gone()
            raise ConnectionError("the client does not read")

    def close(self) -> None:
        """Ends a stream, or a response that was never begun."""
        if self.closed:
            return
        if not self._streaming:
            self.keep_alive = False
            self.refuse(Refused(503, "The gateway is stopping."))
            return
        self.flush()
        if self._chunked:
            self._line.write(LAST_CHUNK)
        self._end()

    # What the connection does

    def flush(self) -> None:
        """Sends what waited for the client to read."""
        if self._waiting:
            events, self._waiting = b"".join(self._waiting), []
            self._emit(events)

    def gone(self) -> None:
        """The client has left: nobody waits for the work any more."""
        self.closed = True
        self._waiting.clear()
        self.cancel()
        if self._work is not None:  # cancelled before its first step: nobody else ends it
            self._work.close()

    def cancel(self) -> None:
        """Ends what the client waits for."""
        errand, self.errand = self.errand, None
        if errand is not None:
            errand.cancel()
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def tick(self, now: float) -> None:
        """Says something after a long silence, so that no proxy takes the connection for dead."""
        if not self.closed and not self._whole and now - self._written_at >= SSE_PING_S:
            self._written_at = now
            self.begin_stream()
            if not self._line.is_full:
                self._emit(_PING)

    # Inside

    def _emit(self, events: bytes) -> None:
        self._line.write(chunk_of(events) if self._chunked else events)

    def _end(self) -> None:
        self.closed = True
        self._line.finish(self.keep_alive)

    async def _answer(
        self, work: Coroutine[Any, Any, bytes], identifier: Identifier, statuses: Mapping[int, int]
    ) -> None:
        self._work = None
        try:
            status, body = 200, result_body(identifier, await work)
        except RpcError as error:
            status, body = statuses.get(error.code, 200), error_line(identifier, error)
        except asyncio.CancelledError:
            self.break_off()
            raise
        except Exception:
            logger.exception("a request failed")
            status, body = 500, error_line(identifier, FAILURE)
        self.conclude(status, body.rstrip())


def event_of(message: bytes) -> bytes:
    """One message as a server-sent event; a line end between its parts would end it."""
    return b"event: message\r\ndata: " + one_line(message.rstrip()) + b"\r\n\r\n"
