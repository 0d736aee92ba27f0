"""A session is one principal's view of a crib: what it may have, what it sees, what it does.

It holds no tools. What it may have is looked up in the crib's inventory at every step, so a tool that went away is
gone and a grant that was narrowed stays narrow. Two sessions share nothing but caches of immutable values (S21).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson
from msgspec import structs

from toolcrib.activity import Event, query_words
from toolcrib.assembly import Assembly, Turn, build_turn
from toolcrib.bridge import Describe, Invocation, Request, Search, search_for, unwrap
from toolcrib.catalog import Catalog
from toolcrib.definitions import DialectName, Json, JsonObject, ModelCall, Result, Route, Tool, json_chars, text_result
from toolcrib.dialects import DIALECTS, read_call, require_dialect, salvage_call
from toolcrib.dialects.mcp import open_result
from toolcrib.discovery import SearchAnswer
from toolcrib.errors import CallError, ConfigError, InvalidArguments, RequiredToolsMissing
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.execution.dispatch import Exchange, Runner
from toolcrib.execution.errands import Errand, Listener, Path, Paths
from toolcrib.execution.executor import Done, Run, error_result
from toolcrib.inventory import Selection
from toolcrib.names import Names, not_available
from toolcrib.progress import ProgressGuard
from toolcrib.scope import Scope, require_names
from toolcrib.tokens import estimate_tokens

if TYPE_CHECKING:
    from toolcrib.crib import Crib

Mode = Literal["sequential", "parallel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one of the model's calls got."""

    call: ModelCall
    """The model's own entry, untouched: the transcript keeps it (S7)."""
    result: Result
    tool: Tool | None = None
    """The real tool that ran or was refused, if the call meant one."""

    @property
    def message(self) -> JsonObject:
        """The answer in the dialect that the call came in."""
        return DIALECTS[self.call.dialect or "openai_chat"].write_result(self.call, self.result)


_INDEX_TRIES = 3
"""Indexes that a search waits for if the tools keep changing meanwhile; then it makes the next one itself."""


