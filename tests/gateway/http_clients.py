"""A client of the gateway's HTTP side for tests: real bytes, through the real parser, without a socket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from toolcrib.gateway.http_connections import Application, Connection, HttpServer


class Answer:
    """One response."""

    def __init__(self, raw: bytes, *, whole: bool) -> None:
        head, _, body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        pairs = [line.partition(": ") for line in lines]
        self.headers = {name: value for name, _, value in pairs}
        self.body = body
        if self.headers.get("transfer-encoding") == "chunked":
            self.body = b"".join(_chunks(body, whole=whole))

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        return [orjson.loads(line[6:]) for line in self.body.splitlines() if line.startswith(b"data: ")]


def _chunks(data: bytes, *, whole: bool) -> list[bytes]:
    found: list[bytes] = []
    while data:
        size, _, data = data.partition(b"\r\n")
        if int(size, 16) == 0:
            assert data == b"\r\n"
            return found
        found.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]
    assert not whole, "the last chunk is missing"
    return found


class Wire(asyncio.Transport):
    """The other end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.closed = False
        self.aborted = False
        self.reading = True
        self.news = asyncio.Event()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 5) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.data += data
        self.news.set()

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        self.news.set()

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class HttpClient:
    """One connection to the application."""

    def __init__(self, app: Application) -> None:
        self.server = HttpServer(app)
        self.connection = Connection(self.server)
        self.wire = Wire()
        self.connection.connection_made(self.wire)

    def send(self, method: str = "POST", path: str = "/mcp", body: Any = b"", **headers: str) -> None:
        """Sends one request; blank headers are left out."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        defaults = {"host": "127.0.0.1:8765", "content-type": "application/json",
                    "accept": "application/json, text/event-stream", "content-length": str(len(data))}  # fmt: skip
        fields = {**defaults, **{key.replace("_", "-"): value for key, value in headers.items()}}
        lines = [f"{method} {path} HTTP/1.1", *(f"{key}: {value}" for key, value in fields.items() if value)]
        self.feed("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data)

    def feed(self, data: bytes) -> None:
        """Sends bytes."""
        self.connection.data_received(data)

    async def answer(self, *, gone: asyncio.Event | None = None, until: bytes | None = None) -> Answer:
        """The whole response, or as much of it as there is when the client leaves."""
        leaving = asyncio.ensure_future((gone or asyncio.Event()).wait())
        try:
            while not _is_whole(self.wire.data) and not self.wire.closed:
                if leaving.done() or (until is not None and until in self.wire.data):
                    await self.leave()
                    return Answer(self.wire.data, whole=False)
                self.wire.news.clear()
                news = asyncio.ensure_future(self.wire.news.wait())
                await asyncio.wait({news, leaving}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            leaving.cancel()
        raw, self.wire.data = self.wire.data, b""
        return Answer(raw, whole=not self.wire.aborted)

    async def leave(self) -> None:
        """Closes the connection; what it asked for is cancelled."""
        task = self.connection.task
        self.wire.close()
        self.connection.connection_lost(None)
        if task is not None:
            await asyncio.wait({task})


def _is_whole(raw: bytes) -> bool:
    head, found, body = raw.partition(b"\r\n\r\n")
    if not found:
        return False
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
    return len(body) >= length


@asynccontextmanager
async def client_of(app: Application) -> AsyncGenerator[HttpClient]:
    """A connection to the application, closed in the end."""
    client = HttpClient(app)
    try:
        yield client
    finally:
        await client.leave()
