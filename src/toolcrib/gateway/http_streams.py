"""The answer to one HTTP request: plain JSON where that is all, a stream of events where more is to be said first.

A stream begins only when there is something to send besides the answer, or when the answer takes long; until then a
wrong request can still get its proper status. Whoever closes the connection cancels what it asked for (F8). A client
that does not read is cut off, not buffered for.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

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
    result_line,
)  # fmt: skip

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

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

_JSON = (b"content-type", b"application/json")
_STREAM: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


async def send_body(send: Send, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
    """Sends a whole response."""
    fields: Headers = [(b"content-length", str(len(body)).encode()), *(headers or [])]
    if body:
        fields.append(_JSON)
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, status: int, error: RpcError, identifier: Identifier | None = None) -> None:
    """Sends an error as a whole response."""
    await send_body(send, status, error_line(identifier, error).rstrip())


class Stream:
    """What is sent to a client before its answer, in order."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._news = asyncio.Event()
        self.first: asyncio.Future[None] | None = None
        """Done as soon as there is anything to send."""
        self.closed = False

    def push(self, message: bytes) -> None:
        """Adds a message. Raises `ConnectionError` if nobody reads."""
        if self.closed or len(self._messages) >= STREAM_BACKLOG:
            self.close()
            raise ConnectionError("the client does not read")
        self._messages.append(message)
        self._news.set()
        if self.first is not None and not self.first.done():
            self.first.set_result(None)

    def close(self) -> None:
        """Ends the stream."""
        self.closed = True
        self._news.set()

    async def wait(self) -> None:
        """Waits for a message or the end."""
        await self._news.wait()

    def take(self) -> bytes:
        """All waiting messages as events."""
        self._news.clear()
        events = b"".join(event_of(message) for message in self._messages)
        self._messages.clear()
        return events


def event_of(message: bytes) -> bytes:
    """One message as a server-sent event; JSON has no raw line breaks."""
    return b"event: message\r\ndata: " + message.rstrip() + b"\r\n\r\n"


async def respond(
    work: Coroutine[Any, Any, bytes],
    identifier: Identifier,
    stream: Stream,
    receive: Receive,
    send: Send,
    *,
    headers: Headers | None = None,
    statuses: Mapping[int, int] | None = None,
) -> None:
    """Runs the work and answers with its result; ends it if the client goes away."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    gone = loop.create_task(_disconnected(receive))
    stream.first = loop.create_future()
    try:
        await asyncio.wait((task, stream.first, gone), return_when=asyncio.FIRST_COMPLETED, timeout=SSE_PING_S)
        if task.done() and not stream.first.done():
            status, body = _outcome(task, identifier, statuses)
            await send_body(send, status, body, headers)
        elif not gone.done():
            await _stream(task, identifier, stream, gone, send, headers)
    finally:
        stream.close()
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _stream(
    task: "asyncio.Task[bytes]",
    identifier: Identifier,
    stream: Stream,
    gone: "asyncio.Task[None]",
    send: Send,
    headers: Headers | None,
) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*_STREAM, *(headers or [])]})
    while not task.done() and not gone.done():
        await send({"type": "http.response.body", "body": stream.take() or b": ping\r\n\r\n", "more_body": True})
        news = asyncio.get_running_loop().create_task(stream.wait())
        await asyncio.wait({task, news, gone}, return_when=asyncio.FIRST_COMPLETED, timeout=SSE_PING_S)
        news.cancel()
    if gone.done():
        return
    last = stream.take() + event_of(_outcome(task, identifier, None)[1])
    await send({"type": "http.response.body", "body": last, "more_body": False})


async def stream_only(stream: Stream, receive: Receive, send: Send) -> None:
    """Serves a stream that is no answer, until it or the client ends."""
    loop = asyncio.get_running_loop()
    gone = loop.create_task(_disconnected(receive))
    try:
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        while not gone.done() and not stream.closed:
            await send({"type": "http.response.body", "body": stream.take() or b": ping\r\n\r\n", "more_body": True})
            news = loop.create_task(stream.wait())
            await asyncio.wait({news, gone}, return_when=asyncio.FIRST_COMPLETED, timeout=SSE_PING_S)
            news.cancel()
        if not gone.done():
            await send({"type": "http.response.body", "body": stream.take(), "more_body": False})
    finally:
        stream.close()
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone


async def _disconnected(receive: Receive) -> None:
    while (await receive()).get("type") != "http.disconnect":
        pass


def _outcome(
    task: "asyncio.Task[bytes]", identifier: Identifier, statuses: Mapping[int, int] | None
) -> tuple[int, bytes]:
    error = task.exception()
    if error is None:
        return 200, result_line(identifier, task.result()).rstrip()
    if not isinstance(error, RpcError):
        raise error
    return (statuses or {}).get(error.code, 200), error_line(identifier, error).rstrip()
