"""A link to one MCP server: requests under our own ids, answers to whoever asked, and nothing to anybody else.

Two clients may use the same JSON-RPC id; the server sees neither of them. An answer that nobody waits for is counted
and dropped. What a server sends on its own (progress, log messages, questions to the user) belongs to a call under
way; if it cannot be told to which caller, it reaches nobody.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
import orjson
from msgspec import Raw, UnsetType

from toolcrib.definitions import Call, JsonObject
from toolcrib.errors import SourceUnavailable
from toolcrib.execution.dispatch import CallSlot, Exchange, Slot
from toolcrib.kernel import kernel
from toolcrib.limits import PARKED_WANTED_S
from toolcrib.sources.json_rpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Envelope,
    Identifier,
    RpcError,
    error_line,
    notification_line,
    read_envelope,
    read_error,
    read_object,
    request_line,
    result_line,
)  # fmt: skip
from toolcrib.sources.nearly import answered_ids, messages_in, whole_number, with_whole_characters
from toolcrib.sources.turns import Turns
from toolcrib.sources.withheld import NOTHING, Withheld

if TYPE_CHECKING:
    from toolcrib.sources.handshake import Peer

logger = logging.getLogger("toolcrib.sources")

_NAMING = ("progressToken", "relatedRequestId")
"""Keys of `_meta` by which a server may say which call it means."""
_LEVELS = 64
"""How deep an answer may be nested that the kernel reads; Python reads a deeper one."""
LISTEN = "subscriptions/listen"
"""What a modern server is asked once, to say from then on what changes."""
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
ASKABLE = frozenset({"sampling/createMessage", "elicitation/create", "roots/list"})
"""What a server may ask of the client behind a call."""


class Listener(Protocol):
    """Who is told what a server announces."""

    def __call__(self, method: str, params: bytes) -> None:
        """Takes a notification that belongs to no call."""
        ...


class Waiter(msgspec.Struct, kw_only=True, eq=False):
    """Somebody who waits for an answer."""

    future: Slot
    exchange: Exchange | None
    headers: Mapping[str, str]
    failed: bool | None = None
    """Whether the result is an error of the tool, and of the usual kind; nothing if nobody has looked."""

    @property
    def listens(self) -> bool:
        """Whether it waits for what a modern server says by itself, rather than for an answer."""
        return self.headers.get("mcp-method") == LISTEN


class Link:
    """The part of a link that does not depend on how bytes travel."""

    def __init__(self, name: str, *, listener: Listener, withheld: Withheld = NOTHING) -> None:
        self.name = name
        self.withheld = withheld
        """What the server was given that nobody else may read, whatever the server says."""
        self.closed = asyncio.Event()
        self.is_open = True
        """Whether it is not closed."""
        self.reason = ""
        """Why it is closed."""
        self.strays = 0
        """Answers that nobody waited for."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._ids = count(1)
        self.waiters: dict[Identifier, Waiter] = {}
        """Requests under way, by our ids."""
        self._questions: set[asyncio.Task[None]] = set()
        self.renewed: Callable[[], None] = lambda: None
        """Is called when the server has forgotten what it was told before, and goes on all the same."""
        self.turns = Turns()
        """Whether its callers have to wait for each other."""

    # What a transport does

    def send(self, data: bytes, waiter: Waiter | None = None) -> None:
        """Sends one message."""
        raise NotImplementedError

    async def close(self) -> None:
        """Ends the link and whatever it holds."""
        raise NotImplementedError

    def agree(self, version: str) -> None:
        """Is told which revision was agreed on in a handshake."""

    # What everybody does

    def request(
        self,
        method: str,
        params: JsonObject,
        *,
        exchange: Exchange | None = None,
        headers: dict[str, str] | None = None,
        cancellable: bool = True,
    ) -> Coroutine[Any, Any, bytes]:
        """The result as JSON. Raises `RpcError` for an error answer, `SourceUnavailable` if the link ends."""
        work = self._request(method, params, exchange, headers, cancellable)
        if self.turns.needed and exchange is not None:
            return self._in_turn(exchange.owner, work)
        return work

    async def _in_turn(self, owner: str, work: Coroutine[Any, Any, bytes]) -> bytes:
        try:
            async with self.turns.take(owner):
                return await work
        finally:
            work.close()

    async def _request(
        self,
        method: str,
        params: JsonObject,
        exchange: Exchange | None,
        headers: dict[str, str] | None,
        cancellable: bool,
    ) -> bytes:
        future: asyncio.Future[bytes] = self._loop.create_future()
        waiter = Waiter(future=future, exchange=exchange, headers=headers or NO_HEADERS)
        identifier = self.begin(method, params, waiter)
        try:
            return await future
        except asyncio.CancelledError:
            if cancellable and not self.closed.is_set():
                self.abandon(identifier, waiter)
            raise
        finally:
            self.forget(identifier)

    def begin(self, method: str, params: JsonObject, waiter: Waiter) -> Identifier:
        """Sends a request; whoever waits is told, and has the request forgotten then. Raises `SourceUnavailable`."""
        if not self.is_open:
            raise SourceUnavailable(self.reason or "the connection is closed")
        identifier = next(self._ids)
        exchange = waiter.exchange
        if exchange is not None and exchange.wants_progress:
            params = {**params, "_meta": {**cast("JsonObject", params.get("_meta") or {}), "progressToken": identifier}}
        self.waiters[identifier] = waiter
        try:
            self.send(request_line(identifier, method, params), waiter)
        except BaseException:
            self.forget(identifier)
            raise
        return identifier

    def begin_call(self, head: bytes, encoded: bytes, waiter: "SentCall") -> None:
        """The same for a call that is JSON already, up to its arguments and these. Raises `SourceUnavailable`."""
        waiter.identifier = identifier = next(self._ids)
        self.waiters[identifier] = waiter
        try:
            self.send(b'{"jsonrpc":"2.0","id":%d,%b%b}}\n' % (identifier, head, encoded), waiter)
        except BaseException:
            self.forget(identifier)
            raise

    def forget(self, identifier: Identifier) -> None:
        """A request has ended: an answer that comes now is a stray one."""
        self.waiters.pop(identifier, None)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Sends a notification."""
        if not self.closed.is_set():
            self.send(notification_line(method, params))

    def abandon(self, identifier: Identifier, waiter: Waiter) -> None:
        """Tells the server that nobody waits any more, if it can be told."""
        with suppress(SourceUnavailable):
            self.notify("notifications/cancelled", {"requestId": identifier, "reason": "the caller went away"})

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return any(not waiter.listens for waiter in self.waiters.values())

    def log_failure(self, what: str) -> None:
        """Logs the exception that is being handled, and where it came from, without the server's secrets."""
        logger.error("%s: %s\n%s", self.name, what, self.withheld.mask(traceback.format_exc().rstrip()))

    def fail(self, reason: str) -> None:
        """Marks the link as closed: everybody who waits is told why."""
        if self.closed.is_set():
            return
        self.reason = self.withheld.mask(reason)
        self.is_open = False
        self.closed.set()
        for waiter in tuple(self.waiters.values()):
            self._tell(waiter, SourceUnavailable(self.reason))
        for task in tuple(self._questions):
            task.cancel()

    def receive(self, data: bytes, waiter: Waiter | None = None) -> bool:
        """Takes one message; `waiter` is known where messages travel per call. Whether it was JSON-RPC."""
        answer = None if kernel is None else kernel.read_answer(data, _LEVELS)
        if answer is not None:
            self._answered(*answer)
            return True
        try:
            envelope = read_envelope(data)
        except RpcError as error:
            return self._receive_unread(data, waiter, error)
        if isinstance(envelope.method, UnsetType):
            self._settle(envelope)
            return True
        try:
            if isinstance(envelope.id, UnsetType) or envelope.id is None:
                self._announce(envelope.method, envelope.params, waiter)
            else:
                self._question(envelope.id, envelope.method, envelope.params, waiter)
        except Exception:  # what goes wrong with one message is no matter of the answers that came with it
            self.log_failure("a message of it could not be passed on")
        return True

    def _receive_unread(self, data: bytes, waiter: Waiter | None, error: RpcError) -> bool:
        """Takes what is no message as it stands: mended, in parts, or as the failure of those whom it answers."""
        whole = with_whole_characters(data)
        if whole is not None:
            return self.receive(whole, waiter)
        if parts := messages_in(data):
            taken = [self.receive(part, waiter) for part in parts]
            return all(taken)
        for identifier in answered_ids(data):
            self._misanswer(identifier, error.message)
        return False

    def _misanswer(self, identifier: int | None, why: str) -> bool:
        """Tells whoever waits for this answer that it cannot be read. Whether somebody does."""
        waiter = self.waiters.get(identifier) if identifier is not None else None
        if waiter is None or waiter.future.done():
            return False
        self._tell(waiter, RpcError(INTERNAL_ERROR, f"The answer of the server cannot be read. {why}"))
        return True

    def _answered(self, identifier: Identifier, result: bytes, failed: bool) -> None:
        waiter = self.waiters.get(identifier)
        if waiter is None or waiter.future.done():
            self.strays += 1
            return
        waiter.failed = failed
        try:
            waiter.future.set_result(result)
        except Exception:  # what goes wrong with one answer is no matter of the next
            self.log_failure("an answer of it could not be handed on")

    def _settle(self, envelope: Envelope) -> None:
        # One without an id was never asked for.
        waiter = self.waiters.get(cast("Identifier", envelope.id))
        if waiter is None or waiter.future.done():
            number = whole_number(envelope.id) if isinstance(envelope.id, str) else None
            if not self._misanswer(number, f"It names the request by a text, not by the number {number}."):
                self.strays += 1
        elif not isinstance(envelope.result, UnsetType):
            self._tell(waiter, bytes(envelope.result))
        elif not isinstance(envelope.error, UnsetType):
            self._tell(waiter, read_error(envelope.error))
        else:
            self._tell(waiter, RpcError(INTERNAL_ERROR, "The server sent an answer without a result."))

    def _tell(self, waiter: Waiter, answer: bytes | Exception) -> None:
        slot = waiter.future
        try:
            if slot.done():
                return
            if isinstance(answer, bytes):
                slot.set_result(answer)
            else:
                slot.set_exception(answer)
        except Exception:  # what goes wrong with one answer is no matter of the next
            self.log_failure("an answer of it could not be handed on")

    def _announce(self, method: str, params: Raw | UnsetType, waiter: Waiter | None) -> None:
        raw = b"{}" if isinstance(params, UnsetType) else bytes(params)
        if method == "notifications/progress":
            self._progress(raw)
        elif method == "notifications/message":
            exchange = self._caller(waiter)
            if exchange is not None:
                exchange.notify(method, raw)
        else:
            self._listener(method, raw)

    def _progress(self, raw: bytes) -> None:
        try:
            params = read_object(Raw(raw))
        except RpcError:
            return
        token = params.get("progressToken")
        waiter = self.waiters.get(token) if isinstance(token, int | str) else None
        if waiter is not None and waiter.exchange is not None:
            waiter.exchange.progress(params)
        else:
            self.strays += 1

    def _caller(self, waiter: Waiter | None, params: bytes = b"") -> Exchange | None:
        """The one caller that a message can be meant for (L3): the one whose call it names, or the only one."""
        if waiter is not None:
            return waiter.exchange
        if params:
            named = self._named(params)
            if named is not None:
                return named.exchange
        exchanges = [item.exchange for item in self.waiters.values() if item.exchange is not None]
        owners = {exchange.owner for exchange in exchanges}
        return exchanges[-1] if len(owners) == 1 else None

    def _named(self, params: bytes) -> Waiter | None:
        """The waiter of the call that a message names: by our id, which is its progress token too."""
        try:
            meta = read_object(Raw(params)).get("_meta")
        except RpcError:
            return None
        if not isinstance(meta, Mapping):
            return None
        for key in _NAMING:
            token = meta.get(key)
            if isinstance(token, int | str) and token in self.waiters:
                return self.waiters[token]
        return None

    def _question(self, identifier: Identifier, method: str, params: Raw | UnsetType, waiter: Waiter | None) -> None:
        if method == "ping":
            self._reply(result_line(identifier, b"{}"))
            return
        raw = b"{}" if isinstance(params, UnsetType) else bytes(params)
        exchange = self._caller(waiter, raw)
        if method not in ASKABLE or exchange is None:
            self._reply(error_line(identifier, RpcError(METHOD_NOT_FOUND, self._why_not(method))))
            return
        task = asyncio.ensure_future(self._ask(identifier, method, raw, exchange))
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    def _why_not(self, method: str) -> str:
        if method not in ASKABLE or not any(item.exchange is not None for item in self.waiters.values()):
            return f"Nobody can be asked for {method} now."
        self.turns.needed = True
        logger.warning("%s: asked during calls of several clients; from now on it gets one client at a time", self.name)
        return (
            f"Calls of several clients are under way and {method} does not say which one it means; "
            "from now on they come one client at a time."
        )

    async def _ask(self, identifier: Identifier, method: str, params: bytes, exchange: Exchange) -> None:
        try:
            answer = result_line(identifier, await self._answer_of(exchange, method, params))
        except RpcError as error:
            answer = error_line(identifier, error)
        except Exception:
            self.log_failure("a question of it could not be passed on")
            answer = error_line(identifier, RpcError(INTERNAL_ERROR, "The client could not be asked."))
        if not self.closed.is_set():
            self._reply(answer)

    async def _answer_of(self, exchange: Exchange, method: str, params: bytes) -> bytes:
        """The caller's answer. One that may never come back holds nobody up for long."""
        if exchange.era == "legacy":
            return await exchange.ask(method, params)
        question = asyncio.ensure_future(exchange.ask(method, params))
        grudged = asyncio.ensure_future(self.turns.grudged(PARKED_WANTED_S))
        try:
            await asyncio.wait((question, grudged), return_when=asyncio.FIRST_COMPLETED)
            if question.done():
                return question.result()
            raise RpcError(INTERNAL_ERROR, "The client has not answered, and others wait for the server.")
        finally:
            question.cancel()
            grudged.cancel()

    def _reply(self, line: bytes) -> None:
        # One that asks and does not listen gets no answer; what else it sent counts all the same.
        with suppress(SourceUnavailable):
            self.send(line)


