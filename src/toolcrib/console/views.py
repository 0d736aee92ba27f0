"""What the page asks a running gateway: one method for each view, a value in and a value out."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import orjson

from toolcrib.activity import Event
from toolcrib.console.showing import Shades
from toolcrib.console.values import (
    Decision,
    Overview,
    SearchQuestion,
    SearchView,
    ServerView,
    WaitingView,
)
from toolcrib.definitions import Json
from toolcrib.explaining import explained, find_reasons
from toolcrib.gateway.desk import Waiting
from toolcrib.gateway.http_wire import Refused
from toolcrib.gateway.profiles import open_session
from toolcrib.gateway.server import Gateway
from toolcrib.sources.handshake import own_info
from toolcrib.sources.mcp_source import McpSource

_GONE = "This call does not wait any more: somebody has decided, its time is over, or it was made again."


class Views:
    """A gateway as somebody who looks after it sees it."""

    def __init__(self, gateway: Gateway, shades: Shades, *, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._shades = shades
        self._clock = clock

    def overview(self, name: str) -> Overview:
        """Figures for the head of the page."""
        servers = self._gateway.servers
        return Overview(
            version=str(own_info()["version"]),
            name=name,
            profiles=self._gateway.profiles.names,
            servers=len(servers),
            tools=sum(len(toolset.tools) for toolset in self._gateway.crib.inventory.toolsets),
            in_flight=self._gateway.in_flight,
            waiting=len(self._gateway.desk.waiting()),
            down=sum(server.health.state == "down" for server in servers),
        )

    async def search(self, question: SearchQuestion) -> SearchView:
        """What a client with this profile would find, and why. Raises `CallError`, `ConfigError`."""
        crib = self._gateway.crib
        session = open_session(crib, self._gateway.profiles.principal("console", question.profile))
        catalog = session.catalog
        # An index takes its time: calls do not wait for the first search.
        if not crib.indexing.is_done(catalog):
            await crib.indexing.wait_for(catalog)
        ask = partial(session.search, question.query, limit=question.limit)
        began = time.perf_counter()
        # An endpoint may take its whole budget, and reasons their time: calls do not wait with them.
        slow = crib.settings.tools.tool_search.reranker.enabled
        answer = await asyncio.to_thread(ask) if slow else ask()
        ms = (time.perf_counter() - began) * 1000
        rankings = await asyncio.to_thread(find_reasons, crib, catalog, question.query, answer)
        found = explained(question.query, answer, rankings)
        body = {key: self._shaded(value) for key, value in answer.body.items()}
        return SearchView(
            query=question.query,
            read_as=found.read_as,
            profile=question.profile,
            total_available=answer.body["total_available"],
            matches=tuple(self._shaded(match) for match in found.matches),
            abstained=answer.abstained,
            doubtful=answer.doubtful,
            confidence=found.confidence,
            nearest=found.nearest,
            retrieval=answer.mode,
            tokens=answer.tokens,
            ms=round(ms, 3),
            answer=orjson.dumps(body).decode(),
        )

    def approvals(self) -> tuple[WaitingView, ...]:
        """The calls that wait for somebody's agreement, oldest first. Raises `ConfigError`."""
        return tuple(self._waiting(item) for item in self._gateway.desk.waiting())

    def decide(self, decision: Decision, name: str) -> WaitingView:
        """Allows or refuses a call at the desk that the command line uses too. Raises `Refused`, `ConfigError`."""
        desk, crib = self._gateway.desk, self._gateway.crib
        item = desk.find(decision.id)
        if item is None or not (desk.grant(item) if decision.allow else desk.refuse(item)):
            raise Refused(409, _GONE)
        crib.activity.record(
            Event(
                stage="decide",
                outcome="info",
                principal=item.principal,
                tool=item.tool,
                toolset=item.toolset,
                reason=f"{'allowed' if decision.allow else 'refused'} in the console by {name}",
                at=crib.activity.now(),
            )
        )
        return self._waiting(item)

    def health(self) -> tuple[ServerView, ...]:
        """The servers: those that need somebody first."""
        held: dict[str, int] = {}
        for item in self._gateway.crib.held_back:
            held[item.toolset] = held.get(item.toolset, 0) + 1
        order = ("down", "starting", "up", "stopped")
        views = [self._server(server, held.get(server.name, 0)) for server in self._gateway.servers]
        return tuple(sorted(views, key=lambda view: (order.index(view.state), view.name)))

    def _server(self, server: McpSource, held_back: int) -> ServerView:
        health, peer = server.health, server.peer
        (toolset,) = server.snapshot()
        launch = server.launch
        return ServerView(
            name=server.server,
            kind="http" if launch is not None and launch.url else "program",
            start=server.options.start,
            state=health.state,
            reason=self._said(health.reason, server),
            since_s=round(health.since_s, 1),
            tools=len(toolset.tools),
            left_out=len(toolset.skipped),
            held_back=held_back,
            restarts=health.restarts,
            failure=self._said(health.failure, server),
            failure_s=None if health.failure_s is None else round(health.failure_s, 1),
            protocol=peer.version if peer is not None else None,
            garbage=server.garbage,
        )

    def _said(self, text: str | None, server: McpSource) -> str | None:
        return None if text is None else self._shades.text(text, server.server)

    def _shaded(self, value: Json) -> Json:
        """Hits without what the servers of some should keep to themselves, in the reason why they are down."""
        if isinstance(value, list):
            return [self._shaded(item) for item in value]
        if not isinstance(value, dict):
            return value
        reason = value.get("unavailable")
        return {**value, "unavailable": self._shades.text(reason)} if isinstance(reason, str) else value

    def _waiting(self, item: Waiting) -> WaitingView:
        return WaitingView(
            id=item.id,
            tool=item.tool,
            toolset=item.toolset,
            principal=item.principal,
            arguments=item.arguments,
            rule=item.rule,
            left_s=max(0.0, item.expires - self._clock()),
        )
