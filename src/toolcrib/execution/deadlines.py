"""Deadlines for many calls at once: one timer for all that have the same time, instead of one for each.

Calls with the same allowance end in the order in which they began, so only the oldest needs a timer; one that ends in
time costs an entry in a dictionary. What a late one gets is what `asyncio.timeout` gives: it is cancelled, and leaves
with `TimeoutError`; a cancellation from elsewhere stays one.
"""

import asyncio
from types import TracebackType


class Deadline:
    """The time that one piece of work has: `with` around it."""

    __slots__ = ("_cancelling", "_expired", "_lane", "_task", "due")

    def __init__(self, lane: "_Lane") -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline belongs to a task")
        self._lane = lane
        self._task = task
        self._cancelling = task.cancelling()
        self._expired = False
        self.due = 0.0

    def __enter__(self) -> None:
        self._lane.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._expired:
            self._lane.remove(self)
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
            lane = self._lanes[seconds] = _Lane(loop, seconds)
        return Deadline(lane)


class _Lane:
    """Deadlines of one length, the earliest first."""

    __slots__ = ("_entries", "_seconds", "_timer", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop = loop
        self._seconds = seconds
        self._entries: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, deadline: Deadline) -> None:
        deadline.due = self.loop.time() + self._seconds
        self._entries[deadline] = None
        if self._timer is None:
            self._timer = self.loop.call_at(deadline.due, self._ring)

    def remove(self, deadline: Deadline) -> None:
        del self._entries[deadline]

    def _ring(self) -> None:
        """Ends what is due, and sets the timer for the next; the clock may be a hair early."""
        self._timer = None
        now = self.loop.time() + 0.001
        for deadline in tuple(self._entries):
            if deadline.due > now:
                self._timer = self.loop.call_at(deadline.due, self._ring)
                return
            del self._entries[deadline]
            deadline.expire()
