"""The least that a relay from HTTP to pipes can do: `python relay_http.py PORT COMMAND ...`.

It finds the body by its length, rewrites the id, and passes the bytes on; no check, no session, no limit.
"""

import asyncio
import sys

import uvloop
from msgspec import UNSET, Raw, UnsetType

from bench.middles.relay_stdio import decode, encode


class Relay(asyncio.Protocol):
    """One connection."""

    def __init__(self, link: "Link") -> None:
        self._link = link
        self._data = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # pyright: ignore[reportAttributeAccessIssue]

    def data_received(self, data: bytes) -> None:
        self._data += data
        while True:
            head, found, rest = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            place = head.lower().find(b"content-length: ") + 16
            length = int(head[place : head.find(b"\r\n", place) if b"\r\n" in head[place:] else None])
            if len(rest) < length:
                return
            self._data = rest[length:]
            self._link.ask(rest[:length], self)

    def answer(self, body: bytes) -> None:
        if self.transport is not None:
            kind = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: 1\r\n"
            self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (kind, len(body), body))


class Link(asyncio.SubprocessProtocol):
    """The server behind."""

    def __init__(self) -> None:
        self._rest = b""
        self._number = 0
        self._waiting: dict[int, tuple[Raw, Relay]] = {}
        self.stdin: asyncio.WriteTransport | None = None

    def ask(self, body: bytes, relay: Relay) -> None:
        assert self.stdin is not None
        message = decode(body)
        if isinstance(message.id, UnsetType):
            relay.answer(b"")
        else:
            self._number += 1
            self._waiting[self._number] = (message.id, relay)
            message.id = Raw(str(self._number).encode())
        self.stdin.write(encode(message) + b"\n")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = decode(line)
            if message.id is not UNSET:
                message.id, relay = self._waiting.pop(int(bytes(message.id)))
                relay.answer(encode(message))


async def main() -> None:
    loop = asyncio.get_running_loop()
    transport, link = await loop.subprocess_exec(Link, *sys.argv[2:], stderr=None)
    link.stdin = transport.get_pipe_transport(0)  # pyright: ignore[reportAttributeAccessIssue]
    server = await loop.create_server(lambda: Relay(link), "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