class Session:
    """One principal's view. Made by `Crib.session` and by `narrow`."""

    def __init__(
        self,
        crib: "Crib",
        *,
        id: str,
        principal: str,
        scope: Scope,
        window: int | None,
        required: tuple[str, ...] = (),
        policy: ApprovalPolicy | None = None,
    ) -> None:
        self.id = id
        self.principal = principal
        self.scope = scope
        self.window = window
        self.required = required
        self.policy = policy
        """Approval rules besides the general ones."""
        self.guard = ProgressGuard()
        self.places = crib.dispatcher.session_places()
        self._crib = crib
        self._children = 0
        self._looked = False
        """Whether every source was asked by an assembly, and nothing was searched since."""
        self._judged = (scope, policy)
        """Under what its ways of calls were found."""
        self._paths = crib.paths_of(scope, policy)

    # What the model sees

    def assemble(
        self,
        *,
        dialect: DialectName | None = None,
        previous: Turn | None = None,
        definitions: Sequence[JsonObject] | None = None,
    ) -> Turn:
        """The tools for one turn.

        Args:
            dialect: The shape of the model API; if not given, that of the previous turn, or `openai_chat`.
            previous: The turn before this one: its array is kept, byte for byte in the same dialect, and what changed
                is said in `notice`.
            definitions: What the host has in its array already. Bridge tools among them are dropped, deferrable ones
                are replaced, all others stay as they are and where they are.

        Raises:
            RequiredToolsMissing: Before any model is called.
        """
        if dialect is not None:
            require_dialect(dialect)
        selection = self._selection()
        missing = self._missing(selection)
        if missing:
            raise RequiredToolsMissing(missing)
        given = None if definitions is None else self._crib.admit_definitions(definitions)
        assembly = self._crib.assemblies.get(selection, window=self.window, definitions=given)
        self._looked = True
        turn = build_turn(assembly, dialect=dialect, previous=previous, hosted=given is not None)
        self._crib.note_assembly(self, assembly, turn)
        return turn

    @property
    def assembly(self) -> Assembly:
        """What `assemble` would be made of now, for code that only wants to know: nothing is noted in the feed."""
        return self._crib.assemblies.get(self._selection(), window=self.window)

    # What the model asks for

    async def execute(self, calls: Iterable[object], *, mode: Mode = "sequential") -> list[Answer]:
        """Answers the model's calls, in their order.

        Args:
            calls: Calls in any dialect, as JSON or as objects of the official SDKs.
            mode: `parallel` runs neighbouring calls at once where the real tools allow it.
        """
        if mode not in ("sequential", "parallel"):
            raise ConfigError(f"There is no mode `{mode}`: use `sequential` or `parallel`.")
        self._crib.dispatcher.require_loop()
        plan = [self._read(raw) for raw in calls]
        answers: list[Answer] = []
        for batch in self._batches(plan, mode):
            if len(batch) == 1:
                answers.append(await self._answer(*batch[0]))
                continue
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer(call, request)) for call, request in batch]
            answers.extend(task.result() for task in tasks)
        return answers

    async def call(self, name: str, arguments: Json = None, *, call_id: str = "caller") -> Result:
        """Runs one tool for code that holds the session: same scope, same stages, same feed (S7)."""
        call = ModelCall(id=call_id, name=name, arguments=arguments)
        return (await self._answer(call, _unwrapped(call, route="caller"))).result

    async def relay(self, call: ModelCall, exchange: Exchange) -> Done:
        """Runs what an MCP client sent: like `execute`, but what a server sent stays as it is, byte for byte."""
        request = _unwrapped(call)
        if isinstance(request, Invocation):
            run = Run(id=call.id, invocation=request, holder=self, exchange=exchange)
            done = await self._crib.executor.run(run)
            watched = self._watched(done, request)
            return done if watched is done.result else structs.replace(done, result=watched)
        answer = await self._answer(call, request)
        return Done(result=answer.result, tool=None, error=request if isinstance(request, CallError) else None)

    def begin(
        self,
        call_id: str,
        params: JsonObject,
        invocation: Invocation | None,
        exchange: Exchange,
        listener: Listener,
    ) -> Errand | None:
        """Begins what `relay` would run, if nothing but the answer has to be waited for; it is to be started then.

        `params` hold name and arguments; `invocation` is what `plain_invocation` makes of them, if anything.
        """
        crib = self._crib
        started, stock = crib.clock(), crib.stock
        stock.look()
        path = None
        if invocation is not None:
            path = self._ways().find(invocation.name, invocation.route, stock.generation)
        if path is None or invocation is None or not crib.executor.still_allows(path):
            name = params.get("name")
            if not isinstance(name, str) or not name:
                return None
            request = _unwrapped(ModelCall(id=call_id, name=name, arguments=params.get("arguments"), dialect="mcp"))
            if not isinstance(request, Invocation):
                return None
            path, invocation = self._find_path(request), request
            if path is None:
                return None
        return crib.executor.begin(call_id, invocation, path, self, exchange, listener, started)

    def search(self, query: str | Sequence[str], *, limit: int | None = None) -> SearchAnswer:
        """What `tool_search` would answer, for code. Raises `CallError`."""
        return self._search(search_for((query,) if isinstance(query, str) else query, limit))

    def describe(self, name: str) -> JsonObject:
        """What `tool_describe` would answer, for code. Raises `CallError`."""
        body, _ = self._crib.discovery.describe(self._names(), Describe(names=(name,)))
        return body

    @property
    def catalog(self) -> Catalog:
        """What this session may reach through the bridge now."""
        return self._selection().catalog

    def begin_turn(self) -> None:
        """Tells the progress guard that the user spoke: what was searched before is another matter."""
        self.guard.note_progress()

    def narrow(
        self,
        *,
        enabled_toolsets: Iterable[str] | None = None,
        disabled_toolsets: Iterable[str] = (),
        tools: Iterable[str] | None = None,
        read_only: bool = False,
        model_context: int | None = None,
        required_tools: Iterable[str] = (),
    ) -> "Session":
        """A session with at most what this one has: for a sub-agent or a scheduled turn (S19).

        Raises `ConfigError` for a disabled toolset that this session does not have: a slip must not grant more.
        """
        disabled_toolsets = frozenset(require_names(disabled_toolsets, "disabled_toolsets"))
        self._crib.require_toolsets(disabled_toolsets - self.scope.disabled, self.scope)
        required = require_names(required_tools, "required_tools")
        self._children += 1
        scope = self.scope.narrow(
            enabled=enabled_toolsets, disabled=disabled_toolsets, tools=tools, read_only=read_only
        )
        return self._crib.open_session(
            scope=scope,
            window=model_context if model_context is not None else self.window,
            required=required,
            principal=f"{self.principal}/{self._children}",
            policy=self.policy,
        )

    # What the executor asks of its holder

    def require_tool(self, invocation: Invocation) -> Tool:
        """The real tool of an invocation. Raises `CallError`."""
        crib = self._crib
        found = crib.names_of(crib.select(self.scope)).find(invocation.name, bridged=invocation.route == "bridge")
        if isinstance(found, CallError):
            raise found
        return found

    def require_granted(self, tool: Tool) -> Runner:
        """What runs the tool, if this session still has exactly this definition of it. Raises `CallError`."""
        crib = self._crib
        selection = crib.select(self.scope)
        current = selection.catalog.get(tool.name) or crib.names_of(selection).visible.get(tool.name)
        if current is not tool and current != tool:
            raise not_available(tool.name)
        return crib.runner_of(tool)

    # Inside

    def _find_path(self, invocation: Invocation) -> Path | None:
        """The way of calls by this name, kept for the next ones."""
        try:
            tool = self.require_tool(invocation)
            path = self._crib.executor.path(tool, self.require_granted(tool), self.policy)
        except CallError:
            return None
        if path is not None:
            self._ways().keep(invocation.name, invocation.route, self._crib.stock.generation, path)
        return path

    def _ways(self) -> Paths:
        """The ways of calls under the scope and the policy of this moment."""
        scope, policy = self._judged
        if scope is not self.scope or policy is not self.policy:
            self._judged = (self.scope, self.policy)
            self._paths = self._crib.paths_of(*self._judged)
        return self._paths

    def _selection(self) -> Selection:
        return self._crib.select(self.scope)

    def _names(self) -> Names:
        return self._crib.names_of(self._selection())

    def missing_tools(self) -> tuple[str, ...]:
        """Required tools that the session does not have now (S22)."""
        return self._missing(self._selection()) if self.required else ()

    def _missing(self, selection: Selection) -> tuple[str, ...]:
        if not self.required:
            return ()
        names = self._crib.names_of(selection)
        return tuple(name for name in self.required if isinstance(names.find(name, bridged=False), CallError))

    def _read(self, raw: object) -> tuple[ModelCall, Request | CallError]:
        try:
            call = read_call(raw)
        except CallError as error:
            return salvage_call(raw), error
        return call, _unwrapped(call)

    def _batches(
        self, plan: Sequence[tuple[ModelCall, Request | CallError]], mode: Mode
    ) -> Iterable[list[tuple[ModelCall, Request | CallError]]]:
        """Neighbouring calls that may run at once."""
        batch: list[tuple[ModelCall, Request | CallError]] = []
        for item in plan:
            if mode == "parallel" and self._may_run_beside(item[1]):
                batch.append(item)
                continue
            if batch:
                yield batch
                batch = []
            yield [item]
        if batch:
            yield batch

    def _may_run_beside(self, request: Request | CallError) -> bool:
        if isinstance(request, Invocation):
            found = self._names().find(request.name, bridged=request.route == "bridge")
            return isinstance(found, CallError) or found.traits.parallel
        return True

    async def _answer(self, call: ModelCall, request: Request | CallError) -> Answer:
        match request:
            case Invocation():
                done = await self._crib.executor.run(Run(id=call.id, invocation=request, holder=self))
                return Answer(call=call, result=open_result(self._watched(done, request)), tool=done.tool)
            case Search():
                return Answer(call=call, result=await self._find(request, call.id))
            case Describe():
                return Answer(call=call, result=self._ask(request, call.id, self._crib.clock()))
            case CallError():
                self._note("unwrap", call.id, 0.0, error=request)
                return Answer(call=call, result=error_result(request))

    async def _find(self, question: Search, call_id: str) -> Result:
        """The answer to a search; the event loop waits for nothing but the searching."""
        crib, started = self._crib, self._crib.clock()
        if crib.settings.tools.tool_search.reranker.enabled:  # the endpoint may take its whole budget
            return await asyncio.to_thread(self._ask, question, call_id, started)
        for _ in range(_INDEX_TRIES):
            ask, self._looked = not self._looked, False
            catalog = crib.select(self.scope, ask=ask).catalog
            if crib.indexing.is_done(catalog):
                break
            await crib.indexing.wait_for(catalog)
        self._looked = True
        return self._ask(question, call_id, started)

    def _watched(self, done: Done, invocation: Invocation) -> Result:
        """The result, with a word to a model that repeats a call that cannot work."""
        if not isinstance(done.error, InvalidArguments):
            if done.error is None:
                self.guard.note_progress()
            return done.result
        times = self.guard.note_failure(invocation.name, invocation.arguments)
        if times == 1:
            return done.result
        text = (
            f"The same call failed {times} times for the same reason. Stop repeating it: change the arguments, "
            "or tell the user what is missing."
        )
        extra = done.error.extra if times == 2 else {}
        return error_result(InvalidArguments(text, extra=extra))

    def _ask(self, question: Search | Describe, call_id: str, started: float) -> Result:
        stage = "search" if isinstance(question, Search) else "describe"
        try:
            if isinstance(question, Search):
                answer = self._search(question)
                body = answer.body
                detail: JsonObject = {"queries": len(question.queries), "found": list(answer.names)}
                detail["mode"] = answer.mode
                if self._crib.settings.activity.queries:
                    detail["words"] = query_words(question.queries)
            else:
                body, tools = self._crib.discovery.describe(self._names(), question)
                detail = {"described": [tool.name for tool in tools]}
                if tools:
                    self.guard.note_described(tool.name for tool in tools)
        except CallError as error:
            self._note(stage, call_id, started, error=error)
            return error_result(error)
        encoded = orjson.dumps(body)
        self._note(stage, call_id, started, tokens=estimate_tokens(json_chars(encoded)), detail=detail)
        return text_result(encoded.decode(), structured=body)

    def _search(self, question: Search) -> SearchAnswer:
        # The look of an assembly counts for the search that follows it: a list that only comparing can tell to be
        # unchanged is compared once a step, not twice. Later searches look again, and every call does.
        ask, self._looked = not self._looked, False
        selection = self._crib.select(self.scope, ask=ask)
        return self._crib.discovery.search(selection.catalog, question, self.guard)

    def _note(
        self,
        stage: str,
        call_id: str,
        started: float,
        *,
        error: CallError | None = None,
        tokens: int | None = None,
        detail: Json = None,
    ) -> None:
        activity = self._crib.activity
        activity.record(
            Event(
                stage=stage,
                outcome="refused" if error else "ok",
                session=self.id,
                principal=self.principal,
                call_id=call_id,
                duration_ms=round((self._crib.clock() - started) * 1000, 3) if started else None,
                tokens=tokens,
                code=error.code if error else None,
                reason=str(error) if error else None,
                detail=detail,
                at=activity.now(),
            )
        )


def _unwrapped(call: ModelCall, *, route: Route = "direct") -> Request | CallError:
    try:
        return unwrap(call, route=route)
    except CallError as error:
        return error
