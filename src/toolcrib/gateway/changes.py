"""What clients are told without asking: that a list changed, or a resource they follow.

Many changes in one moment are one message. A client hears only of what its principal may see, and only if that is not
what it has listed itself: who comes while servers start lists once they are up, and has missed nothing. A stream whose
client does not read is ended instead of filling memory.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import orjson

from toolcrib.crib import Crib
from toolcrib.definitions import Json, JsonObject
from toolcrib.gateway.library import Library, uri_prefix
from toolcrib.gateway.profiles import Principal
from toolcrib.gateway.relay import Client, Mark
from toolcrib.limits import LISTENERS_MAX, REFRESH_EVERY_S
from toolcrib.sources.handshake import META_SUBSCRIPTION
from toolcrib.sources.json_rpc import INTERNAL_ERROR, Identifier, RpcError, notification_line
from toolcrib.sources.mcp_source import Event, McpSource

Push = Callable[[bytes], None]

_METHODS: Mapping[Event, str] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
}
_FILTERS: Mapping[str, Event] = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}


@dataclass(kw_only=True, eq=False)
class Subscription:
    """One client's wish to be told."""

    client: Client
    push: Push
    feed: "ChangeFeed"
    known: dict[Event, Mark]
    """The lists that the client wants to hear about, as it knows them."""
    meta: JsonObject | None = None
    """What every message of a modern subscription carries."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        """Ends it."""
        self.feed.drop(self)
        self.ended.set()

    def tell(self, method: str, params: JsonObject) -> None:
        """Sends one message; a client that is gone is forgotten."""
        try:
            self.push(notification_line(method, {**params, "_meta": self.meta} if self.meta else params or None))
        except (ConnectionError, asyncio.QueueFull):
            self.close()


class ChangeFeed:
    """Passes changes of the servers on to the clients that want to know."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._subscriptions: dict[Subscription, None] = {}
        """In the order in which they came."""
        self._pending: set[tuple[Event, str]] = set()
        self._timer: asyncio.TimerHandle | None = None
        for source in crib.sources:
            if isinstance(source, McpSource):
                source.subscribe(lambda event, uri, source=source: self._changed(source, event, uri))
                source.watch(lambda source=source: self._changed(source, "tools", None))

    def follow(self, client: Client, push: Push) -> Subscription:
        """Tells an old client about every list that it has asked for."""
        subscription = Subscription(client=client, push=push, feed=self, known=client.listed)
        self._subscriptions[subscription] = None
        return subscription

    async def serve(self, client: Client, identifier: Identifier, params: JsonObject, push: Push) -> bytes:
        """`subscriptions/listen` of a modern client: acknowledges, tells, and ends with an answer when told to."""
        self._make_room(client)
        wanted = params.get("notifications")
        asked: Mapping[str, Json] = wanted if isinstance(wanted, Mapping) else {}
        honoured: JsonObject = {key: True for key in _FILTERS if asked.get(key) is True}
        uris = asked.get("resourceSubscriptions")
        if isinstance(uris, list) and uris:
            honoured["resourceSubscriptions"] = [uri for uri in uris if isinstance(uri, str)]
            client.subscribed.update(uri for uri in uris if isinstance(uri, str))
        meta: JsonObject = {META_SUBSCRIPTION: identifier}
        subscription = Subscription(
            client=client,
            push=push,
            feed=self,
            known={kind: mark_of(self._crib, client, kind) for key, kind in _FILTERS.items() if key in honoured},
            meta=meta,
        )
        self._subscriptions[subscription] = None
        try:
            subscription.tell("notifications/subscriptions/acknowledged", {"notifications": honoured})
            await subscription.ended.wait()
        finally:
            self.drop(subscription)
        return orjson.dumps({"resultType": "complete", "_meta": meta})

    def drop(self, subscription: Subscription) -> None:
        """Forgets a subscription."""
        self._subscriptions.pop(subscription, None)

    def end_if(self, is_refused: Callable[[Principal], bool]) -> None:
        """Ends what principals hear that are not let in any more."""
        for subscription in tuple(self._subscriptions):
            if is_refused(subscription.client.principal):
                subscription.close()

    def _make_room(self, client: Client) -> None:
        """Room for one more stream: who has the most gives one up for who has fewer. Raises `RpcError`."""
        # Old clients follow without a stream of their own; their sessions have a bound themselves.
        streams = [subscription for subscription in self._subscriptions if subscription.meta is not None]
        if len(streams) < LISTENERS_MAX:
            return
        counts = Counter(subscription.client.principal.name for subscription in streams)
        name, most = counts.most_common(1)[0]
        if counts[client.principal.name] + 1 >= most:
            raise RpcError(INTERNAL_ERROR, "Too many subscriptions are open.")
        next(subscription for subscription in streams if subscription.client.principal.name == name).close()

    def close(self) -> None:
        """Ends every subscription."""
        if self._timer is not None:
            self._timer.cancel()
        for subscription in tuple(self._subscriptions):
            subscription.close()

    def announce_all(self) -> None:
        """Something changed that no server told of: everybody whose own lists changed is told."""
        for source in self._crib.sources:
            if isinstance(source, McpSource):
                for event in _METHODS:
                    self._changed(source, event, None)

    def _changed(self, source: McpSource, event: Event, uri: str | None) -> None:
        if event == "resource" and uri is not None:
            shown = f"{uri_prefix(source)}{uri}"
            for subscription in tuple(self._subscriptions):
                client = subscription.client
                # A stateless client may name any URI: it hears of what it was granted.
                if shown in client.subscribed and source in Library(self._crib).servers(client.principal):
                    subscription.tell("notifications/resources/updated", {"uri": shown})
            return
        self._pending.add((event, source.name))
        if self._timer is None and self._subscriptions:
            self._timer = asyncio.get_running_loop().call_later(REFRESH_EVERY_S / 10, self._flush)

    def _flush(self) -> None:
        self._timer = None
        pending, self._pending = self._pending, set()
        for subscription in tuple(self._subscriptions):
            scope = subscription.client.principal.scope
            for event in _METHODS:
                names = [name for kind, name in pending if kind == event and scope.allows_toolset(name)]
                if names and self._is_news(subscription, event):
                    subscription.tell(_METHODS[event], {})

    def _is_news(self, subscription: Subscription, event: Event) -> bool:
        """Whether a client's own list really changed: a change that it cannot see is none, nor one that it has seen."""
        known = subscription.known
        if event not in known:
            return False
        before, known[event] = known[event], mark_of(self._crib, subscription.client, event)
        return known[event] != before


def mark_of(crib: Crib, client: Client, event: Event) -> Mark:
    """Something that is the same as long as a client's list is."""
    if event == "tools":
        catalog = crib.select(client.principal.scope).catalog
        down = ",".join(toolset.name for toolset in catalog.toolsets if toolset.unavailable)
        return f"{catalog.fingerprint}{down}"
    library = Library(crib)
    principal = client.principal
    if event == "prompts":
        return hash(orjson.dumps(library.prompts(principal)))
    return hash(orjson.dumps(library.resources(principal))), hash(orjson.dumps(library.templates(principal)))


def note_listed(crib: Crib, client: Client, event: Event, *, templates: bool) -> None:
    """Notes that an old client has a list as it is now; of resources and `templates` the other stays as it was."""
    mark, before = mark_of(crib, client, event), client.listed.get(event)
    if isinstance(mark, tuple) and isinstance(before, tuple):
        mark = (before[0], mark[1]) if templates else (mark[0], before[1])
    client.listed[event] = mark
