"""One client's side of the gateway: what it can do, what it is told, and what it may be asked.

An exchange belongs to one request of one client. Progress carries the client's own token, log messages respect the
level that it asked for, a server's question reaches it only if it said that it can answer, and an answer counts only
for the question that was asked of this very client.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Protocol, cast

import orjson

from toolcrib.definitions import Json, JsonObject
from toolcrib.execution.dispatch import Era
from toolcrib.gateway.profiles import Principal
from toolcrib.session import Session
from toolcrib.sources.handshake import META_LOG_LEVEL
from toolcrib.sources.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Identifier,
    RpcError,
    notification_line,
    request_line,
)
from toolcrib.sources.mcp_source import Event

FAILURE = RpcError(INTERNAL_ERROR, "The gateway failed; its log says why.")
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_TRAVELS = ("traceparent", "tracestate", "baggage")
"""What of a client's `_meta` reaches a server besides the protocol's own."""
_FORM = "form"
_MODES = (_FORM, "url")
_ANSWERS = ("inputResponses", "requestState")
_CARRIES = frozenset({"_meta", *_ANSWERS})
_NOTHING: Mapping[str, Json] = MappingProxyType({})
_CAPABILITY = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}

Mark = str | int | tuple[int, int]
"""What tells a list from another; two of them for resources and their templates, which are told of together."""


class Desk(Protocol):
    """Where questions for a client wait that cannot be asked at once."""

    async def ask(self, method: str, params: bytes) -> bytes:
        """The client's answer, when it comes back with it."""
        ...


class Channel(Protocol):
    """The way back to a client for one request."""

    def push(self, message: bytes) -> None:
        """Sends one message, a line of JSON."""
        ...


class Asker(Protocol):
    """Who asked for a call that runs without a task."""

    def answered(self, key: Identifier, result: bytes) -> None:
        """Takes the result."""
        ...

    def refused(self, key: Identifier, error: RpcError) -> None:
        """Takes the error."""
        ...

    def crashed(self, key: Identifier) -> None:
        """Is told that the gateway failed; its log says why."""
        ...

    def dropped(self, key: Identifier) -> None:
        """Is told that the call was cancelled."""
        ...


@dataclass(kw_only=True, eq=False)
class Client:
    """One client: a connection, a session of an old one over HTTP, or a single request of a modern one."""

    id: str
    principal: Principal
    session: Session
    era: Era
    version: str
    capabilities: JsonObject = field(default_factory=dict[str, "Json"])
    log_level: str | None = None
    listed: dict[Event, Mark] = field(default_factory=dict[Event, Mark])
    """The lists that an old client has asked for, as it got them."""
    subscribed: set[str] = field(default_factory=set[str])
    """Resources that it wants to hear about, by the URI that it knows."""
    left: Callable[[], None] = lambda: None
    """Is called when an old client is gone."""
    is_gone: bool = False
    questions: "dict[str, asyncio.Future[bytes]]" = field(default_factory=dict[str, "asyncio.Future[bytes]"])
    """Questions that it was asked and has not answered, by id."""
    asked: "count[int]" = field(default_factory=lambda: count(1))

    def settle(self, identifier: Json, result: bytes | None, error: RpcError | None) -> bool:
        """Takes the client's answer to a question. Whether there was such a question."""
        future = self.questions.get(identifier) if isinstance(identifier, str) else None
        if future is None or future.done():
            return False
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result or b"{}")
        return True

    def leave_questions(self) -> None:
        """It answers no more: whoever asked is told."""
        for future in tuple(self.questions.values()):
            if not future.done():
                future.set_exception(_went_away())


def is_bare(params: JsonObject) -> bool:
    """Whether a request brings nothing along but what is asked."""
    return _CARRIES.isdisjoint(params)


