"""The gateway on standard input and output: one client, in the era in which it opens.

Requests run beside each other; each answer is one line. A line that is no message is answered with an error and
nothing more happens. At the end of the input what was asked is still answered, unless nobody reads any more.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import cast

from msgspec import UnsetType

from toolcrib.bridge import Invocation
from toolcrib.definitions import JsonObject
from toolcrib.execution.dispatch import Era
from toolcrib.execution.errands import Errand
from toolcrib.gateway.calls import CALL, invocation_of, read_request
from toolcrib.gateway.changes import ChangeFeed, Subscription
from toolcrib.gateway.envelope import require_envelope
from toolcrib.gateway.outlet import Outlet
from toolcrib.gateway.profiles import Principal
from toolcrib.gateway.relay import FAILURE, Client, ClientExchange, is_bare
from toolcrib.gateway.server import Gateway
from toolcrib.gateway.streams import open_input, open_output
from toolcrib.limits import DRAIN_S, REQUEST_MAX_BYTES
from toolcrib.sources.handshake import LEGACY_VERSIONS, META_CAPABILITIES, META_VERSION, MODERN_VERSION
from toolcrib.sources.json_rpc import (
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    Envelope,
    Identifier,
    LineFramer,
    RpcError,
    error_line,
    read_envelope,
    read_error,
    read_object,
    require_distinct_keys,
    require_id,
    result_line,
)  # fmt: skip

logger = logging.getLogger("toolcrib.gateway")

Write = Callable[[bytes], None]


class StdioServer:
    """Serves one client over two streams of bytes."""

    def __init__(self, gateway: Gateway, principal: Principal, write: Write, changes: ChangeFeed) -> None:
        self._gateway = gateway
        self._principal = principal
        self._outlet = Outlet(write)
        self._changes = changes
        self._loop = asyncio.get_running_loop()
        self._framer = LineFramer(REQUEST_MAX_BYTES)
        self._overlong = 0
        self._client: Client | None = None
        self._running: dict[Identifier, asyncio.Task[None] | Errand] = {}
        self._bare: ClientExchange | None = None
        """The exchange of all calls that bring nothing along."""
        self._unbegun: set[Identifier] = set()
        """Tasks that wait for their first step: who comes later does not overtake them."""
        self._draining: tuple[set[Identifier], asyncio.Future[None]] | None = None
        """What is still waited for, and who waits."""
        self._subscription: Subscription | None = None

    def feed(self, data: bytes) -> None:
        """Takes bytes of the client."""
        for line in self._framer.feed(data):
            self._take(line)
        if self._framer.overlong > self._overlong:
            self._overlong = self._framer.overlong
            error = RpcError(INVALID_REQUEST, f"A message has at most {REQUEST_MAX_BYTES} bytes.")
            self._outlet.put(error_line(None, error), alone=True)

    def end(self) -> None:
        """Takes what has no line end, because nothing more will come."""
        line = self._framer.end()
        if line.strip():
            self._take(line)

    async def drain(self) -> None:
        """Waits for what is under way, but not for ever (K12)."""
        if self._running:
            left, ended = self._draining = (set(self._running), self._loop.create_future())
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await ended
            left.clear()

    async def close(self) -> None:
        """Ends everything that is under way."""
        if self._subscription is not None:
            self._subscription.close()
        if self._client is not None:
            self._client.left()
        running = tuple(self._running.values())
        for work in running:
            work.cancel()
        await asyncio.gather(*(work for work in running if not isinstance(work, Errand)), return_exceptions=True)
        self._outlet.flush()

    def push(self, message: bytes) -> None:
        """Sends one message to the client."""
        self._outlet.put(message if message.endswith(b"\n") else message + b"\n", alone=True)

    # What an errand tells

    def answered(self, key: Identifier, result: bytes) -> None:
        """Sends the result of a call."""
        running = self._running
        self._outlet.put(result_line(key, result), alone=len(running) <= 1)
        if self._draining is None:
            del running[key]
        else:
            self._forget(key)

    def refused(self, key: Identifier, error: RpcError) -> None:
        """Sends the error that a call ended with."""
        self._say(key, error_line(key, error))

    def crashed(self, key: Identifier) -> None:
        """Says that the gateway failed."""
        self._say(key, error_line(key, FAILURE))

    def dropped(self, key: Identifier) -> None:
        """A call was cancelled: nobody waits for a word."""
        self._forget(key)

    def _say(self, key: Identifier, answer: bytes) -> None:
        self._outlet.put(answer, alone=len(self._running) <= 1)
        self._forget(key)

    def _forget(self, key: Identifier) -> None:
        self._running.pop(key, None)
        if self._draining is not None:
            left, ended = self._draining
            left.discard(key)
            if not left and not ended.done():
                ended.set_result(None)

    # Messages

    def _take(self, line: bytes) -> None:
        identifier: Identifier | None = None
        try:
            request = read_request(line)
            if request is not None:
                identifier = request[0]
                self._begin(*request)
                return
            envelope = read_envelope(line)
            if isinstance(envelope.id, (int, str)):
                identifier = envelope.id
            params = {} if isinstance(envelope.method, UnsetType) else read_object(envelope.params)
            require_distinct_keys(line, envelope, params)
            self._dispatch(envelope, params)
        except RpcError as error:
            self._outlet.put(error_line(identifier, error), alone=True)
        except Exception:  # one message must not end the gateway
            logger.exception("a message could not be taken")
            self._outlet.put(error_line(identifier, FAILURE), alone=True)

    def _dispatch(self, envelope: Envelope, params: JsonObject) -> None:
        if isinstance(envelope.method, UnsetType):
            self._settle(envelope)
            return
        if isinstance(envelope.id, UnsetType):
            self._notified(envelope.method, params)
            return
        self._begin(require_id(envelope), envelope.method, params, invocation_of(envelope.method, params))

    def _begin(self, identifier: Identifier, method: str, params: JsonObject, invocation: Invocation | None) -> None:
        if identifier in self._running:
            raise RpcError(INVALID_REQUEST, "A request with this id is under way.")
        if method == CALL and not self._unbegun:
            errand = self._errand(identifier, params, invocation)
            if errand is not None:
                self._running[identifier] = errand
                errand.start(self._loop)
                return
        self._unbegun.add(identifier)
        task = self._loop.create_task(self._answer(identifier, method, params))
        self._running[identifier] = task
        task.add_done_callback(lambda _: self._ended(identifier))

    def _ended(self, identifier: Identifier) -> None:
        self._unbegun.discard(identifier)
        self._forget(identifier)

    def _errand(self, identifier: Identifier, params: JsonObject, invocation: Invocation | None) -> Errand | None:
        """The call without a task, if it can be had so."""
        client = self._client
        if client is None:
            return None
        exchange = self._bare
        if exchange is None or exchange.client is not client or not is_bare(params):
            try:
                client = self._client_of("modern" if require_envelope(params, required=False) else "legacy", params)
            except RpcError:
                return None
            exchange = ClientExchange(client, params, self)
            if exchange.is_bare and client.era == "legacy":
                # Nothing in it belongs to one request: it is good for all that bring nothing along.
                self._bare = exchange
        return self._gateway.begin(client, params, invocation, exchange, self, identifier)

    def _settle(self, envelope: Envelope) -> None:
        if self._client is None or isinstance(envelope.id, UnsetType):
            return
        if not isinstance(envelope.result, UnsetType):
            self._client.settle(envelope.id, bytes(envelope.result), None)
        elif not isinstance(envelope.error, UnsetType):
            self._client.settle(envelope.id, None, read_error(envelope.error))

    def _notified(self, method: str, params: JsonObject) -> None:
        if method == "notifications/cancelled":
            identifier = params.get("requestId")
            task = self._running.get(identifier) if isinstance(identifier, int | str) else None
            if task is not None:
                task.cancel()

    async def _answer(self, identifier: Identifier, method: str, params: JsonObject) -> None:
        self._unbegun.discard(identifier)
        try:
            if method == "initialize":
                result = self._initialize(params)
            else:
                result = await self._work(identifier, method, params)
            answer = result_line(identifier, result)
        except RpcError as error:
            answer = error_line(identifier, error)
        except asyncio.CancelledError:
            return
        except Exception:
            logger.exception("a request failed", extra={"method": method})
            answer = error_line(identifier, FAILURE)
        self._outlet.put(answer, alone=len(self._running) <= 1)

    def _work(self, identifier: Identifier, method: str, params: JsonObject) -> Awaitable[bytes]:
        """The work that answers a request. Raises `RpcError`."""
        era: Era = "modern" if require_envelope(params, required=False) else "legacy"
        client = self._client_of(era, params)
        if method == "subscriptions/listen" and era == "modern":
            return self._changes.serve(client, identifier, params, self.push)
        return self._gateway.answer(client, method, params, ClientExchange(client, params, self))

    def _initialize(self, params: JsonObject) -> bytes:
        if self._client is not None and self._client.era == "modern":
            data: JsonObject = {"supported": [MODERN_VERSION], "requested": params.get("protocolVersion")}
            raise RpcError(UNSUPPORTED_VERSION, "This connection is stateless already.", data)
        version, capabilities, answer = self._gateway.initialize(params)
        client = self._gateway.open_client(self._principal, "legacy", version=version, capabilities=capabilities)
        if self._client is not None:
            self._client.left()
        self._client = client
        if self._subscription is not None:
            self._subscription.close()
        self._subscription = self._changes.follow(client, self.push)
        return answer

    def _client_of(self, era: Era, params: JsonObject) -> Client:
        if self._client is None:
            if era == "legacy":
                # Some clients ask before they shake hands; a list is no secret to them.
                self._client = self._gateway.open_client(
                    self._principal, "legacy", version=LEGACY_VERSIONS[0], capabilities={}
                )
            else:
                self._client = self._gateway.open_client(
                    self._principal, "modern", version=MODERN_VERSION, capabilities={}
                )
        if self._client.era != era:
            raise RpcError(INVALID_REQUEST, "This connection was opened in the other era of the protocol.")
        if era == "modern":
            meta = cast("JsonObject", params["_meta"])
            version, capabilities = str(meta[META_VERSION]), cast("JsonObject", meta[META_CAPABILITIES])
            if (version, capabilities) != (self._client.version, self._client.capabilities):
                # What is under way keeps what it said of itself.
                self._client = replace(self._client, version=version, capabilities=capabilities)
        return self._client


async def serve_stdio(gateway: Gateway, principal: Principal, changes: ChangeFeed, stop: asyncio.Event) -> None:
    """Serves the client on this process's standard input and output until its input ends or `stop` is set."""
    output = await open_output(sys.stdout)

    def write(data: bytes) -> None:
        if not output.is_closing():
            output.write(data)

    server = StdioServer(gateway, principal, write, changes)
    ended = asyncio.Event()
    source = await open_input(sys.stdin, server.feed, ended)
    loop = asyncio.get_running_loop()
    over, told = (loop.create_task(event.wait()) for event in (ended, stop))
    answered: asyncio.Task[None] | None = None
    try:
        await asyncio.wait([over, told], return_when=asyncio.FIRST_COMPLETED)
        if ended.is_set():
            server.end()
        if not output.is_closing():
            # Whoever has nothing more to ask may still read: `toolcrib serve < requests`.
            changes.close()
            answered = loop.create_task(server.drain())
            await asyncio.wait([answered] if stop.is_set() else [answered, told], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in (over, told, answered):
            if wait is not None:
                wait.cancel()
        await server.close()
        source.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while output.get_write_buffer_size():  # noqa: ASYNC110 - the last bytes, on their way out
                    await asyncio.sleep(0.01)
        output.close()
