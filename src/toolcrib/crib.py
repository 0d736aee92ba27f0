"""A crib: sources and settings, from which sessions are made.

It owns what is shared (the inventory, the caches of immutable values, the executor, the feed) and nothing that
belongs to one session.
"""

import asyncio
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from toolcrib.activity import Activity, Event, JsonlSink
from toolcrib.assembly import Assemblies, Assembly, Turn
from toolcrib.core import USUAL_CORE, CoreSet
from toolcrib.definitions import BRIDGE_NAMES, JsonObject, Skipped, Tool
from toolcrib.discovery import Discovery
from toolcrib.errors import ConfigError, RequiredToolsMissing
from toolcrib.execution.approval import ApprovalPolicy, Approvals, Approver
from toolcrib.execution.dispatch import Dispatcher, Runner
from toolcrib.execution.errands import Paths
from toolcrib.execution.executor import Executor
from toolcrib.execution.hooks import Checkpoint, Guardrail, Hook, Progress
from toolcrib.execution.validation import Validator
from toolcrib.indexing import Indexing
from toolcrib.intake.admission import HeldBack, Intake
from toolcrib.intake.findings import Finding
from toolcrib.intake.freezing import name_of
from toolcrib.intake.naming import nearest
from toolcrib.intake.pins import LOCK_NAME, Drift, Offer
from toolcrib.inventory import Inventory, Selection, Selector
from toolcrib.limits import CACHE_CATALOGS
from toolcrib.names import Names
from toolcrib.retrieval.base import Retriever
from toolcrib.scope import Scope, require_names
from toolcrib.session import Session
from toolcrib.settings import Settings
from toolcrib.sources.base import Settling, Source, Starting
from toolcrib.stock import Stock

logger = logging.getLogger("toolcrib")


