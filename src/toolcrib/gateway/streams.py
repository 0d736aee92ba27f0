"""Standard input and output, whatever stands there: a pipe, a socket, a terminal, a file or nothing.

An event loop can wait for the first three. A file is always ready and cannot be waited for: it is read piece by piece
in a thread, and written at once.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from typing import Protocol, TextIO

_PIECE_BYTES = 65_536


class Input(Protocol):
    """Where bytes come from."""

    def close(self) -> None:
        """Takes no more."""


class Output(Protocol):
    """Where bytes go."""

    def write(self, data: bytes) -> None:
        """Sends them, now or as soon as they can go."""

    def is_closing(self) -> bool:
        """Whether nobody reads them any more."""
        ...

    def get_write_buffer_size(self) -> int:
        """Bytes that are still on their way."""
        ...

    def close(self) -> None:
        """Sends no more."""


async def open_input(stream: TextIO | None, feed: Callable[[bytes], None], ended: asyncio.Event) -> Input:
    """Hands every piece of a stream to `feed` as it comes, and sets `ended` behind the last one."""
    if stream is not None and _can_wait(stream.fileno()):
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: _Pipe(feed, ended), stream.buffer)
        return transport
    return _FileInput(None if stream is None else stream.fileno(), feed, ended)


async def open_output(stream: TextIO | None) -> Output:
    """The way out; without a stream, one that nobody reads."""
    if stream is not None and _can_wait(stream.fileno()):
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.BaseProtocol, stream.buffer)
        return transport
    return _FileOutput(None if stream is None else stream.fileno())


def _can_wait(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


class _Pipe(asyncio.Protocol):
    """Hands on what arrives at once: no task, no buffer in between."""

    def __init__(self, feed: Callable[[bytes], None], ended: asyncio.Event) -> None:
        self._feed = feed
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        self._feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client closed its end."""
        self._ended.set()


class _FileInput:
    """Reads a file to its end."""

    def __init__(self, descriptor: int | None, feed: Callable[[bytes], None], ended: asyncio.Event) -> None:
        self._task = asyncio.get_running_loop().create_task(self._read(descriptor, feed, ended))

    def close(self) -> None:
        self._task.cancel()

    async def _read(self, descriptor: int | None, feed: Callable[[bytes], None], ended: asyncio.Event) -> None:
        try:
            while descriptor is not None and (piece := await asyncio.to_thread(os.read, descriptor, _PIECE_BYTES)):
                feed(piece)
        finally:
            ended.set()


class _FileOutput:
    """Writes to a file, which takes everything at once."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        while self._descriptor is not None and data:
            data = data[os.write(self._descriptor, data) :]

    def is_closing(self) -> bool:
        return self._descriptor is None

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self._descriptor = None