def call_head(name: str) -> bytes:
    """What a call of a tool says after its id and before its arguments."""
    return b'"method":"tools/call","params":{"name":%b,"arguments":' % orjson.dumps(name)


class SentCall(Waiter, kw_only=True, eq=False):
    """A call that was sent, and who waits for its answer."""

    link: Link
    peer: "Peer"
    identifier: Identifier = 0

    @property
    def call(self) -> Call:
        """The call."""
        return cast("CallSlot", self.future).call

    def forget(self) -> None:
        """It has ended."""
        self.link.waiters.pop(self.identifier, None)

    def abandon(self) -> None:
        """Tells the server that nobody waits any more."""
        if self.link.is_open:
            self.link.abandon(self.identifier, self)


class ResultHead(msgspec.Struct, frozen=True):
    """The part of a result that decides what becomes of it; the rest is not looked at."""

    isError: bool = False
    resultType: str = "complete"


_HEAD = msgspec.json.Decoder(ResultHead)


def read_head(result: bytes) -> ResultHead:
    """The head of a result. Raises `RpcError` if it is no object."""
    try:
        return _HEAD.decode(result)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise RpcError(INTERNAL_ERROR, "The server answered with something that is no result.") from None


def read_json(result: bytes) -> JsonObject:
    """A result as an object. Raises `RpcError`."""
    return read_object(Raw(result))
