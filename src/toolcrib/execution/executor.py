"""The executor is a list of stages over one value, and nothing else.

Every call goes through the same list, whether it came by its own name, through the bridge or from code, alone or
beside others. A stage returns the value or raises a `CallError`; each leaves one event in the feed. What follows
from a stage can be read from its position in `stages`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import orjson
from msgspec import Struct, structs

from toolcrib.activity import DISPATCH, DONE, Activity, Event, Outcome, Trace, shape_of
from toolcrib.bridge import Invocation
from toolcrib.definitions import Call, Json, JsonObject, Result, Tool, json_chars, text_result
from toolcrib.errors import CallError, DeadlineExceeded, ToolFailed
from toolcrib.execution.approval import ApprovalPolicy, ApprovalRequest, Approvals
from toolcrib.execution.dispatch import Checker, Dispatcher, Exchange, Runner, Sender
from toolcrib.execution.errands import Errand, Listener, Path
from toolcrib.execution.hooks import (
    Checkpoint,
    Guardrail,
    Hook,
    Progress,
    run_after,
    run_before,
    run_checkpoints,
    run_guardrails,
)
from toolcrib.execution.places import Places
from toolcrib.execution.results import limit_result, note_repairs, plain_json, readable
from toolcrib.execution.validation import Validator
from toolcrib.tokens import estimate_tokens


class Holder(Protocol):
    """The session that a call belongs to, as far as the executor may know it."""

    id: str
    principal: str
    policy: ApprovalPolicy | None
    places: Places

    def require_tool(self, invocation: Invocation) -> Tool:
        """The real tool, if the session may have it now. Raises `CallError`."""
        ...

    def require_granted(self, tool: Tool) -> Runner:
        """What runs the tool, if the session still has exactly this one. Raises `CallError`."""
        ...


class Run(Struct, frozen=True, kw_only=True):
    """One call on its way through the stages."""

    id: str
    invocation: Invocation
    holder: Holder
    exchange: Exchange | None = None
    """Who called, where the call is relayed from another MCP client."""
    call: Call | None = None
    trace: Trace | None = None
    result: Result | None = None

    @property
    def bound(self) -> Call:
        """The call; there is one from the first stage on."""
        if self.call is None:
            raise AssertionError("the scope stage comes first")
        return self.call

    @property
    def traced(self) -> Trace:
        """What its events have in common, from the first stage on."""
        if self.trace is None:
            raise AssertionError("the scope stage comes first")
        return self.trace

    @property
    def answered(self) -> Result:
        """The result; there is one from dispatch on."""
        if self.result is None:
            raise AssertionError("dispatch comes before this stage")
        return self.result


class Done(Struct, frozen=True, kw_only=True):
    """What became of a call."""

    result: Result
    tool: Tool | None
    """The real tool, if the name meant one."""
    error: CallError | None = None


Stage = Callable[["Executor", Run], "Run | Awaitable[Run]"]
"""Takes the value on: at once, or when it is ready."""


class Executor:
    """Runs calls through the stages."""

    def __init__(
        self,
        *,
        activity: Activity,
        approvals: Approvals,
        dispatcher: Dispatcher,
        validator: Validator,
        clock: Callable[[], float],
        result_max_chars: int,
        guardrails: Sequence[Guardrail] = (),
        hooks: Sequence[Hook] = (),
        checkpoints: Sequence[Checkpoint] = (),
        progress: Sequence[Progress] = (),
        show_values: bool = False,
    ) -> None:
        self._activity = activity
        self._approvals = approvals
        self.dispatcher = dispatcher
        self._validator = validator
        self._clock = clock
        self.result_max_chars = result_max_chars
        self._guardrails = tuple(guardrails)
        self._hooks = tuple(hooks)
        self._checkpoints = tuple(checkpoints)
        self._progress = tuple(progress)
        self._show_values = show_values
        # Functions, not methods of this one: an executor that held itself would wait for the collector.
        self.stages: tuple[tuple[str, Stage], ...] = (
            ("scope", Executor._scope),
            ("validate", Executor._validate),
            ("guardrails", Executor._guard if guardrails else _pass),
            ("hooks", Executor._before if hooks else _pass),
            ("approval", Executor._approve),
            ("checkpoint", Executor._checkpoint if checkpoints else _pass),
            (DISPATCH, Executor._dispatch),
            ("limits", Executor._limit),
            ("hooks_after", Executor._after if hooks else _pass),
        )
        self._plain = None if guardrails or hooks or checkpoints else self.stages
        """The stages, if nobody has put anything between them."""

    async def run(self, run: Run) -> Done:
        """Takes one call through the stages. Never raises for what the call did; cancellation passes."""
        clock = self._clock
        started = since = clock()
        stage, shown = "scope", None
        passed, took = list[str](), list[float]()
        """Stages that the feed has not been told of: it is told before anything that may take its time."""
        try:
            for stage, step in self.stages:
                if step is _pass:
                    passed.append(stage)
                    took.append(0.0)
                    continue
                taken = step(self, run)
                if isinstance(taken, Run):
                    run = taken
                else:
                    if passed:
                        self._activity.note_stages(run.trace or run.traced, passed, took)
                        passed, took = [], []
                    run = await taken
                    if stage == DISPATCH:
                        shown = self._shown((run.call or run.bound).arguments)
                now = clock()
                passed.append(stage)
                took.append(now - since)
                since = now
        except CallError as error:
            if passed:
                self._activity.note_stages(run.traced, passed, took, "ok", shown)
            return self._failed(run, stage, started, error)
        except BaseException as error:
            if passed:
                self._activity.note_stages(run.traced, passed, took, "ok", shown)
            if isinstance(error, asyncio.CancelledError):
                self._record(run, stage, "failed", started, reason="cancelled")
            raise
        result = run.result or run.answered
        return self._finish(run, passed, took, result, started, "failed" if result.is_error else "ok", None, shown)

    def path(self, tool: Tool, runner: Runner, policy: ApprovalPolicy | None) -> Path | None:
        """The way of all calls of a tool in a session with this policy, if nothing stands in it."""
        if self.stages is not self._plain or not isinstance(runner, Sender):
            return None
        if not self._approvals.allows(tool, own=policy):
            return None
        return Path(
            tool,
            runner,
            runner.prepare(tool),
            self._validator.check_of(tool),
            self._approvals.policy,
            self.dispatcher.toolset_places(tool.toolset),
            self.dispatcher.deadline_of(tool),
        )

    def still_allows(self, path: Path) -> bool:
        """Whether the stages are plain and the general policy is the one that the way was found under."""
        return self.stages is self._plain and path.policy is self._approvals.policy

    def begin(
        self,
        call_id: str,
        invocation: Invocation,
        path: Path,
        holder: Holder,
        exchange: Exchange,
        listener: Listener,
        started: float,
    ) -> Errand | None:
        """Takes a call as far as its place in line, if nothing has to be waited for or told before that.

        The stages are those of `run`, and `path` is one that `still_allows` lets pass. Where a stage has more to do
        than to let the call pass, nothing has happened yet, and the call belongs to `run`.
        """
        clock = self._clock
        tool, scoped = path.tool, clock()
        if path.fits is not None and not path.fits(invocation.arguments):
            return None
        since = clock()
        trace = Trace(
            session=holder.id,
            principal=holder.principal,
            call_id=call_id,
            tool=tool.name,
            toolset=tool.toolset,
            route=invocation.route,
        )
        self._activity.note_stages(trace, _BEFORE, (scoped - started, since - scoped, 0.0, 0.0, 0.0, 0.0))
        return Errand(self, path, holder, invocation, exchange, trace, listener, started, since)

    def finish(self, errand: Errand, result: Result) -> Done:
        """What became of a call that was answered."""
        clock = self._clock
        now = clock()
        dispatched = now - errand.since
        shown = self._shown(errand.call.arguments)
        try:
            limited = limit_result(result, max_chars=self.result_max_chars)
        except BaseException:
            self._activity.note_stages(errand.trace, (DISPATCH,), (dispatched,), "ok", shown)
            raise
        outcome: Outcome = "failed" if limited.is_error else "ok"
        end = clock()
        seconds = (dispatched, end - now, 0.0, end - errand.started)
        tokens = estimate_tokens(_chars(limited))
        self._activity.note_stages(errand.trace, _AFTER, seconds, outcome, shown, tokens, limited.code)
        return Done(result=limited, tool=errand.call.tool)

    def note_answer(self, errand: Errand, encoded: bytes, outcome: Outcome) -> None:
        """Tells the feed of a call whose result is within all limits."""
        now = self._clock()
        arguments = errand.invocation.arguments
        shown = arguments if self._show_values else shape_of(arguments)
        seconds = (now - errand.since, 0.0, 0.0, now - errand.started)
        self._activity.note_stages(errand.trace, _AFTER, seconds, outcome, shown, estimate_tokens(len(encoded)))

    def fail(self, errand: Errand, error: CallError) -> Done:
        """What became of a call that was refused or failed on the way."""
        return self._failed(_run_of(errand), DISPATCH, errand.started, error)

    def note_cancelled(self, errand: Errand) -> None:
        """Tells the feed that nobody wanted a call any more."""
        self._record(_run_of(errand), DISPATCH, "failed", errand.started, reason="cancelled")

    def _failed(self, run: Run, stage: str, started: float, error: CallError) -> Done:
        outcome: Outcome = "failed" if isinstance(error, ToolFailed | DeadlineExceeded) else "refused"
        self._record(run, stage, outcome, started, error=error)
        return self._finish(run, (), (), error_result(error), started, outcome, error)

    def _scope(self, run: Run) -> Run:
        invocation, holder = run.invocation, run.holder
        tool = holder.require_tool(invocation)
        call = Call(
            id=run.id,
            tool=tool,
            arguments=invocation.arguments,
            route=invocation.route,
            principal=holder.principal,
        )
        trace = Trace(
            session=holder.id,
            principal=holder.principal,
            call_id=run.id,
            tool=tool.name,
            toolset=tool.toolset,
            route=invocation.route,
        )
        return structs.replace(run, call=call, trace=trace)

    def _validate(self, run: Run) -> Run:
        checked = self._checked(run, run.call or run.bound)
        return run if checked is run.call else structs.replace(run, call=checked)

    async def _guard(self, run: Run) -> Run:
        await run_guardrails(self._guardrails, run.bound)
        return run

    async def _before(self, run: Run) -> Run:
        changed = await run_before(self._hooks, run.bound)
        if changed is None:
            return run
        return structs.replace(run, call=self._checked(run, structs.replace(run.bound, arguments=changed)))

    def _approve(self, run: Run) -> Run | Awaitable[Run]:
        question = self._approvals.question(run.call or run.bound, run.exchange, own=run.holder.policy)
        return run if question is None else self._ask(run, question)

    async def _ask(self, run: Run, question: ApprovalRequest) -> Run:
        await self._approvals.ask(question)
        return run

    async def _checkpoint(self, run: Run) -> Run:
        if run.bound.tool.traits.changes_something:
            await run_checkpoints(self._checkpoints, run.bound)
        return run

    async def _dispatch(self, run: Run) -> Run:
        call = run.call or run.bound
        # The scope is asked again: an approval may have taken minutes (S20).
        runner = run.holder.require_granted(call.tool)

        def report(done: float, total: float | None, message: str | None) -> None:
            for listener in self._progress:
                try:
                    listener(call, done, total, message)
                except Exception:  # an observer never fails a call (X14)
                    self._activity.dropped += 1

        return structs.replace(
            run, result=await self.dispatcher.run(runner, call, report, run.holder.places, run.exchange)
        )

    def _limit(self, run: Run) -> Run:
        result, notes = run.result or run.answered, (run.call or run.bound).notes
        limited = limit_result(result, max_chars=self.result_max_chars)
        if notes:
            limited = note_repairs(limited, notes)
        return run if limited is run.result else structs.replace(run, result=limited)

    async def _after(self, run: Run) -> Run:
        return structs.replace(run, result=await run_after(self._hooks, run.bound, run.answered))

    def _checked(self, run: Run, call: Call) -> Call:
        checked = self._validator.check(call.tool, call.arguments)
        if checked.arguments is not call.arguments or checked.notes:
            call = structs.replace(call, arguments=checked.arguments, notes=(*call.notes, *checked.notes))
        runner = run.holder.require_granted(call.tool)
        if isinstance(runner, Checker):
            runner.check(call)
        return call

    def _finish(
        self,
        run: Run,
        passed: Sequence[str],
        took: Sequence[float],
        result: Result,
        started: float,
        outcome: Outcome,
        error: CallError | None,
        shown: Json = None,
    ) -> Done:
        try:
            tokens = estimate_tokens(_chars(result))
        except TypeError:
            result = readable(result)
            tokens = estimate_tokens(_chars(result))
        if run.trace is not None:
            stages, seconds = (*passed, DONE), (*took, self._clock() - started)
            self._activity.note_stages(run.trace, stages, seconds, outcome, shown, tokens, result.code)
        else:
            self._record(run, DONE, outcome, started, tokens=tokens, code=result.code)
        return Done(result=result, tool=run.call.tool if run.call else None, error=error)

    def _shown(self, arguments: JsonObject) -> Json:
        return arguments if self._show_values else shape_of(arguments)

    def _record(
        self,
        run: Run,
        stage: str,
        outcome: Outcome,
        since: float,
        *,
        error: CallError | None = None,
        reason: str | None = None,
        tokens: int | None = None,
        code: str | None = None,
    ) -> None:
        call = run.call
        arguments: JsonObject = call.arguments if call else run.invocation.arguments
        shown = self._shown(arguments) if stage == DISPATCH or error is not None else None
        self._activity.record(
            Event(
                stage=stage,
                outcome=outcome,
                session=run.holder.id,
                principal=run.holder.principal,
                call_id=run.id,
                tool=call.tool.name if call else run.invocation.name[:128],
                toolset=call.tool.toolset if call else None,
                route=run.invocation.route,
                duration_ms=round((self._clock() - since) * 1000, 3),
                tokens=tokens,
                code=error.code if error else code,
                reason=str(error) if error else reason,
                arguments=shown,
                at=self._activity.now(),
            )
        )


_BEFORE = ("scope", "validate", "guardrails", "hooks", "approval", "checkpoint")
_AFTER = (DISPATCH, "limits", "hooks_after", DONE)
"""The stages before a call is sent, and those after."""


def _run_of(errand: Errand) -> Run:
    """The errand as the value that stages take."""
    call = errand.call
    return Run(
        id=call.id,
        invocation=errand.invocation,
        holder=errand.holder,
        exchange=errand.exchange,
        call=call,
        trace=errand.trace,
    )


def _pass(executor: Executor, run: Run) -> Run:
    """The stage of what nobody has put there."""
    return run


def error_result(error: CallError) -> Result:
    """What the model reads when a call was refused or failed."""
    told = error.for_model()
    try:
        body = orjson.dumps(told, default=str).decode()
    except TypeError:
        body = orjson.dumps(plain_json(told)).decode()
    return text_result(body, is_error=True, code=error.code)


def _chars(result: Result) -> int:
    if result.encoded is not None:
        return len(result.encoded)
    return sum(json_chars(orjson.dumps(block, default=str)) for block in result.content)