class ClientExchange:
    """What a source is told of the client behind a call."""

    __slots__ = ("_channel", "_meta", "_token", "answers", "client", "desk", "era", "is_bare")

    def __init__(self, client: Client, params: JsonObject, channel: Channel) -> None:
        self.client = client
        self._channel = channel
        self.era: Era = client.era
        """The protocol that the client speaks."""
        self._meta: Mapping[str, Json] = _NOTHING
        self._token: Json = None
        self.answers: JsonObject = {}
        """What the client answered to a question of an earlier try."""
        self.desk: Desk | None = None
        """Where questions for a stateless client go."""
        self.is_bare = is_bare(params)
        """Whether it sent nothing along: no `_meta`, no answers."""
        if not self.is_bare:
            meta = params.get("_meta")
            if meta is not None and isinstance(meta, Mapping):
                self._meta = meta
                self._token = meta.get("progressToken")
            for key in _ANSWERS:
                if params.get(key) is not None:
                    self.answers[key] = params[key]

    def go_on_as(self, other: "ClientExchange") -> None:
        """The client came back in another request: from now on it is reached there."""
        self._channel, self._meta, self._token = other._channel, other._meta, other._token
        self.is_bare = other.is_bare and not self.answers

    @property
    def can_be_asked(self) -> bool:
        """Whether the client said that it answers any kind of question."""
        return any(capability in self.client.capabilities for capability in _CAPABILITY.values())

    @property
    def elicits(self) -> frozenset[str]:
        """The modes in which the client can be asked for something; whoever names none means forms."""
        offered = self.client.capabilities.get("elicitation")
        if not isinstance(offered, Mapping):
            return frozenset()
        return frozenset(mode for mode in _MODES if mode in offered) or frozenset({_FORM})

    @property
    def owner(self) -> str:
        """The client. Over HTTP each request of a stateless one is one: nothing says which belong to a conversation."""
        return self.client.id

    @property
    def capabilities(self) -> JsonObject:
        """What the client said that it can do."""
        return self.client.capabilities

    @property
    def meta(self) -> JsonObject:
        """Trace context and the log level; nothing else of the client's travels on (A11)."""
        if not self._meta and self.client.log_level is None:
            return {}
        kept: JsonObject = {key: self._meta[key] for key in _TRAVELS if key in self._meta}
        level = self._meta.get(META_LOG_LEVEL) or (self.client.log_level if self.client.era == "legacy" else None)
        return {**kept, META_LOG_LEVEL: level} if level is not None else kept

    def take_answers(self, answers: JsonObject) -> None:
        """Replaces the answers that travel on."""
        self.answers = answers

    @property
    def wants_progress(self) -> bool:
        """Whether the client sent a token."""
        return self._token is not None and isinstance(self._token, (str, int))

    def progress(self, params: JsonObject) -> None:
        """Passes on how far the call has come, under the client's own token."""
        try:
            line = notification_line("notifications/progress", {**params, "progressToken": self._token})
        except TypeError:  # what is nested deeper than can be written is left out
            return
        self._tell(line)

    def notify(self, method: str, params: bytes) -> None:
        """Passes on a log message, if it is as grave as the client wants them."""
        if method == "notifications/message" and not self._wants_message(params):
            return
        self._tell(notification_line(method, orjson.Fragment(params)))

    def _tell(self, message: bytes) -> None:
        """Sends what need not arrive: a client that left must not disturb the server that speaks."""
        with suppress(ConnectionError):
            self._channel.push(message)

    async def ask(self, method: str, params: bytes) -> bytes:
        """Asks the client. Raises `RpcError` if it cannot be asked or refuses."""
        client = self.client
        capability = _CAPABILITY.get(method)
        if capability is None or capability not in client.capabilities:
            raise RpcError(METHOD_NOT_FOUND, f"The client does not offer {method}.")
        if capability == "elicitation" and (mode := _mode_of(params)) not in self.elicits:
            raise RpcError(INVALID_PARAMS, f"The client does not offer {method} in the mode {mode}.")
        if client.era == "modern":
            if self.desk is None:
                raise RpcError(METHOD_NOT_FOUND, f"The client cannot be asked for {method} during this request.")
            return await self.desk.ask(method, params)
        identifier = f"toolcrib-{next(client.asked)}"
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        client.questions[identifier] = future
        try:
            self._channel.push(request_line(identifier, method, orjson.Fragment(params)))
            return await future
        except ConnectionError:
            raise _went_away() from None
        finally:
            client.questions.pop(identifier, None)

    def _wants_message(self, params: bytes) -> bool:
        wanted = self._meta.get(META_LOG_LEVEL) if self.client.era == "modern" else self.client.log_level
        if self.client.era == "modern" and wanted is None:
            return False
        try:
            message = cast("Json", orjson.loads(params))
        except orjson.JSONDecodeError:
            return False
        return isinstance(message, dict) and _rank(message.get("level")) >= _rank(wanted)


def _went_away() -> RpcError:
    return RpcError(INTERNAL_ERROR, "The client went away.")


def _mode_of(params: bytes) -> str:
    """The mode of an elicitation."""
    try:
        asked = cast("Json", orjson.loads(params))
    except orjson.JSONDecodeError:
        return _FORM
    mode = asked.get("mode") if isinstance(asked, dict) else None
    return mode[:20] if isinstance(mode, str) else _FORM


def _rank(level: Json) -> int:
    return LEVELS.index(level) if isinstance(level, str) and level in LEVELS else 0
