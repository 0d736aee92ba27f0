"""An MCP server as a source: its tools, prompts and resources, and the calls to them.

The last good lists are kept while the server is down, marked with the reason, so that a search still finds what will
be back, and no search ever asks a server anything. A list that did not change costs the digest of its bytes. A call
is one request: what the server answers is handed on as the bytes that it sent.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, cast

from toolcrib.definitions import JsonObject, Skipped, Toolset, ToolsetName
from toolcrib.errors import SourceError
from toolcrib.execution.dispatch import Era, Exchange
from toolcrib.intake.naming import safe_prefix
from toolcrib.intake.pins import Launch
from toolcrib.limits import IDLE_STOP_S, REFRESH_EVERY_S
from toolcrib.sources.base import build_toolset, freeze_toolset
from toolcrib.sources.choosing import EVERYTHING, Choice, choose
from toolcrib.sources.handshake import Listed, Peer, modern_headers, read_list
from toolcrib.sources.json_rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from toolcrib.sources.link import LISTEN, Link, Listener, read_json
from toolcrib.sources.mcp_calls import McpCalls
from toolcrib.sources.patience import Patience
from toolcrib.sources.supervisor import Breaker, Lane, Pace

logger = logging.getLogger("toolcrib.sources")

StartMode = Literal["eager", "on_demand", "idle_stop"]
EraChoice = Literal["auto", "legacy", "modern", "mirror"]
Event = Literal["tools", "prompts", "resources", "resource"]
State = Literal["starting", "up", "stopped", "down"]
Connect = Callable[[Listener, Era | None], Awaitable[Link]]
"""Reaches the server; told who hears its announcements and in which era it will be spoken to."""
Watcher = Callable[[Event, str | None], None]
"""Is told what changed; for `resource`, which one."""

_CHANGES: Mapping[str, Event] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
_UNKNOWN = (METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS)
"""Answers of a server that does not know what it was asked."""
_USUAL_LOG_LEVEL = "info"
"""What a server is asked for when nobody wishes for a level any more: the protocol has no way to take a wish back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    """How a server is run."""

    start: StartMode = "eager"
    era: EraChoice = "auto"
    prefix: str | None = None
    """The prefix of its names; made from the server's name if not given, none if empty."""
    timeout_s: float | None = None
    """Seconds that one of its calls may take, if less than what limits say."""
    idle_stop_s: float = IDLE_STOP_S
    is_http: bool = False
    trust: bool = False
    """Whether what the server says of its own tools is believed."""
    choice: Choice = EVERYTHING
    """Which of its tools are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a server is. Times are ages, in seconds."""

    state: State
    """`stopped` is on purpose: the next call starts it."""
    reason: str | None
    """Why it is down."""
    since_s: float
    restarts: int
    failure: str | None
    """Why it last failed, whatever became of it."""
    failure_s: float | None


