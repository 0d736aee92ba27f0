"""Child processes with a deadline, a bounded output and no way to outlive their call.

A child leads its own process group, and the whole group is ended when the child is done, late or cancelled. It does
not inherit the environment's secrets.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolcrib.limits import OUTPUT_MAX_CHARS
from toolcrib.sources.withheld import sounds_secret

_GRACE_S = 1.0
"""Seconds that the output may take to arrive after its program has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What became of a child."""

    output: str
    status: int | None
    """Exit status; nothing if it was ended at its deadline."""


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without anything whose name sounds like a secret."""
    known = os.environ if environ is None else environ
    return {name: value for name, value in known.items() if not sounds_secret(name)}


class _Tail:
    """Keeps the beginning and the end of a stream."""

    def __init__(self, room: int) -> None:
        self._half = room // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def take(self, data: bytes) -> None:
        free = self._half - len(self._head)
        self._head += data[:free]
        self._tail += data[free:] if free > 0 else data
        if len(self._tail) > self._half:
            self._dropped += len(self._tail) - self._half
            del self._tail[: len(self._tail) - self._half]

    def text(self) -> str:
        gap = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode(errors="replace")


async def run_child(
    argv: Sequence[str], *, cwd: Path, deadline_s: float, pass_fds: Sequence[int] = (), room: int = OUTPUT_MAX_CHARS
) -> Finished:
    """Runs a program to its end or its deadline. No shell reads the arguments."""
    # A pipe of our own: asyncio's waits for everybody who holds it, the program's own children included.
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), open(reading, "rb"))  # noqa: ASYNC230, PTH123, SIM115 - a pipe, owned by the transport
    tail = _Tail(room)
    draining = asyncio.create_task(_drain(reader, tail))
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=child_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
        os.close(writing)
        writing = -1
        status = await _wait(process, deadline_s)
        # Whoever left the group and kept the pipe is not waited for.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await asyncio.shield(draining)
    finally:
        if writing >= 0:
            os.close(writing)
        transport.close()
        draining.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await draining
    return Finished(output=tail.text(), status=status)


async def _wait(process: asyncio.subprocess.Process, deadline_s: float) -> int | None:
    """The exit status, or nothing at the deadline. Either way the whole group is ended."""
    try:
        async with asyncio.timeout(deadline_s):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _drain(stream: asyncio.StreamReader, tail: _Tail) -> None:
    while data := await stream.read(65_536):
        tail.take(data)
