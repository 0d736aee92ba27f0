"""Signals that end what a command is doing: its task is cancelled, so that everything behind it closes in order."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Self, cast

_Handler = Callable[[int, FrameType | None], object] | int | None

ENDING = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)
"""The signals by which a machine or a closed terminal ends a program."""


class Cancelling:
    """Within it the current task is cancelled by the first of these signals; one that is ignored stays ignored."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._numbers = numbers
        self._found: dict[signal.Signals, _Handler] = {}
        self._task: asyncio.Task[object] | None = None
        self.number: signal.Signals | None = None
        """The signal that came, if one did."""

    def __enter__(self) -> Self:
        self._task = cast("asyncio.Task[object] | None", asyncio.current_task())
        for number in self._numbers:
            found = cast("_Handler", signal.getsignal(number))
            # Only the main thread has signals, and not every system has them in its loops.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                if found is not signal.SIG_IGN:
                    asyncio.get_running_loop().add_signal_handler(number, self.end, number)
                    self._found[number] = found
        return self

    def __exit__(self, *_: object) -> None:
        self._task = None  # a signal that has come already may be waiting in the loop
        for number in tuple(self._found):
            self._restore(number)

    def end(self, number: signal.Signals) -> None:
        """Cancels the task, once. Who presses Ctrl-C again gets what it did before."""
        if number is signal.SIGINT:
            self._restore(number)
        if self.number is None and self._task is not None:
            self.number = number
            self._task.cancel()

    def _restore(self, number: signal.Signals) -> None:
        if number in self._found:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, self._found.pop(number))
