"""Running a function of somebody's: to the end of what it promises or yields, and beside the event loop.

Whatever is no coroutine runs in a thread of its toolset, a generator with its whole body: what blocks or hangs there
holds up neither the loop nor another toolset.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

from toolcrib.limits import FUNCTION_ITEMS, FUNCTION_THREADS

_END = object()


class Yielded(NamedTuple):
    """What an iterator gave."""

    items: list[object]
    more: bool
    """Whether it had not come to its end."""


class Threads:
    """The threads of one toolset, made when they are needed."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], object]) -> object:
        """What the work gives."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(FUNCTION_THREADS, thread_name_prefix="toolcrib-function")
        return await asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, work)

    def close(self) -> None:
        """Lets go of the threads; what still runs in them ends when it ends."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


async def run_function(
    function: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], threads: Threads
) -> object:
    """What the function gives in the end. Raises what it raises."""
    if inspect.iscoroutinefunction(function):
        value: object = await function(*positional, **named)
    else:
        value = await threads.run(partial(_run, partial(function, *positional, **named)))
    if inspect.isawaitable(value):  # a plain function around a coroutine, or an object that is called like one
        value = await value
    if hasattr(value, "__next__"):
        value = await threads.run(partial(_run, lambda: value))
    if hasattr(value, "__anext__"):
        value = await _gather(cast("AsyncIterator[object]", value))
    return value


def take(items: Iterator[object]) -> Yielded:
    """What an iterator gives, as far as it is read."""
    taken = list(islice(items, FUNCTION_ITEMS))
    return Yielded(taken, len(taken) == FUNCTION_ITEMS and next(items, _END) is not _END)


def _run(function: Callable[[], object]) -> object:
    try:
        value = function()
        return take(cast("Iterator[object]", value)) if hasattr(value, "__next__") else value
    except StopIteration as error:
        # No future can hold one: whoever waits for it would wait for ever.
        raise RuntimeError("the function raised StopIteration") from error


async def _gather(items: AsyncIterator[object]) -> Yielded:
    taken: list[object] = []
    try:
        async for item in items:
            if len(taken) == FUNCTION_ITEMS:
                return Yielded(taken, True)
            taken.append(item)
        return Yielded(taken, False)
    finally:
        close: Any = getattr(items, "aclose", None)
        if close is not None:
            await close()
