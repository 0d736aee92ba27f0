"""Errands: calls that need no task, because nothing on their way has to be waited for but a place and the answer.

An errand passes the stages of the executor in one go, stands in line where there is no place, is sent, and ends when
its answer comes, all of it in what the event loop calls anyway. What it may do, what it waits for, how long, and what
the feed is told are those of any call; whatever is unusual goes the way of all calls, as a task.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from toolcrib.activity import Trace
from toolcrib.bridge import Invocation
from toolcrib.definitions import Call, JsonObject, Result, Route, Tool
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.execution.deadlines import Bounded
from toolcrib.execution.dispatch import CallContext, Exchange, Sender, Sent
from toolcrib.execution.places import Places
from toolcrib.execution.results import FEW_BYTES
from toolcrib.limits import RESULT_MAX_BLOCKS

if TYPE_CHECKING:
    from toolcrib.execution.executor import Done, Executor, Holder

logger = logging.getLogger("toolcrib")

_PATHS_MAX = 256
"""Names that are kept for sessions of one kind."""


class Listener(Protocol):
    """Who is told what became of an errand; raises nothing."""

    def answered(self, errand: "Errand", result: bytes) -> None:
        """It has ended well: with the result that its source sent, as MCP JSON, within all limits."""
        ...

    def arrived(self, errand: "Errand", done: "Done") -> None:
        """It has ended in any other way, but for those that follow."""
        ...

    def dropped(self, errand: "Errand") -> None:
        """It was cancelled, by whoever wanted it."""
        ...

    def crashed(self, errand: "Errand") -> None:
        """It failed through a fault of our own."""
        ...


class Path(Struct, frozen=True, eq=False):
    """What of a call depends on its tool and its session alone: found out once, good while there are these tools."""

    tool: Tool
    sender: Sender
    prepared: object
    """What the sender has made ready for calls of the tool."""
    fits: Callable[[JsonObject], bool] | None
    """Whether arguments need no repair; nothing where they are not checked."""
    policy: ApprovalPolicy
    """The general policy under which nobody has to be asked."""
    places: Places
    """Those of the toolset."""
    deadline_s: float


class Paths:
    """The ways of calls in all sessions with one scope and one policy."""

    __slots__ = ("_by_name", "_generation")

    def __init__(self) -> None:
        self._generation = -1
        self._by_name: dict[tuple[str, Route], Path] = {}

    def find(self, name: str, route: Route, generation: int) -> Path | None:
        """The way of calls by a name that was kept, if there still are the tools that there were."""
        if generation != self._generation:
            self._generation = generation
            self._by_name.clear()
        return self._by_name.get((name, route))

    def keep(self, name: str, route: Route, generation: int, path: Path) -> None:
        """Keeps the way of calls by a name that `unwrap` has let pass."""
        if generation != self._generation or len(self._by_name) >= _PATHS_MAX:
            self._generation = generation
            self._by_name.clear()
        self._by_name[name, route] = path


class Errand:
    """One call on its way."""

    __slots__ = (
        "_entries", "_executor", "_held", "_listener", "_loop", "_path", "_places", "_sent", "_task", "_turn", "_work",
        "due", "ended", "exchange", "holder", "invocation", "key", "owner", "since", "started", "trace",
    )  # fmt: skip

    def __init__(
        self,
        executor: "Executor",
        path: Path,
        holder: "Holder",
        invocation: Invocation,
        exchange: Exchange,
        trace: Trace,
        listener: Listener,
        started: float,
        since: float,
    ) -> None:
        self._executor = executor
        self._path = path
        self._listener = listener
        self._held = 0
        """Places that it has."""
        self._places = (holder.places, path.places, executor.dispatcher.everybody)
        """Places that it needs, the narrowest first."""
        self._entries: dict[Bounded, None] | None = None
        """Where its time runs."""
        self._turn: _Turn | None = None
        """Where it stands in line."""
        self._sent: Sent | None = None
        self._task: asyncio.Task[None] | None = None
        """Its way as a task, where it has come to need one."""
        self._work: Coroutine[object, object, Result] | None = None
        """What that task has not begun yet."""
        self.holder = holder
        self.invocation = invocation
        self.exchange = exchange
        self.trace = trace
        self.started = started
        self.since = since
        """When it began, and when its last stage did."""
        self.ended = False

    _loop: asyncio.AbstractEventLoop
    due: float
    owner: Any
    key: int | str
    """Both its listener's own: for whom it runs, and under which number."""

    @property
    def call(self) -> Call:
        """The call as the stages know it; the usual one is sent and answered without it."""
        trace, invocation = self.trace, self.invocation
        return Call(
            id=trace.call_id,
            tool=self._path.tool,
            arguments=invocation.arguments,
            route=invocation.route,
            principal=trace.principal,
        )

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sends the call, or stands in line for a place; `loop` is the one that runs, which its caller knows anyway."""
        self._loop = loop
        first, second, third = self._places
        if first.take_with(second, third):
            self._held = 3
            self._send()
        else:
            self._entries = self._executor.dispatcher.bound_wait(self, loop)
            self._line_up()

    def cancel(self) -> None:
        """Ends it: nobody wants it any more."""
        if self.ended:
            return
        self.ended = True
        self._drop()
        self._end()
        self._executor.note_cancelled(self)
        self._listener.dropped(self)

    # What places and deadlines call

    def go_on(self) -> None:
        """Has come to a place that it stood in line for."""
        self._held += 1
        _, second, third = self._places
        if self._held == 1 and second.take_both(third):
            self._held = 3
            self._leave_line()
        else:
            self._line_up()

    def expire(self) -> None:
        """Is late: in line, or with the tool."""
        self._entries = None
        if self.ended:
            return
        in_line = self._held < len(self._places)
        error = self._executor.dispatcher.too_busy(self.call) if in_line else TimeoutError()
        self._drop()
        self._fail(error)

    # What the source calls, as it would a future

    def done(self) -> bool:
        """Whether an answer would come too late."""
        return self.ended or self._task is not None

    def set_result(self, raw: bytes) -> None:
        """Takes the source's answer."""
        if self.ended or self._task is not None:
            return
        sent = self._sent
        if sent is None:  # it came while it was sent
            self._loop.call_soon(self.set_result, raw)
            return
        try:
            failed = self._path.sender.receive(sent, raw)
        except Exception as error:  # whatever a source throws becomes an answer
            self._fail(error)
            return
        if failed is not True and failed is not False:
            self._go_on(failed)
            return
        executor, size = self._executor, len(raw)
        if size > executor.result_max_chars or (size > FEW_BYTES and raw.count(b"{") > RESULT_MAX_BLOCKS):
            self._arrive(Result(dialect="mcp", encoded=raw, is_error=failed))
            return
        self._end()
        try:
            executor.note_answer(self, raw, "failed" if failed else "ok")
        except Exception:
            logger.exception("a call failed", extra={"tool": self.call.tool.name})
            self._listener.crashed(self)
        else:
            self._listener.answered(self, raw)

    def set_exception(self, error: Exception) -> None:
        """Takes the source's refusal, or the reason why there is no answer."""
        self._fail(self._path.sender.explain(error))

    # Inside

    def _line_up(self) -> None:
        while self._held < 3:
            turn = _Turn(self)
            if not self._places[self._held].take_or_line_up(turn):
                self._turn = turn
                return
            self._held += 1
        self._leave_line()

    def _leave_line(self) -> None:
        entries = self._entries
        if entries is not None:
            entries.pop(self, None)
        self._send()

    def _send(self) -> None:
        path, exchange = self._path, self.exchange
        self._entries = self._executor.dispatcher.deadlines.enter(self, path.deadline_s, self._loop)
        try:
            sent = path.sender.send(path.prepared, self.invocation.encoded, exchange, self)
        except Exception as error:  # whoever gave the place is not made to wait for what follows
            self._loop.call_soon(self._fail_soon, error)
            return
        if sent is not None:
            self._sent = sent
            if self.ended:  # it failed while it was sent
                sent.forget()
        elif not self.ended:
            call = self.call
            context = CallContext(
                deadline_s=path.deadline_s, report=_unheard, principal=call.principal, exchange=exchange
            )
            self._go_on(path.sender.call(call, context))

    def _go_on(self, work: Coroutine[object, object, Result]) -> None:
        self._work = work
        self._task = self._loop.create_task(self._wait(work))

    async def _wait(self, work: Coroutine[object, object, Result]) -> None:
        self._work = None
        try:
            result = await work
        except asyncio.CancelledError:
            self.cancel()  # whoever was to be asked has left
            raise
        except Exception as error:
            self._fail(error)
        else:
            self._arrive(result)

    def _fail_soon(self, error: Exception) -> None:
        if not self.ended:
            self._fail(self._path.sender.explain(error))

    def _arrive(self, result: Result) -> None:
        if self.ended:
            return
        self._end()
        try:
            done = self._executor.finish(self, result)
        except Exception:
            logger.exception("a call failed", extra={"tool": self.call.tool.name})
            self._listener.crashed(self)
        else:
            self._listener.arrived(self, done)

    def _fail(self, error: Exception) -> None:
        if self.ended:
            return
        self._end()
        try:
            done = self._executor.fail(self, self._executor.dispatcher.failure(self.call, error))
        except Exception:
            logger.exception("a call failed", extra={"tool": self.call.tool.name})
            self._listener.crashed(self)
        else:
            self._listener.arrived(self, done)

    def _end(self) -> None:
        """Lets go of everything: its time, its places, and the answer."""
        self.ended = True
        entries = self._entries
        if entries is not None:
            self._entries = None
            entries.pop(self, None)
        if self._turn is not None:
            # The line moves when it moves; until then it holds a turn, not the call and its arguments.
            self._turn.errand = self._turn = None
        sent = self._sent
        if sent is not None:
            # Neither holds the other any longer: nobody has to look for a circle.
            self._sent = None
            sent.forget()
        held, self._held = self._held, 0
        if held == 3:
            first, second, third = self._places
            first.give_with(second, third)
        else:
            for place in self._places[:held]:
                place.give()

    def _drop(self) -> None:
        """Tells the source that nobody waits any more."""
        if self._task is not None:
            self._task.cancel()
            if self._work is not None:  # cancelled before its first step: nobody else ends it
                self._work.close()
        elif self._sent is not None:
            try:
                self._sent.abandon()
            except Exception:  # it cannot be told; that it is not waited for is true all the same
                logger.debug("a call could not be called off", extra={"tool": self.call.tool.name}, exc_info=True)


class _Turn:
    """An errand in line."""

    __slots__ = ("errand",)

    def __init__(self, errand: Errand) -> None:
        self.errand: Errand | None = errand

    def accept(self) -> bool:
        """Takes a place, if the errand still wants one."""
        errand, self.errand = self.errand, None
        if errand is None:
            return False
        errand.go_on()
        return True


def _unheard(done: float, total: float | None, message: str | None) -> None:
    """Nobody here listens: what a relayed call reports goes to its caller by the exchange."""
