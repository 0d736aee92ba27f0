"""Dispatch: the one place that runs a tool, with a deadline, a cancellation and a place in the queue.

At most so many calls run at once in the process, in one toolset and in one session, so that neither a busy neighbour
nor a hanging server takes everything. A source may throw whatever it likes: here it becomes an answer.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from toolcrib.definitions import Call, Result
from toolcrib.errors import CallError, DeadlineExceeded, SourceUnavailable, TooBusy, ToolFailed
from toolcrib.limits import QUEUE_WAIT_S
from toolcrib.settings import LimitSettings

logger = logging.getLogger("toolcrib")

ReportProgress = Callable[[float, float | None, str | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a source is told besides the call."""

    deadline_s: float
    report: ReportProgress
    """Tells the host how far the call has come: done, total, message."""
    principal: str = ""
    """Who calls."""


class Runner(Protocol):
    """Runs a call: what a source offers."""

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs the tool. May raise anything."""
        ...


class Dispatcher:
    """Runs calls within limits."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._all = asyncio.Semaphore(limits.concurrency_global)
        self._toolsets: dict[str, asyncio.Semaphore] = {}

    def session_places(self) -> asyncio.Semaphore:
        """The places of one session; it passes them with each of its calls."""
        return asyncio.Semaphore(self._limits.concurrency_per_session)

    async def run(self, runner: Runner, call: Call, report: ReportProgress, places: asyncio.Semaphore) -> Result:
        """The tool's result. Raises `CallError`."""
        async with self._place(call, places):
            deadline_s = call.tool.traits.deadline_s or self._limits.call_deadline_s
            context = CallContext(deadline_s=deadline_s, report=report, principal=call.principal)
            try:
                async with asyncio.timeout(deadline_s):
                    return await runner.call(call, context)
            except CallError:
                raise
            except TimeoutError:
                raise DeadlineExceeded(
                    f"`{call.tool.name}` did not answer within {deadline_s:g} s. "
                    "It may still have an effect; look before you try again."
                ) from None
            except SourceUnavailable as error:
                raise ToolFailed(f"`{call.tool.name}` cannot be reached now: {error}", detail=str(error)) from None
            except Exception as error:
                # The model reads one line, the feed has the reason; the rest is for whoever debugs the tool.
                logger.debug("a tool failed", extra={"tool": call.tool.name}, exc_info=True)
                raise ToolFailed(f"`{call.tool.name}` failed: {_describe(error)}", detail=repr(error)) from None

    @asynccontextmanager
    async def _place(self, call: Call, places: asyncio.Semaphore) -> AsyncGenerator[None]:
        """A place in the session, the toolset and the process, in that order; the narrowest waits first."""
        toolset = self._toolsets.setdefault(call.tool.toolset, asyncio.Semaphore(self._limits.concurrency_per_toolset))
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(QUEUE_WAIT_S):
                    for semaphore in (places, toolset, self._all):
                        await stack.enter_async_context(semaphore)
            except TimeoutError:
                raise TooBusy(
                    f"Too many calls are under way; `{call.tool.name}` was not run. Try again later."
                ) from None
            yield


def _describe(error: Exception) -> str:
    """One line of what went wrong, without a traceback."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
