"""Child processes with a deadline, a bounded output and no way to outlive their call.

A child leads its own process group, and the whole group is ended when the child is done, late or cancelled. It does
not inherit the environment's secrets.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolcrib.limits import OUTPUT_MAX_CHARS

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What became of a child."""

    output: str
    status: int | None
    """Exit status; nothing if it was ended at its deadline."""


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without anything whose name sounds like a secret."""
    known = os.environ if environ is None else environ
    return {name: value for name, value in known.items() if not _SECRET.search(name)}


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
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=child_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        pass_fds=tuple(pass_fds),
    )
    if process.stdout is None:
        raise AssertionError("the output is a pipe")
    tail = _Tail(room)
    reading = asyncio.create_task(_drain(process.stdout, tail))
    status: int | None = None
    try:
        async with asyncio.timeout(deadline_s):
            status = await process.wait()
    except TimeoutError:
        pass
    finally:
        # The group is ended even after success: a background child would hold the pipe and outlive the call.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await reading
    return Finished(output=tail.text(), status=status)


async def _drain(stream: asyncio.StreamReader, tail: _Tail) -> None:
    while data := await stream.read(65_536):
        tail.take(data)
