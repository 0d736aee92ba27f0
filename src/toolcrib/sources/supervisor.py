"""Keeps one connection to one MCP server: starts it, starts it again, and knows when to leave it alone.

A restart waits a random time up to a bound that doubles with every failure; restarts of all servers together keep a
distance; a server that fails again and again is left alone for a while. Nobody waits for a server that is known to
be down: the answer is the reason. A server that dies from being asked the modern way is started again the old way.
"""

import asyncio
import logging
import random
import traceback
from collections import deque
from collections.abc import Awaitable, Callable

from toolcrib.errors import SourceError, SourceUnavailable
from toolcrib.execution.dispatch import Era
from toolcrib.limits import (
    BREAKER_FAILURES,
    BREAKER_WINDOW_S,
    CONNECT_S,
    RESTART_MAX_S,
    RESTART_MIN_S,
)  # fmt: skip
from toolcrib.sources.handshake import Peer, shake_hands
from toolcrib.sources.link import Link
from toolcrib.sources.patience import Patience

logger = logging.getLogger("toolcrib.sources")

Connect = Callable[[], Awaitable[Link]]


class Pace:
    """Keeps restarts of all servers apart, so that a hundred that fell together do not rise together (K6)."""

    def __init__(self, *, clock: Callable[[], float], every_s: float = 1.0) -> None:
        self._clock = clock
        self._every_s = every_s
        self._next = 0.0

    async def wait(self) -> None:
        """Waits for the next free moment."""
        now = self._clock()
        at = max(now, self._next)
        self._next = at + self._every_s
        await asyncio.sleep(at - now)


class Breaker:
    """Counts failed starts, and says how long to wait before the next."""

    def __init__(self, *, clock: Callable[[], float], rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._failures: deque[float] = deque(maxlen=BREAKER_FAILURES)
        self._in_a_row = 0

    def note_failure(self) -> float:
        """Takes a failure; the seconds to wait."""
        now = self._clock()
        self._failures.append(now)
        self._in_a_row += 1
        if self.is_open:
            return BREAKER_WINDOW_S
        bound = min(RESTART_MAX_S, RESTART_MIN_S * 2 ** min(self._in_a_row, 10))
        return self._rng.uniform(0, bound)

    def note_success(self) -> None:
        """The server is up and answers."""
        self._in_a_row = 0

    @property
    def is_open(self) -> bool:
        """Whether the server failed so often that it is left alone."""
        full = len(self._failures) == BREAKER_FAILURES
        return full and self._clock() - self._failures[0] < BREAKER_WINDOW_S


class Lane:
    """One supervised connection, in one era or in whichever the server prefers."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        *,
        era: Era | None,
        breaker: Breaker,
        pace: Pace,
        clock: Callable[[], float],
        greet: Callable[[Link, Peer], None],
        patience: Patience | None = None,
    ) -> None:
        self.name = name
        self.spoken: Era | None = None
        """The era that the server spoke last."""
        self._greet = greet
        self._patience = patience or Patience()
        self._connect = connect
        self._era: Era | None = era
        self._breaker = breaker
        self._pace = pace
        self._clock = clock
        self._lock = asyncio.Lock()
        self._retry_at = 0.0
        self._endings: set[asyncio.Task[None]] = set()
        self.is_closed = False
        """Whether nobody starts the server any more."""
        self.starts = 0
        """How often the server was started."""
        self.turned_at = clock()
        """When it last came, went, or was stopped."""
        self.failure: tuple[str, float] | None = None
        """Why it last failed, and when; kept when it is well again."""
        self.link: Link | None = None
        self.peer: Peer | None = None
        self.reason: str | None = None
        """Why the last start failed or the connection ended."""

    @property
    def is_up(self) -> bool:
        """Whether the server can be asked now."""
        return self.current is not None

    @property
    def retry_in_s(self) -> float:
        """Seconds until the next start makes sense."""
        return max(0.0, self._retry_at - self._clock())

    @property
    def current(self) -> tuple[Link, Peer] | None:
        """The connection, if there is one now."""
        link, peer = self.link, self.peer
        return (link, peer) if link is not None and peer is not None and link.is_open else None

    async def require(self) -> tuple[Link, Peer]:
        """The connection, started if need be. Raises `SourceUnavailable` with the reason."""
        if (current := self.current) is not None:
            return current
        async with self._lock:
            if (current := self.current) is not None:
                return current
            if self.is_closed:
                raise SourceUnavailable("it was closed")
            if self.retry_in_s > 0:
                raise SourceUnavailable(f"{self.reason or 'it failed'} (next try in {self.retry_in_s:.0f} s)")
            return await self._start()

    async def _start(self) -> tuple[Link, Peer]:
        if self.starts:
            await self._pace.wait()
        self.starts += 1
        await self._drop()
        try:
            async with self._patience.within(CONNECT_S):
                self.link, self.peer = await self._open()
        except Exception as error:  # whatever it was, somebody waits to be told
            text = self._why_not(error)
            await self._drop()
            self.note_down(text)
            raise SourceUnavailable(text) from None
        except asyncio.CancelledError:
            await self._drop()
            raise
        self._breaker.note_success()
        # The end of the one before may have been noted while this one was started.
        self.reason, self._retry_at = None, 0.0
        self.turned_at = self._clock()
        self.spoken = self.peer.era
        link, peer = self.link, self.peer
        link.renewed = lambda: self._greet(link, peer)
        link.renewed()
        return link, peer

    def _why_not(self, error: Exception) -> str:
        """Why a start failed."""
        if isinstance(error, SourceError | TimeoutError):
            return str(error) or f"it did not answer within {CONNECT_S:g} s"
        # Its text may quote the value of a header or of a variable: what is told is its kind, and where it was raised.
        kind = type(error).__name__
        logger.error("%s: its start failed: %s\n%s", self.name, kind, "".join(traceback.format_tb(error.__traceback__)))
        return f"it cannot be started: {kind}"

    async def _open(self) -> tuple[Link, Peer]:
        self.link = link = await self._connect()
        try:
            return link, await shake_hands(link, era=self._era, patience=self._patience)
        except SourceUnavailable:
            if self._era is not None or not link.closed.is_set():
                raise
        # It died of the question: ask it the old way from now on (three of 302 real servers need this).
        logger.info("%s: ended when asked the modern way; started again the old way", self.name)
        await self._drop()
        self._era = "legacy"
        self.link = link = await self._connect()
        return link, await shake_hands(link, era="legacy", patience=self._patience)

    def note_down(self, reason: str) -> None:
        """Takes the end of the connection or a failed start."""
        now = self._clock()
        if self.reason is None:
            self.turned_at = now
        self.reason = reason
        self.failure = (reason, now)
        self._retry_at = now + self._breaker.note_failure()
        logger.warning("%s: down: %s; next try in %.1f s", self.name, reason, self.retry_in_s)

    async def stop(self, link: Link | None = None) -> None:
        """Ends the connection, or this one if it is still there; the next call starts another."""
        async with self._lock:
            if link is not None and self.link is not link:
                # Somebody who could not wait has started the server again.
                return
            if self.is_up:
                self.turned_at = self._clock()
            await self._drop()

    async def close(self) -> None:
        """Ends the connection for good."""
        self.is_closed = True
        await self.stop()

    async def _drop(self) -> None:
        """Ends the connection; whoever loses patience leaves an ending that goes on."""
        link, self.link, self.peer = self.link, None, None
        if link is not None:
            task = asyncio.get_running_loop().create_task(link.close())
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)
        if self._endings:
            await asyncio.shield(asyncio.gather(*self._endings))
