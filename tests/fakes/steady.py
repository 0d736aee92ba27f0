"""How long one callback keeps the event loop to itself.

Measured as processor time of the loop's own thread, callback by callback: what other processes do on a busy machine
does not count, so that the bound can be strict and the test still steady. Imports that happen once and the collector's
pauses are somebody else's matter; they are done before.
"""

import asyncio
import gc
import time
from collections.abc import Generator
from contextlib import contextmanager

LAG_MAX_S = 0.050


class Lag:
    """The longest that any callback took."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.what = ""

    def note(self, seconds: float, handle: asyncio.Handle) -> None:
        """Takes one callback."""
        if seconds > self.longest:
            self.longest, self.what = seconds, repr(handle)[:300]


@contextmanager
def measured_lag() -> Generator[Lag]:
    """Measures every callback of every loop that runs meanwhile."""
    lag, original, clock = Lag(), asyncio.Handle._run, time.thread_time

    def run(self: asyncio.Handle) -> None:
        began = clock()
        original(self)
        lag.note(clock() - began, self)

    gc.collect()
    gc.freeze()
    asyncio.Handle._run = run
    try:
        yield lag
    finally:
        asyncio.Handle._run = original
        gc.unfreeze()
