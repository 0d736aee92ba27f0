"""Places: so many at once, and whoever comes later waits in line.

Taking a free place is an ordinary call, so that the usual case, in which nobody waits, costs no step of the event
loop. A place that is given back goes to whoever waited longest and is never free in between: nobody jumps the line.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Turn(Protocol):
    """Somebody in line."""

    def accept(self) -> bool:
        """Takes the place that has become free. Whether it is still wanted."""
        ...


class Places:
    """A number of places."""

    __slots__ = ("_free", "_line", "wanted")

    def __init__(self, count: int) -> None:
        self._free = count
        self._line: deque[Turn] = deque()
        self.wanted: Callable[[], None] | None = None
        """Is called when somebody has to stand in line; gives no place back itself, but may see to it that one is."""

    @property
    def free(self) -> int:
        """How many are free."""
        return self._free

    @property
    def is_wanted(self) -> bool:
        """Whether somebody stands in line; who has left it is noticed when it moves."""
        return bool(self._line)

    def take(self) -> bool:
        """Takes a place, if one is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def take_with(self, second: "Places", third: "Places") -> bool:
        """Takes a place here and in two others, if all have one free."""
        if self._free <= 0 or second._free <= 0 or third._free <= 0:
            return False
        self._free -= 1
        second._free -= 1
        third._free -= 1
        return True

    def take_both(self, second: "Places") -> bool:
        """Takes a place here and in another, if both have one free."""
        if self._free <= 0 or second._free <= 0:
            return False
        self._free -= 1
        second._free -= 1
        return True

    def give_with(self, second: "Places", third: "Places") -> None:
        """Gives a place back here and in two others; here last, so that whoever gets it finds the others free."""
        if third._line:
            third.give()
        else:
            third._free += 1
        if second._line:
            second.give()
        else:
            second._free += 1
        if self._line:
            self.give()
        else:
            self._free += 1

    async def wait(self) -> None:
        """Takes a place as soon as one is free and nobody waited longer."""
        if self.take():
            return
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line_up(_Sleeper(came))
        try:
            await came
        except asyncio.CancelledError:
            if came.done() and not came.cancelled():
                # The place came at the moment of leaving: the next one in line has it.
                self.give()
            raise

    def take_or_line_up(self, turn: Turn) -> bool:
        """Takes a place, if one is free; else whoever it is for is told when one is and nobody waited longer."""
        if self._free > 0:
            self._free -= 1
            return True
        self._line_up(turn)
        return False

    def give(self) -> None:
        """Gives a place back."""
        line = self._line
        while line:
            if line.popleft().accept():
                return
        self._free += 1

    def _line_up(self, turn: Turn) -> None:
        self._line.append(turn)
        if self.wanted is not None:
            self.wanted()


class _Sleeper:
    """A task in line."""

    __slots__ = ("_came",)

    def __init__(self, came: "asyncio.Future[None]") -> None:
        self._came = came

    def accept(self) -> bool:
        """Wakes the task, unless it has left."""
        if self._came.done():
            return False
        self._came.set_result(None)
        return True
