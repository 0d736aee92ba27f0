"""One client at a time, for servers that ask questions without saying of which call.

A server on a pipe that asks its user something does not say on whose behalf. As long as one client's calls are under
way there is no doubt. So as soon as such a server has asked while calls of several were, calls of different clients no
longer overlap there: the others wait, in the order in which they came. Servers of which it was never in doubt whom they
ask are not slowed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Turns:
    """Whose turn it is at one server."""

    def __init__(self) -> None:
        self.needed = False
        """Whether it was in doubt whom the server asks."""
        self._owner: str | None = None
        self._running = 0
        self._queue: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._queued = asyncio.Event()
        """Whether somebody waits."""

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncGenerator[None]:
        """Waits until no call of somebody else is under way."""
        if self._running and (self._owner != owner or self._queue):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((owner, future))
            self._queued.set()
            try:
                await future
            except asyncio.CancelledError:
                self._give_up(owner, future)
                raise
        else:
            self._begin(owner)
        try:
            yield
        finally:
            self._end()

    async def grudged(self, patience_s: float) -> None:
        """Returns as soon as others have waited so long for whoever has the turn."""
        while True:
            await self._queued.wait()
            await asyncio.sleep(patience_s)
            if self._queue:
                return

    def _begin(self, owner: str) -> None:
        self._owner = owner
        self._running += 1

    def _end(self) -> None:
        self._running -= 1
        while self._queue and (not self._running or self._queue[0][0] == self._owner):
            owner, future = self._queue.popleft()
            if not future.done():
                self._begin(owner)
                future.set_result(None)
        self._note_queue()

    def _give_up(self, owner: str, future: "asyncio.Future[None]") -> None:
        if (owner, future) in self._queue:
            self._queue.remove((owner, future))
            self._note_queue()
        elif future.done() and not future.cancelled():
            self._end()

    def _note_queue(self) -> None:
        if not self._queue:
            self._queued.clear()
