"""Looks at a crib as the gateway would run it: starts its sources, waits a while, and ends them whatever happens."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolcrib.clients.state import ClientState
from toolcrib.config import Loaded, lock_file, open_sources
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.doctor.checks import (
    Check,
    ProfileView,
    ServerState,
    check_aliases,
    check_approvals,
    check_clients,
    check_config,
    check_gate,
    check_kernel,
    check_pins,
    check_reranker,
    check_retrieval,
    check_screening,
    check_servers,
    check_skipped,
)
from toolcrib.errors import ToolcribError
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.gateway.profiles import Principal, Profiles, open_session
from toolcrib.gateway.run import DEFAULT_CONFIG
from toolcrib.kernel import account
from toolcrib.limits import AUDIT_CLOSE_S, DOCTOR_ENDPOINT_S, DOCTOR_START_S
from toolcrib.retrieval.factory import endpoint_of, open_embedder, open_static, semantic_tier
from toolcrib.retrieval.neighbours import shipped_neighbours
from toolcrib.retrieval.reranker import EmbeddingFailed
from toolcrib.settings import Settings
from toolcrib.sources.base import Settling, Source
from toolcrib.sources.mcp_source import McpSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything that was looked at."""

    checks: tuple[Check, ...]
    servers: tuple[ServerState, ...]
    views: tuple[ProfileView, ...]
    retrieval: str
    """How searches are really done."""
    intake: JsonObject
    """What is held back, not as approved, found or left out: all of it, for machines."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.state != "wrong" for check in self.checks)

    def as_json(self) -> JsonObject:
        """The diagnosis as plain data."""
        return {
            "healthy": self.healthy,
            "checks": [check.as_json() for check in self.checks],
            "servers": [_server_json(server) for server in self.servers],
            "gate": [_view_json(view) for view in self.views],
            "retrieval": self.retrieval,
            **self.intake,
        }


async def examine(
    loaded: Loaded,
    *,
    path: Path | None,
    changed: Sequence[tuple[str, str, str]],
    clients: Sequence[ClientState] | None,
    environ: Mapping[str, str],
    context: int | None = None,
    wait_s: float = DOCTOR_START_S,
    heard: Callable[[str], None] = lambda name: None,
) -> Diagnosis:
    """The check-up of one configuration, and of the clients if they are given. Raises `ConfigError`."""
    settings = loaded.settings
    tier = semantic_tier(settings.tools.tool_search)
    retriever = open_static(environ)
    lock = lock_file(path, settings) if path else None
    crib = Crib(
        *open_sources(settings),
        settings=settings,
        core=settings.tools.core or (),
        retriever=lambda: retriever,
        lock=lock,
    )
    profiles = Profiles(settings.profiles)
    profiles.check(crib)
    try:
        times = await _start(crib, wait_s, heard)
        servers = _server_states(crib, settings, times, wait_s)
        views = tuple(
            _view(crib, profiles.principal("doctor", name), context)
            for name in profiles.names
            if name in settings.profiles or not settings.profiles
        )
        findings = await asyncio.to_thread(crib.screen)
        held_back, drifts, skipped = crib.held_back, crib.drifts, crib.skipped
        tools = [tool for offer in crib.offers for tool in offer.toolset.tools]
        if tier != "off":
            _apply(crib)
    finally:
        with suppress(TimeoutError, ToolcribError):
            async with asyncio.timeout(AUDIT_CLOSE_S):
                await crib.close()
    configured = "lexical" if tier == "off" else "hybrid"
    complete = not any(server.error for server in servers)
    lacking = retriever.lacking or shipped_neighbours().lacking
    checks = (
        *check_config(path, changed),
        *check_servers(servers),
        *check_gate(views),
        *(check_approvals(_policies(crib, profiles), tools) if complete else ()),
        check_retrieval(configured=configured, unavailable=retriever.unavailable, lacking=lacking),
        *(await asyncio.to_thread(_ask_reranker, settings, environ)),
        *(check_aliases(settings.tools.aliases, tools) if complete else ()),
        check_kernel(account=account()),
        *(check_pins(settings.pins, lock=lock, drifts=drifts) if servers else ()),
        *check_screening(settings.screening, held_back=held_back, findings=findings),
        *check_skipped(skipped),
        *(check_clients(clients) if clients is not None else ()),
    )
    if path is not None and path != DEFAULT_CONFIG:
        checks = tuple(check.for_file(path) for check in checks)
    intake: JsonObject = {
        "held_back": [{"toolset": item.toolset, "name": item.name, "reason": item.reason} for item in held_back],
        "drifts": [
            {"kind": item.kind, "toolset": item.toolset, "name": item.name, "state": item.state} for item in drifts
        ],
        "findings": {name: [finding.as_json() for finding in found] for name, found in findings.items() if found},
        "skipped": [{"toolset": item.toolset, "name": item.name, "reason": item.reason} for item in skipped],
    }
    applied = "lexical" if retriever.unavailable else configured
    return Diagnosis(checks=checks, servers=servers, views=views, retrieval=applied, intake=intake)


async def _start(crib: Crib, wait_s: float, heard: Callable[[str], None]) -> dict[str, float]:
    """Starts every source; the seconds after which each had an answer."""
    began = time.monotonic()
    times: dict[str, float] = {}

    async def one(source: Source) -> None:
        if isinstance(source, Settling):
            await source.settled.wait()
            times[source.name] = time.monotonic() - began
            heard(source.name)

    await crib.start()
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s), asyncio.TaskGroup() as group:
            for source in crib.sources:
                group.create_task(one(source))
    return times


def _server_states(
    crib: Crib, settings: Settings, times: Mapping[str, float], wait_s: float
) -> tuple[ServerState, ...]:
    sources = {source.server: source for source in crib.sources if isinstance(source, McpSource)}
    states: list[ServerState] = []
    for name in settings.mcpServers:
        source = sources.get(name)
        if source is None:
            states.append(ServerState(name=name, tools=0, disabled=True))
            continue
        toolset = source.snapshot()[0]
        error = toolset.unavailable
        if error is None and source.name not in times:
            error = f"it did not answer within {wait_s:g} seconds"
        states.append(
            ServerState(
                name=name,
                tools=len(toolset.tools),
                seconds=times.get(source.name),
                error=error,
                is_web=settings.mcpServers[name].url is not None,
            )
        )
    return tuple(states)


def _view(crib: Crib, principal: Principal, context: int | None) -> ProfileView:
    session = open_session(crib, principal)
    if context is not None:
        session.window = context
    assembly = session.assemble().assembly
    # Only now: with it, a session that lacks a tool refuses to assemble.
    session.required = principal.required
    return ProfileView(
        profile=principal.profile,
        decision=assembly.decision,
        visible=tuple(tool.name for tool in assembly.tools),
        tokens=assembly.tokens,
        missing=session.missing_tools(),
    )


def _policies(crib: Crib, profiles: Profiles) -> Iterator[ApprovalPolicy]:
    """The general policy, and those of profiles."""
    yield crib.approvals.policy
    for name in profiles.names:
        own = profiles.principal("doctor", name).policy
        if own is not None:
            yield own


def _apply(crib: Crib) -> None:
    """One search over everything: only then is it known whether the model can be read."""
    crib.session().search("check")


def _ask_reranker(settings: Settings, environ: Mapping[str, str]) -> Sequence[Check]:
    search = settings.tools.tool_search
    if not search.reranker.enabled:
        return ()
    endpoint = endpoint_of(search, environ)
    embedder = open_embedder(endpoint)
    try:
        vectors = embedder.embed(["check"], budget_s=DOCTOR_ENDPOINT_S)
    except EmbeddingFailed as error:
        return (check_reranker(host=endpoint.host, failure=str(error), dimensions=0),)
    return (check_reranker(host=endpoint.host, failure=None, dimensions=len(vectors[0]) if vectors else 0),)


def _server_json(server: ServerState) -> JsonObject:
    status = "disabled" if server.disabled else "failed" if server.error else "ok"
    shown: JsonObject = {"name": server.name, "status": status, "tools": server.tools}
    return {**shown, "error": server.error} if server.error else shown


def _view_json(view: ProfileView) -> JsonObject:
    decision = view.decision
    return {
        "profile": view.profile,
        "deferred": decision.defer,
        "reason": decision.reason,
        "deferrable": decision.deferrable,
        "tokens": decision.tokens,
        "threshold": decision.threshold,
        "window": decision.window,
        "visible_tools": len(view.visible),
        "visible_tokens": view.tokens,
    }
