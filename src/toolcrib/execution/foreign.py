"""Waiting for code of others: whatever it does to itself ends with it.

A tool or a hook may wait for something that was cancelled elsewhere, or try to end the process. Neither is what the
host asked of the task that waits, so it becomes an ordinary error of that code; a real cancellation passes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """The code ended itself in a way that is no answer and no error."""


async def settled(work: Awaitable[T]) -> T:
    """What the code gives, or the error that it raises. Raises `Interrupted` for everything else it does."""
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    try:
        return await work
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError:
        if task is None or task.cancelling() > asked:
            raise
        raise Interrupted("something that it waited for was cancelled") from None
    except BaseException as error:
        raise Interrupted(f"it tried to end the process with {type(error).__name__}") from None


def told(how: Callable[[Exception], str], error: Exception) -> str:
    """What an error says of itself, as far as it can and as characters."""
    try:
        return how(error).encode(errors="replace").decode()
    except Exception:  # its words are its author's code, too
        return type(error).__name__
