"""Bounds of time that stand still while a person is waited for.

A server has seconds to answer; a person who signs in has minutes. While somebody is being asked, the bounds of the
start that asked do not run, and whoever looks after the server is told what it waits for.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

Told = Callable[[str], None]


class Patience:
    """The bounds of one server's starts."""

    def __init__(self) -> None:
        self._bounds: dict[asyncio.Timeout, float | None] = {}
        """Each bound, with the seconds that it had left when it was stopped."""
        self._waits = 0
        self._told: list[Told] = []

    @property
    def is_starting(self) -> bool:
        """Whether a start is under way, so that a person may be asked."""
        return bool(self._bounds)

    def tell(self, told: Told) -> None:
        """Calls `told` with the reason whenever somebody is waited for."""
        self._told.append(told)

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncGenerator[None]:
        """Like `asyncio.timeout`, except that waiting for a person does not count."""
        async with asyncio.timeout(None if self._waits else seconds) as bound:
            self._bounds[bound] = seconds if self._waits else None
            try:
                yield
            finally:
                del self._bounds[bound]

    @contextmanager
    def person(self, reason: str) -> Generator[None]:
        """Stops the bounds while somebody is asked."""
        now = asyncio.get_running_loop().time
        for told in self._told:
            told(reason)
        self._waits += 1
        if self._waits == 1:
            for bound in self._bounds:
                at = bound.when()
                self._bounds[bound] = None if at is None else at - now()
                bound.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                for bound, left in self._bounds.items():
                    if left is not None and not bound.expired():
                        bound.reschedule(now() + left)
                    self._bounds[bound] = None
