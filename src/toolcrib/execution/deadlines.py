"""Deadlines for many calls at once: one timer for all that have the same time, instead of one for each.

Calls with the same allowance end in the order in which they began, so only the oldest needs a timer; one that ends in
time costs an entry in a dictionary. What a late one gets is what `asyncio.timeout` gives: it is cancelled, and leaves
with `TimeoutError`; a cancellation from elsewhere stays one.
"""

import asyncio
import logging
from types import TracebackType
from typing import Protocol

logger = logging.getLogger("toolcrib")


class Bounded(Protocol):
    """What has a time to end in."""

    due: float

    def expire(self) -> None:
        """Ends it: it is late."""
        ...


class Deadline:
    """The time that one piece of work has: `with` around it."""

    __slots__ = ("_cancelling", "_expired", "_lane", "_task", "due")

    def __init__(self, lane: "_Lane", task: "asyncio.Task[object]", due: float) -> None:
        self._lane = lane
        self._task = task
        self._cancelling = task.cancelling()
        self._expired = False
        self.due = due

    def __enter__(self) -> None:
        """It runs from the moment at which it was made."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._expired:
            del self._lane.entries[self]
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Ends the work."""
        self._expired = True
        self._task.cancel()


class Deadlines:
    """Deadlines by how long they are."""

    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes: dict[float, _Lane] = {}

    def within(self, seconds: float) -> Deadline:
        """A deadline for the task that runs now."""
        loop = asyncio.get_running_loop()
        lane = self._lanes.get(seconds)
        if lane is None or lane.loop is not loop:
            lane = self._lanes[seconds] = _Lane(loop)
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a deadline belongs to a task")
        deadline = Deadline(lane, task, loop.time() + seconds)
        lane.entries[deadline] = None
        if not lane.is_set:
            lane.set_timer(deadline.due)
        return deadline

    def enter(self, bounded: Bounded, seconds: float, loop: asyncio.AbstractEventLoop) -> dict[Bounded, None]:
        """Bounds what is no task; whoever ends in time takes itself out of what is returned."""
        lane = self._lanes.get(seconds)
        if lane is None or lane.loop is not loop:
            lane = self._lanes[seconds] = _Lane(loop)
        bounded.due = due = loop.time() + seconds
        entries = lane.entries
        entries[bounded] = None
        if not lane.is_set:
            lane.set_timer(due)
        return entries


class _Lane:
    """Deadlines of one length, the earliest first."""

    __slots__ = ("entries", "is_set", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.entries: dict[Bounded, None] = {}
        self.is_set = False
        """Whether a timer runs: at least as early as the first deadline is due."""

    def set_timer(self, due: float) -> None:
        """Looks again when the next one is due."""
        self.is_set = True
        self.loop.call_at(due, self._ring)

    def _ring(self) -> None:
        """Ends what is due, and sets the timer for the next; the clock may be a hair early."""
        now = self.loop.time() + 0.001
        entries = self.entries
        # One that ends may let others end or begin: whoever is first is looked up anew.
        while entries and (first := next(iter(entries))).due <= now:
            del entries[first]
            try:
                first.expire()
            except Exception:  # the others are bounded by this timer
                logger.exception("what was late could not be ended")
        self.is_set = False
        if entries:
            self.set_timer(next(iter(entries)).due)