class Crib:
    """Sources and settings, from which sessions are made."""

    def __init__(
        self,
        *sources: Source,
        settings: Settings | None = None,
        core: Iterable[str] | None = None,
        guardrails: Sequence[Guardrail] = (),
        hooks: Sequence[Hook] = (),
        checkpoints: Sequence[Checkpoint] = (),
        progress: Sequence[Progress] = (),
        approver: Approver | None = None,
        retriever: Callable[[], Retriever] | None = None,
        lock: Path | str | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings or Settings()
        self.clock = clock
        patterns = core if core is not None else self.settings.tools.core
        self.core = USUAL_CORE if patterns is None else CoreSet.of(patterns)
        self.activity = Activity(clock=wall_clock)
        if self.settings.activity.file:
            self.activity.add_sink(JsonlSink(self.settings.activity.file))
        approvals = self.settings.approvals
        self.approvals = Approvals(
            policy=ApprovalPolicy.of(approvals),
            clock=clock,
            approver=approver,
            ttl_s=approvals.ttl_s,
        )
        self.dispatcher = Dispatcher(self.settings.limits)
        self.validator = Validator()
        self.executor = Executor(
            activity=self.activity,
            approvals=self.approvals,
            dispatcher=self.dispatcher,
            validator=self.validator,
            clock=clock,
            result_max_chars=self.settings.limits.result_max_chars,
            guardrails=guardrails,
            hooks=hooks,
            checkpoints=checkpoints,
            progress=progress,
            show_values=self.settings.activity.arguments == "values",
        )
        search = self.settings.tools.tool_search
        self.discovery = Discovery(
            settings=search,
            retriever=retriever or partial(_default_retriever, self.settings, clock),
            aliases=self.settings.tools.aliases,
        )
        self.indexing = Indexing(self.discovery)
        self.assemblies = Assemblies(search, self.core, built=_log_activation)
        # A program that says nothing about a lock reads none: a file that happens to lie here approves nothing.
        named = lock or self.settings.lock or (LOCK_NAME if self.settings.pins == "enforce" else None)
        self.intake = Intake(
            pins=self.settings.pins, screening=self.settings.screening, lock=Path(named) if named else None
        )
        self.stock = Stock(self.intake, self.activity)
        self._selector = Selector(self.core)
        self._names: WeakKeyDictionary[Selection, Names] = WeakKeyDictionary()
        self._last_names: tuple[Selection, Names] | None = None
        self._paths: OrderedDict[tuple[Scope, int], tuple[Scope, ApprovalPolicy | None, Paths]] = OrderedDict()
        self._last_paths: tuple[Scope, ApprovalPolicy | None, Paths] | None = None
        self._sessions = 0
        self._mark = f"-{secrets.token_hex(3)}" if self.settings.activity.file else ""
        """Several processes write into one file, one after the other: their sessions are not the same."""
        self._closed = False
        for source in sources:
            self.add(source)

    @classmethod
    def from_config(cls, path: Path | str, **options: object) -> "Crib":
        """The crib that a configuration file describes. Raises `ConfigError`."""
        from toolcrib.config import load_settings, lock_file, open_sources

        settings = load_settings(Path(path)).settings
        options = {"lock": lock_file(Path(path), settings), **options}
        return cls(*open_sources(settings), settings=settings, **options)  # pyright: ignore[reportArgumentType]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Starts the sources that need it; returns at once, their tools come as they come."""
        for source in tuple(self.stock.sources.values()):
            if isinstance(source, Starting):
                await source.start()

    async def settle(self, *, wait_s: float) -> tuple[str, ...]:
        """Waits a while for sources that are still starting; the names of those that still are after it."""
        waiting = {name: source for name, source in self.stock.sources.items() if isinstance(source, Settling)}
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await asyncio.gather(*(source.settled.wait() for source in waiting.values()))
        return tuple(name for name, source in waiting.items() if not source.settled.is_set())

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, in the order in which they were added."""
        return tuple(self.stock.sources.values())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes every source."""
        self._closed = True
        await asyncio.gather(*(source.close() for source in self.stock.sources.values()))

    # Sources

    def add(self, source: Source) -> None:
        """Adds a source; its tools are there on the next assembly. Raises `ConfigError` if the name is taken."""
        self.stock.add(source)

    def remove(self, name: str) -> Source:
        """Removes a source; its tools are gone on the next assembly. The caller closes it. Raises `ConfigError`."""
        return self.stock.remove(name)

    @property
    def generation(self) -> int:
        """Counts every change of the inventory."""
        return self.stock.generation

    @property
    def inventory(self) -> Inventory:
        """All toolsets now."""
        return self.stock.look()

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Every definition that could not be used, and why."""
        inventory = self.inventory
        return (*inventory.skipped, *(item for toolset in inventory.toolsets for item in toolset.skipped))

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What the sources offer, before anything is held back: for the operator, never for a model."""
        self.stock.look()
        return self.stock.admission.offers

    @property
    def held_back(self) -> tuple[HeldBack, ...]:
        """Tools that no session gets, and why."""
        self.stock.look()
        return self.stock.admission.held_back

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """What is not as the lock file approves it; nothing if there is no lock file."""
        self.stock.look()
        return self.stock.admission.drifts

    @property
    def held_sources(self) -> frozenset[str]:
        """Sources of which nothing is passed on, because they are not started or reached as approved (C6)."""
        if self.settings.pins != "enforce":
            return frozenset()
        return frozenset(drift.name for drift in self.drifts if drift.kind == "launch")

    def screen(self) -> Mapping[str, tuple[Finding, ...]]:
        """Every screening finding by tool, soft ones too. Takes about a millisecond a tool: for reports."""
        return self.intake.findings([offer.toolset for offer in self.offers])

    def refresh(self) -> None:
        """Looks at the sources and the lock file again on the next assembly."""
        self.stock.refresh()

    # Sessions

    def session(
        self,
        *,
        model_context: int | None = None,
        enabled_toolsets: Iterable[str] | None = None,
        disabled_toolsets: Iterable[str] = (),
        tools: Iterable[str] | None = None,
        read_only: bool = False,
        required_tools: Iterable[str] = (),
        principal: str = "local",
    ) -> Session:
        """A session for one principal.

        Args:
            model_context: The context window of the session's own model, in tokens.
            enabled_toolsets: Toolsets that it may have; all if not given.
            disabled_toolsets: Toolsets that it may not have, whatever else is said.
            tools: Patterns of tool names that it may have, within its toolsets.
            read_only: Only tools that say that they change nothing.
            required_tools: Names without which the session must not start.
            principal: Who it acts for.

        Raises:
            ConfigError: A toolset that does not exist.
            RequiredToolsMissing: A required tool that the session does not have.
        """
        scope = Scope().narrow(enabled=enabled_toolsets, disabled=disabled_toolsets, tools=tools, read_only=read_only)
        self.require_toolsets((scope.enabled or frozenset()) | scope.disabled, Scope())
        required = require_names(required_tools, "required_tools")
        return self.open_session(scope=scope, window=model_context, required=required, principal=principal)

    def open_session(
        self,
        *,
        scope: Scope,
        window: int | None,
        required: tuple[str, ...],
        principal: str,
        policy: ApprovalPolicy | None = None,
    ) -> Session:
        """A session with this scope, and with approval rules of its own besides the general ones."""
        if self._closed:
            raise ConfigError("The crib is closed.")
        if window is not None and not _is_window(window):
            raise ConfigError(f"`model_context` must be a number of tokens, not {window!r}.")
        self._sessions += 1
        session = Session(
            self,
            id=f"s{self._sessions}{self._mark}",
            principal=principal,
            scope=scope,
            window=window,
            required=required,
            policy=policy,
        )
        missing = session.missing_tools()
        if missing:
            raise RequiredToolsMissing(missing)
        return session

    # What sessions ask of their crib

    def select(self, scope: Scope, *, ask: bool = True) -> Selection:
        """What a scope grants now; with `ask` unset, of what was there when somebody last asked every source."""
        return self._selector.select(self.stock.look(ask=ask), scope)

    def admit_definitions(self, definitions: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """A host's own array without what is held back: it must not come in by the side door."""
        held = {item.name for item in self.stock.admission.held_back}
        return [raw for raw in definitions if name_of(raw) not in held] if held else definitions

    def names_of(self, selection: Selection) -> Names:
        """The names of a selection."""
        last = self._last_names
        if last is not None and last[0] is selection:
            return last[1]
        names = self._names.get(selection)
        if names is None:
            names = self._names[selection] = Names.of(selection.visible, selection.catalog)
        self._last_names = (selection, names)
        return names

    def paths_of(self, scope: Scope, policy: ApprovalPolicy | None) -> Paths:
        """What was found out about calls in sessions with this scope and this policy."""
        last = self._last_paths
        if last is not None and last[0] is scope and last[1] is policy:
            return last[2]
        # The policy is kept with what belongs to it, so that no other one can have its identity.
        key = (scope, id(policy))
        entry = self._paths.get(key)
        if entry is None:
            entry = self._paths[key] = (scope, policy, Paths())
            if len(self._paths) > CACHE_CATALOGS:
                self._paths.popitem(last=False)
        else:
            self._paths.move_to_end(key)
        self._last_paths = entry
        return entry[2]

    def runner_of(self, tool: Tool) -> Runner:
        """The source that runs the tool."""
        return self.stock.owner_of(tool.toolset)

    def note_assembly(self, session: Session, assembly: Assembly, turn: Turn) -> None:
        """Takes an assembly into the feed."""
        self.activity.record(
            Event(
                stage="assemble",
                outcome="info",
                session=session.id,
                principal=session.principal,
                tokens=turn.assembly.tokens,
                reason=assembly.account,
                detail={"notice": turn.notice} if turn.notice else None,
                at=self.activity.now(),
            )
        )

    def require_toolsets(self, names: frozenset[str], scope: Scope) -> None:
        """Raises `ConfigError` for a name that is no toolset of the scope, whether there is one elsewhere or not."""
        if not names:  # nobody has to be asked: an assembly does
            return
        every = {toolset.name for toolset in self.inventory.toolsets} | set(self.stock.sources)
        known = {name for name in every if scope.allows_toolset(name)}
        for name in sorted(names - known):
            hint = nearest(name, known)
            raise ConfigError(f"There is no toolset `{name}`{f': did you mean `{hint}`?' if hint else '.'}")


def _log_activation(assembly: Assembly) -> None:
    """Tells the log of an array that defers tools (S16)."""
    decision = assembly.decision
    if decision.defer:
        logger.info(
            "tool search active: %d tools visible, %d deferred, %d tokens (threshold %d)",
            len(assembly.tools) - len(BRIDGE_NAMES),
            decision.deferrable,
            decision.tokens,
            decision.threshold,
        )


def _is_window(window: object) -> bool:
    return isinstance(window, int | float) and not isinstance(window, bool) and 0 <= window < float("inf")


def _default_retriever(settings: Settings, clock: Callable[[], float]) -> Retriever:
    # Here and not above: nobody pays for numpy before the first search.
    from toolcrib.retrieval.factory import build_retriever

    return build_retriever(settings.tools.tool_search, clock=clock, environ=os.environ)
