"""An MCP server as a child process that speaks over its standard input and output.

Its output is read in bounded lines as it comes; what is no message is counted, and a line beyond its bound ends the
server. Its standard error is drained and never reaches a model. Ending it ends everything that it started.
"""

import asyncio
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from toolcrib.errors import SourceUnavailable
from toolcrib.limits import EXIT_CODE_S, TERMINATE_S, UPSTREAM_LINE_MAX_BYTES
from toolcrib.sources.json_rpc import LineFramer, Noise
from toolcrib.sources.last_words import last_words
from toolcrib.sources.link import Link, Listener, Waiter
from toolcrib.sources.processes import (
    Guard,
    child_environment,
    keep_three_pipes,
    kill_marked,
    leaves_pipes_open,
    signal_group,
)
from toolcrib.sources.withheld import NOTHING, Withheld, withhold

logger = logging.getLogger("toolcrib.sources")

_WRITE_HIGH_BYTES = 64 * 1024 * 1024
"""What may wait to be written to a server that does not read; then it is ended."""

_CLOSED = {0: "it closed its input", 1: "it closed its output"}
"""What a server of no use any more did, by the pipe that it closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start a server."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None = None


class StdioLink(Link, asyncio.SubprocessProtocol):
    """A running server."""

    def __init__(self, name: str, *, listener: Listener, guard: Guard, mark: str, withheld: Withheld = NOTHING) -> None:
        super().__init__(name, listener=listener, withheld=withheld)
        self.noise = Noise(logger, name, time.monotonic, withheld)
        self.garbage = 0
        """Lines on its output that were no messages."""
        self._framer = LineFramer(UPSTREAM_LINE_MAX_BYTES)
        self._errors = LineFramer(64 * 1024)
        self._guard = guard
        self._mark = mark
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._together: list[bytes] | None = None
        """What is to be written when all lines are taken that have come."""
        self.pid = 0

    @classmethod
    async def start(cls, name: str, command: Command, *, listener: Listener, guard: Guard) -> "StdioLink":
        """Starts the server. Raises `SourceUnavailable`."""
        if any("\0" in part for part in (*command.argv, *command.env, *command.env.values(), command.cwd or "")):
            # Not every event loop minds: one starts the program with what comes before.
            raise SourceUnavailable("its command, an argument or a variable has a null character")
        mark = f"{guard.mark}{os.urandom(4).hex()}"
        environment = child_environment(command.env, mark, os.environ)
        program = shutil.which(command.argv[0], path=environment.get("PATH"))
        if program is None:
            raise SourceUnavailable(f"the program `{command.argv[0]}` was not found")
        if command.cwd is not None and not os.access(command.cwd, os.X_OK):
            raise SourceUnavailable(f"the directory `{command.cwd}` cannot be entered")
        withheld = withhold(command.argv, command.env)
        link = cls(name, listener=listener, guard=guard, mark=mark, withheld=withheld)
        try:
            loop = asyncio.get_running_loop()
            await loop.subprocess_exec(
                lambda: link,
                program,
                *command.argv[1:],
                env=environment,
                cwd=command.cwd,
                start_new_session=sys.platform != "win32",
                preexec_fn=keep_three_pipes if leaves_pipes_open(loop) else None,
            )
        except OSError as error:
            raise SourceUnavailable(f"`{command.argv[0]}` cannot be started: {error.strerror or error}") from None
        return link

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        self._guard.watch(self.pid)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Bytes of its output or its standard error."""
        if fd == 2:
            for line in self._errors.feed(data):
                self.noise.take(line)
            return
        lines = self._framer.feed(data)
        # Each answer makes room for the next call: what is sent while they are taken is written together.
        together = self._together = [] if len(lines) > 1 else None
        try:
            for line in lines:
                if not self.receive(line):
                    self._note_garbage(line)
        finally:
            self._together = None
            if together:
                self._write(b"".join(together))
        if self._framer.overlong and not self.closed.is_set():
            self.fail(f"it sent a line of more than {UPSTREAM_LINE_MAX_BYTES} bytes")
            self._kill()

    def _note_garbage(self, line: bytes) -> None:
        self.garbage += 1
        if self.garbage == 1:
            logger.warning("%s: its output has lines that are no messages: they are counted", self.name)
        self.noise.take(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """One of its pipes closed; without its input or its output it is of no use."""
        if fd in _CLOSED and not self.closed.is_set():
            # The exit code usually follows at once, and says more; on a busy machine it takes its time.
            asyncio.get_running_loop().call_later(EXIT_CODE_S, self._give_up, _CLOSED[fd])

    def process_exited(self) -> None:
        """It has ended."""
        code = self._transport.get_returncode() if self._transport else None
        how = f"it was ended by signal {-code}" if code is not None and code < 0 else f"it exited with code {code}"
        self._exited.set()
        self._guard.forget(self.pid)
        self.fail(self._why(how))
        self._kill()

    def _give_up(self, how: str) -> None:
        self.fail(self._why(how))

    # What callers use

    def send(self, data: bytes, waiter: Waiter | None = None) -> None:
        """Writes one line to its input."""
        if self._stdin is None or self.closed.is_set():
            raise SourceUnavailable(self.reason or _CLOSED[0])
        if self._together is not None:
            self._together.append(data)
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self._stdin is None or self._stdin.is_closing():
            # It is lost; whoever waits for it is told when the link is given up, with the exit code and the last words.
            return
        self._stdin.write(data)
        if self._stdin.get_write_buffer_size() > _WRITE_HIGH_BYTES:
            self.fail("it does not read its input")
            self._kill()

    async def close(self) -> None:
        """Closes its input, waits a little, then ends it and all that it started."""
        self.fail(self.reason or "it was stopped")
        if self._stdin is not None:
            self._stdin.close()
        try:
            if not await self._ended():
                signal_group(self.pid, signal.SIGTERM)
                await self._ended()
        finally:
            # Also if nobody has the patience to wait: nothing is left running.
            self._kill()
            if self._transport is not None:
                self._transport.close()
        if not await self._ended():
            logger.warning("%s: process %d does not end", self.name, self.pid)

    async def _ended(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(TERMINATE_S):
                await self._exited.wait()
        return self._exited.is_set()

    def _kill(self) -> None:
        if self.pid:
            signal_group(self.pid, signal.SIGKILL)
            kill_marked(self._mark)

    def _why(self, how: str) -> str:
        # Who dies in the middle of a sentence ends no line.
        if rest := self._errors.end():
            self.noise.take(rest)
        words = last_words(self.noise.tail)
        return f"{how}; its last words: {words}" if words else how
