"""Dispatch: the one place that runs a tool, with a deadline, a cancellation and a place in the queue.

At most so many calls run at once in the process, in one toolset and in one session, so that neither a busy neighbour
nor a hanging server takes everything. A source may throw whatever it likes: here it becomes an answer.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Literal, Protocol

from msgspec import Struct

from toolcrib.definitions import Call, JsonObject, Result, Tool
from toolcrib.errors import CallError, ConfigError, DeadlineExceeded, SourceUnavailable, TooBusy, ToolFailed
from toolcrib.execution.deadlines import Bounded, Deadlines
from toolcrib.execution.foreign import settled, told
from toolcrib.execution.places import Places
from toolcrib.execution.results import is_made_of_objects
from toolcrib.limits import QUEUE_WAIT_S
from toolcrib.settings import LimitSettings

logger = logging.getLogger("toolcrib")

ReportProgress = Callable[[float, float | None, str | None], None]


Era = Literal["legacy", "modern"]
"""MCP with a handshake and sessions (up to 2025-11-25), or stateless (from 2026-07-28)."""


class Exchange(Protocol):
    """The caller's side of a relayed MCP call: what it sent along, and how to reach it while the call runs."""

    @property
    def era(self) -> Era:
        """The protocol that the caller speaks."""
        ...

    @property
    def owner(self) -> str:
        """Whose conversation this is: what belongs to one owner never reaches another."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """What the caller can be asked for."""
        ...

    @property
    def meta(self) -> JsonObject:
        """The part of the caller's `_meta` that travels on."""
        ...

    @property
    def answers(self) -> JsonObject:
        """`inputResponses` and `requestState` of a call that was asked for input before."""
        ...

    @property
    def is_bare(self) -> bool:
        """Whether the caller sent nothing along: no `_meta`, no answers."""
        ...

    @property
    def wants_progress(self) -> bool:
        """Whether the caller asked to be told how far the call has come."""
        ...

    def progress(self, params: JsonObject) -> None:
        """Passes on a progress notification; the token is the caller's own."""
        ...

    def notify(self, method: str, params: bytes) -> None:
        """Passes on a notification that belongs to this call."""
        ...

    async def ask(self, method: str, params: bytes) -> bytes:
        """Asks the caller something on behalf of the source; its result as JSON. May raise."""
        ...


class CallContext(Struct, frozen=True, kw_only=True):
    """What a source is told besides the call."""

    deadline_s: float
    report: ReportProgress
    """Tells the host how far the call has come: done, total, message."""
    exchange: Exchange | None = None
    """Who called, where the call is relayed from another MCP client."""
    principal: str = ""
    """Who calls."""


class Runner(Protocol):
    """Runs a call: what a source offers."""

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs the tool. May raise anything."""
        ...


class Checker:
    """A source that can tell before a call runs what its schema does not say of the arguments."""

    def check(self, call: Call) -> None:
        """Returns if the tool can be given the arguments. Raises `InvalidArguments`."""
        raise NotImplementedError


class Slot(Protocol):
    """Where an answer is put: a future, or what stands for one."""

    def done(self) -> bool:
        """Whether nobody waits for the answer any more."""
        ...

    def set_result(self, result: bytes, /) -> None:
        """Takes the answer."""
        ...

    def set_exception(self, exception: Exception, /) -> None:
        """Takes the reason why there is none."""
        ...


class CallSlot(Slot, Protocol):
    """Where the answer to a call is put."""

    @property
    def call(self) -> Call:
        """The call."""
        ...


class Sent(Protocol):
    """A call that was sent."""

    def forget(self) -> None:
        """It has ended: an answer that comes now is a stray one."""
        ...

    def abandon(self) -> None:
        """Tells whoever runs it that nobody waits any more."""
        ...


class Sender:
    """A source that can send a call without anybody waiting in it; it reports by the exchange alone."""

    def prepare(self, tool: Tool) -> object:
        """What calls of a tool have in common, as `send` wants to have it."""
        raise NotImplementedError

    def send(
        self,
        prepared: Any,  # noqa: ANN401 - its own
        encoded: bytes | None,
        exchange: Exchange,
        slot: CallSlot,
    ) -> Sent | None:
        """Sends the call of a slot; nothing if that takes more than sending. May raise anything.

        `encoded` are the arguments as JSON, where somebody has written them already.
        """
        raise NotImplementedError

    def receive(self, sent: Any, answer: bytes) -> bool | Coroutine[Any, Any, Result]:  # noqa: ANN401 - its own `Sent`
        """Whether the answer to a call, a result as MCP JSON, says that it failed; or the way to another result.

        May raise anything.
        """
        raise NotImplementedError

    def explain(self, error: Exception) -> Exception:
        """What `call` would raise for what came in place of an answer."""
        raise NotImplementedError

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs the tool. May raise anything."""
        raise NotImplementedError


