"""One write for all that is said to one peer within one turn of the event loop.

A pipe takes many lines as readily as one, and every write is a call of the system that wakes whoever reads. While
much is under way, lines are kept until the turn ends and written together, in their order; a line that is alone is
written at once, so that nobody waits for company that does not come. This is for answers: a server is told of
each call at once, but for those that take the places of answers that came together (`sources.mcp_stdio`).
"""

import asyncio
from collections.abc import Callable


class Outlet:
    """What is written to one peer."""

    __slots__ = ("_waiting", "_write")

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: list[bytes] = []

    def put(self, data: bytes, *, alone: bool) -> None:
        """Writes whole lines: at once if nothing else is to be expected in this turn, else when the turn ends."""
        waiting = self._waiting
        if waiting:
            waiting.append(data)
        elif alone:
            self._write(data)
        else:
            waiting.append(data)
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Writes what was kept."""
        waiting = self._waiting
        if waiting:
            data = waiting[0] if len(waiting) == 1 else b"".join(waiting)
            waiting.clear()
            self._write(data)