class McpSource(McpCalls):
    """One MCP server."""

    def __init__(
        self,
        server: str,
        connect: Connect,
        *,
        options: McpOptions | None = None,
        launch: Launch | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.options = options or McpOptions()
        super().__init__(server, timeout_s=self.options.timeout_s, clock=clock)
        self.launch = launch
        """How it is started or reached: pinned with its tools (C6)."""
        self.settled = asyncio.Event()
        """Set as soon as the first start has succeeded or failed."""
        self.prompts: tuple[JsonObject, ...] = ()
        self.resources: tuple[JsonObject, ...] = ()
        self.templates: tuple[JsonObject, ...] = ()
        self.refreshes = 0
        """Times that its lists were read again because it said that they changed."""
        prefix = self.options.prefix
        self.prefix = safe_prefix(server) if prefix is None else prefix
        self._toolset = Toolset(name=ToolsetName(f"mcp-{server}"), origin="mcp", tools=(), prefix=self.prefix)
        self._snapshot: tuple[Toolset, ...] = (self._toolset,)
        self._connect = connect
        self._pace = pace or Pace(clock=clock)
        self._patience = patience or Patience()
        self._patience.tell(self._note_waiting)
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._mirrors = self.options.era == "mirror" or (self.options.era == "auto" and self.options.is_http)
        """Whether callers of either era may have a lane of their own."""
        self._lanes: dict[Era | None, Lane] = {}
        self._digests: dict[str, str] = {}
        self._changed: list[Callable[[], None]] = []
        self._watchers: list[Watcher] = []
        self._dirty: set[str] = set()
        self._refresher: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._deaf = Breaker(clock=clock, rng=self._rng)
        """How long to wait before a modern server is asked again to say what changes."""
        self._missed = False
        """Whether changes may have gone unheard since it was asked first."""
        self._log_level: str | None = None
        self._followed: set[str] = set()
        """Resources that it was asked to tell about."""
        self._closing = False

    # What a crib asks of a source

    @property
    def name(self) -> str:
        """The name by which the source is added and removed."""
        return self._toolset.name

    def snapshot(self) -> Sequence[Toolset]:
        """Its tools as they were listed last."""
        return self._snapshot

    def watch(self, changed: Callable[[], None]) -> bool:
        """Calls `changed` when the tools changed or the server came or went."""
        self._changed.append(changed)
        return True

    async def start(self) -> None:
        """Begins to look after the server; returns at once."""
        self._spawn(self._look_after())

    async def close(self) -> None:
        """Ends the server."""
        self._closing = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))
        self.settled.set()

    # What a gateway asks besides

    def subscribe(self, watcher: Watcher) -> None:
        """Tells `watcher` about every change of lists and of subscribed resources."""
        self._watchers.append(watcher)

    @property
    def is_up(self) -> bool:
        """Whether the server is connected."""
        return any(lane.is_up for lane in self._lanes.values())

    @property
    def health(self) -> Health:
        """How the server is now."""
        lane, now, reason = self._lane(None), self._clock(), self._toolset.unavailable
        failure, state = lane.failure, cast("State", "down")
        if not self.settled.is_set():
            state = "starting"
        elif reason is None:
            state = "up" if lane.is_up else "stopped"
        return Health(
            state=state,
            reason=reason,
            since_s=now - lane.turned_at,
            restarts=max(0, lane.starts - 1),
            failure=failure[0] if failure else None,
            failure_s=now - failure[1] if failure else None,
        )

    @property
    def garbage(self) -> int:
        """Lines of the server that were no messages, since it was started last."""
        return max((getattr(lane.link, "garbage", 0) for lane in self._lanes.values()), default=0)

    @property
    def peer(self) -> Peer | None:
        """What is known of the server, if it is connected."""
        return self._lane(None).peer

    def set_log_level(self, level: str | None) -> None:
        """Asks an old server for log messages from this level on, now and after every start; `None` ends that."""
        if level == self._log_level:
            return
        self._log_level = level
        for link, peer in self._old_ones():
            self._ask_for_logs(link, peer, level or _USUAL_LOG_LEVEL)

    async def follow(self, uri: str, exchange: Exchange | None) -> bytes:
        """Asks it to tell when a resource changes, now and after every start. Raises as `relay` does."""
        answer = b"{}" if uri in self._followed else await self.relay("resources/subscribe", {"uri": uri}, exchange)
        self._followed.add(uri)
        return answer

    def unfollow(self, uri: str) -> None:
        """Tells it that nobody wants to hear of a resource any more, if it can be told now."""
        if uri in self._followed:
            self._followed.discard(uri)
            for link, _ in self._old_ones():
                self._spawn(_say(link, "resources/unsubscribe", {"uri": uri}))

    def _old_ones(self) -> list[tuple[Link, Peer]]:
        """The connections on which it can be told something once for all."""
        current = [lane.current for lane in self._lanes.values()]
        return [(link, peer) for link, peer in filter(None, current) if peer.era == "legacy"]

    def _greet(self, link: Link, peer: Peer) -> None:
        """Tells a server that has just started what the one before knew."""
        if self._log_level is not None:
            self._ask_for_logs(link, peer, self._log_level)
        for uri in self._followed if peer.era == "legacy" else ():
            self._spawn(_say(link, "resources/subscribe", {"uri": uri}))

    def _ask_for_logs(self, link: Link, peer: Peer, level: str) -> None:
        if peer.era == "legacy" and peer.offers("logging"):
            self._spawn(_say(link, "logging/setLevel", {"level": level}))

    # Lanes

    def _lane(self, era: Era | None) -> Lane:
        lane = self._lanes.get(era)
        if lane is None:
            wanted: Era | None = era
            if era is None and self.options.era in ("legacy", "modern"):
                wanted = self.options.era
            lane = self._lanes[era] = Lane(
                self.server,
                lambda: self._connect(self._announced, wanted),
                era=wanted,
                breaker=Breaker(clock=self._clock, rng=self._rng),
                pace=self._pace,
                clock=self._clock,
                greet=self._greet,
                patience=self._patience,
            )
            lane.is_closed = self._closing
        return lane

    def _lane_for(self, exchange: Exchange | None) -> Lane:
        """The lane in the caller's own era where the server can have both, else the one that there is."""
        main = self._lanes.get(None) or self._lane(None)
        if exchange is None or not self._mirrors or main.spoken in (None, exchange.era):
            return main
        # An old server has no modern lane; a modern one nearly always has an old one.
        return self._lane("legacy") if exchange.era == "legacy" else main

    # Looking after the server

    async def _look_after(self) -> None:
        """Starts the server, reads its lists, and starts it again when it ends."""
        main = self._lane(None)
        while not self._closing:
            try:
                link, peer = await main.require()
            except SourceError as error:
                self._mark(str(error))
            else:
                await self._tend(main, link, peer)
            self.settled.set()
            await asyncio.sleep(max(main.retry_in_s, 0.05))

    async def _tend(self, lane: Lane, link: Link, peer: Peer) -> None:
        """Reads the lists of a server that has started, and waits until it ends."""
        try:
            await self._read_lists(link, peer, ("tools", "prompts", "resources"))
        except Exception as error:  # whatever it was, the server is looked after
            await self._give_up(lane, link, _why_unread(link, error))
            return
        self._mark(None)
        self.settled.set()
        if peer.era == "modern":
            self._spawn(self._listen(link, peer))
        await self._while_up(lane, link)

    async def _give_up(self, lane: Lane, link: Link, reason: str) -> None:
        """Takes the failure of this connection; one that somebody has made since is left alone."""
        lane.note_down(reason)
        self._mark(reason)
        await lane.stop(link)

    async def _while_up(self, lane: Lane, link: Link) -> None:
        """Waits until the server ends, or until nobody has used it for long enough."""
        mode = self.options.start
        if mode == "on_demand" and not self.requests:
            await self._rest(lane, link)
            return
        while not link.closed.is_set():
            left = self.options.idle_stop_s - (self._clock() - self._used_at)
            if mode == "idle_stop" and left <= 0 and not link.is_busy:
                await self._rest(lane, link)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left, 0.05) if mode == "idle_stop" else None):
                    await link.closed.wait()
        if lane.link is link and not self._closing:
            await self._give_up(lane, link, link.reason)

    async def _rest(self, lane: Lane, link: Link) -> None:
        """Stops the server on purpose: its tools stay callable, and the next call starts it."""
        # A call may come while it ends: what that starts is looked after, too.
        self._wanted.clear()
        await lane.stop(link)
        await self._wanted.wait()

    async def _listen(self, link: Link, peer: Peer) -> None:
        """Asks a modern server to say what changes, and again when it ends that; who does not know how is let be."""
        kinds = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
        wanted: JsonObject = {key: True for capability, key in kinds.items() if peer.offers(capability)}
        params, headers = peer.dress({"notifications": wanted}), modern_headers(LISTEN)
        self._missed = False
        while True:
            try:
                await link.request(LISTEN, params, headers=headers)
            except SourceError:
                return
            except RpcError as error:
                if error.code in _UNKNOWN:
                    return
            # Ended in good order, or cut by somebody in between.
            self._missed = True
            with suppress(TimeoutError):
                async with asyncio.timeout(self._deaf.note_failure()):
                    await link.closed.wait()

    def _announced(self, method: str, params: bytes) -> None:
        kind = _CHANGES.get(method)
        if kind is not None:
            self._note_changes(kind)
        elif method == "notifications/subscriptions/acknowledged":
            self._deaf.note_success()
            if self._missed:
                # What changed while nobody was told of it is not told again.
                self._missed = False
                self._note_changes(*_CHANGES.values())
        elif method == "notifications/resources/updated":
            with suppress(RpcError):
                uri = read_json(params).get("uri")
                if isinstance(uri, str):
                    self._tell("resource", uri)

    def _note_changes(self, *kinds: Event) -> None:
        self._dirty.update(kinds)
        if self._refresher is None or self._refresher.done():
            self._refresher = self._spawn(self._refresh())

    async def _refresh(self) -> None:
        """Reads what was announced as changed; a storm of announcements is one refresh a second (K7)."""
        while self._dirty:
            kinds = tuple(sorted(self._dirty))
            self._dirty.clear()
            lane = self._lane(None)
            if lane.link is None or lane.peer is None:
                return
            self.refreshes += 1
            try:
                await self._read_lists(lane.link, lane.peer, kinds)
                self._mark(None)
            except (RpcError, SourceError, TimeoutError) as error:
                logger.warning("%s: its changed list cannot be read, the last one is kept: %s", self.server, error)
            await asyncio.sleep(REFRESH_EVERY_S)

    async def _read_lists(self, link: Link, peer: Peer, kinds: Sequence[str]) -> None:
        if "tools" in kinds and (peer.offers("tools") or peer.era == "legacy"):
            await self._read_tools(link, peer)
        if "prompts" in kinds and peer.offers("prompts"):
            found = await self._read_optional(link, peer, "prompts/list", "prompts")
            if found is not None and found != self.prompts:
                self.prompts = found
                self._tell("prompts", None)
        if "resources" in kinds and peer.offers("resources"):
            resources = await self._read_optional(link, peer, "resources/list", "resources")
            templates = await self._read_optional(link, peer, "resources/templates/list", "resourceTemplates")
            before = (self.resources, self.templates)
            self.resources = self.resources if resources is None else resources
            self.templates = self.templates if templates is None else templates
            if before != (self.resources, self.templates):
                self._tell("resources", None)

    async def _read_optional(self, link: Link, peer: Peer, method: str, key: str) -> tuple[JsonObject, ...] | None:
        """A list that a server may promise and not have; its tools are worth more than the complaint."""
        try:
            listed = await read_list(link, peer, method, key)
        except (RpcError, TimeoutError) as error:
            logger.info("%s: %s is not answered: %s", self.server, method, error)
            return None
        return listed.items if listed else None

    async def _read_tools(self, link: Link, peer: Peer) -> None:
        listed = await read_list(link, peer, "tools/list", "tools", known=self._digests.get("tools"))
        if listed is None or listed.digest == self._digests.get("tools"):
            return
        toolset, reported = self._freeze(listed) if listed.is_light else await asyncio.to_thread(self._freeze, listed)
        skipped = [*toolset.skipped, *reported]
        if listed.problem:
            skipped.append(Skipped(toolset=toolset.name, name="*", reason=listed.problem))
        self._digests["tools"] = listed.digest
        known = {tool: tool for tool in self._toolset.tools}
        if known:
            fresh = [str(tool.name) for tool in toolset.tools if tool not in known]
            gone = len({tool.name for tool in known} - {tool.name for tool in toolset.tools})
            logger.info("%s: its tools changed: %d new or changed (%s), %d gone", self.server, len(fresh),
                        ", ".join(fresh[:5]), gone)  # fmt: skip
        self._put(
            build_toolset(
                self.name,
                [known.get(tool, tool) for tool in toolset.tools],
                origin="mcp",
                prefix=self.prefix,
                skipped=skipped,
            )
        )
        self._tell("tools", None)

    def _freeze(self, listed: Listed) -> tuple[Toolset, list[Skipped]]:
        """The tools of a list, and what has to be reported of it."""
        usable, reported = choose(self.name, listed.items, self.options.choice)
        return freeze_toolset(self.name, usable, origin="mcp", prefix=self.prefix), reported

    def _note_waiting(self, reason: str) -> None:
        """Somebody has to do something first: nobody else waits for it."""
        self._mark(reason)
        self.settled.set()

    def _mark(self, reason: str | None) -> None:
        if self._toolset.unavailable != reason:
            self._put(replace(self._toolset, unavailable=reason))

    def _put(self, toolset: Toolset) -> None:
        self._toolset = toolset
        self._snapshot = (toolset,)
        for changed in self._changed:
            changed()

    def _tell(self, event: Event, uri: str | None) -> None:
        for watcher in self._watchers:
            watcher(event, uri)

    def _spawn(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _say(link: Link, method: str, params: JsonObject) -> None:
    """Asks for what is good to have, and can be lived without."""
    with suppress(RpcError, SourceError):
        await link.request(method, params)


def _why_unread(link: Link, error: Exception) -> str:
    """Why its lists cannot be read; called where the error is handled."""
    if isinstance(error, SourceError):
        # It ended while its lists were read.
        return str(error)
    if isinstance(error, RpcError | TimeoutError):
        return f"its list cannot be read: {str(error) or 'no answer in time'}"
    link.log_failure("its list cannot be read")
    return f"its list cannot be read: {type(error).__name__}"