class Dispatcher:
    """Runs calls within limits."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self.everybody = Places(limits.concurrency_global)
        """The places of the whole process."""
        self._toolsets: dict[str, Places] = {}
        self.deadlines = Deadlines()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that calls run in."""

    def session_places(self) -> Places:
        """The places of one session; it passes them with each of its calls."""
        return Places(self._limits.concurrency_per_session)

    async def run(
        self,
        runner: Runner,
        call: Call,
        report: ReportProgress,
        places: Places,
        exchange: Exchange | None = None,
    ) -> Result:
        """The tool's result. Raises `CallError`, and `ConfigError` beside calls of another event loop."""
        self.require_loop()
        # A call needs a place in the session, in the toolset and in the process, the narrowest first.
        toolset, everybody = self.toolset_places(call.tool.toolset), self.everybody
        if not places.take_with(toolset, everybody):
            await self._queue(call, (places, toolset, everybody))
        deadline_s = self.deadline_of(call.tool)
        context = CallContext(deadline_s=deadline_s, report=report, principal=call.principal, exchange=exchange)
        try:
            with self.deadlines.within(deadline_s):
                result = await settled(runner.call(call, context))
            _require_result(call, result)
            return result
        except CallError:
            raise
        except Exception as error:
            raise self.failure(call, error) from None
        finally:
            places.give()
            toolset.give()
            everybody.give()

    def require_loop(self) -> None:
        """Raises `ConfigError` beside calls of another event loop: neither could wake who waits in the other.

        One after the other is well.
        """
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        busy = self.everybody.free < self._limits.concurrency_global
        if busy and self._loop is not None and not self._loop.is_closed():
            raise ConfigError(
                "Calls of another event loop are under way: a crib runs its calls in one event loop at a time. "
                "Make a crib for each loop, or send the calls to the loop of the first."
            )
        self._loop = loop

    def toolset_places(self, toolset: str) -> Places:
        """The places of a toolset."""
        places = self._toolsets.get(toolset)
        if places is None:
            places = self._toolsets[toolset] = Places(self._limits.concurrency_per_toolset)
        return places

    def deadline_of(self, tool: Tool) -> float:
        """Seconds that a call may take."""
        return tool.traits.deadline_s or self._limits.call_deadline_s

    def failure(self, call: Call, error: Exception) -> CallError:
        """What is answered when a source threw this."""
        if isinstance(error, CallError):
            return error
        if isinstance(error, TimeoutError):
            return DeadlineExceeded(
                f"`{call.tool.name}` did not answer within {self.deadline_of(call.tool):g} s. "
                "It may still have an effect; look before you try again."
            )
        if isinstance(error, SourceUnavailable):
            return ToolFailed(f"`{call.tool.name}` cannot be reached now: {error}", detail=str(error))
        # The model reads one line, the feed has the reason; the rest is for whoever debugs the tool.
        logger.debug("a tool failed", extra={"tool": call.tool.name}, exc_info=error)
        return ToolFailed(f"`{call.tool.name}` failed: {_describe(error)}", detail=told(repr, error))

    def bound_wait(self, waiting: Bounded, loop: asyncio.AbstractEventLoop) -> dict[Bounded, None]:
        """Bounds the time in line of what is no task."""
        return self.deadlines.enter(waiting, QUEUE_WAIT_S, loop)

    def too_busy(self, call: Call) -> TooBusy:
        """What is answered when there was no place in time."""
        return TooBusy(f"Too many calls are under way; `{call.tool.name}` was not run. Try again later.")

    async def _queue(self, call: Call, wanted: Iterable[Places]) -> None:
        """Takes one place after the other, waiting for each. Raises `TooBusy`."""
        held: list[Places] = []
        try:
            with self.deadlines.within(QUEUE_WAIT_S):
                for place in wanted:
                    if not place.take():
                        await place.wait()
                    held.append(place)
        except BaseException as error:
            for place in held:
                place.give()
            if isinstance(error, TimeoutError):
                raise self.too_busy(call) from None
            raise


def _require_result(call: Call, result: object) -> None:
    """Raises `ToolFailed` for what is no result: sources are code of others."""
    if not isinstance(result, Result):
        raise ToolFailed(f"`{call.tool.name}` gave {type(result).__name__} in place of a `Result`.")
    if not is_made_of_objects(result):
        raise ToolFailed(f"`{call.tool.name}` gave a `Result` whose `content` is not made of objects.")


def _describe(error: Exception) -> str:
    """One line of what went wrong, without a traceback."""
    text = " ".join(told(str, error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
