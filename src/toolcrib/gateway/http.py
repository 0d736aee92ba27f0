"""The gateway over streamable HTTP: both eras of the protocol on one endpoint.

The order of the checks is the order of trust: the Host and the Origin first, on every path; then the token; then the
method, the size and the shape. What is authorised is the path that is routed. Whatever a client sends, the credential
that came with it stays here.
"""

import asyncio
import logging
import shlex
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from msgspec import UnsetType

from toolcrib.assembly import Assembly
from toolcrib.bridge import Invocation
from toolcrib.definitions import JsonObject
from toolcrib.dialects.mcp import write_tool
from toolcrib.errors import ConfigError
from toolcrib.gateway.annex import Annex
from toolcrib.gateway.auth import TokenFile
from toolcrib.gateway.calls import CALL, read_request
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.door import Door, require_small_body
from toolcrib.gateway.envelope import require_envelope
from toolcrib.gateway.http_connections import HttpServer, Take
from toolcrib.gateway.http_replies import STATUS, Reply
from toolcrib.gateway.http_sessions import HttpSession, HttpSessions
from toolcrib.gateway.http_wire import Head, Refused
from toolcrib.gateway.listening import is_loopback, listen_on, parse_address, require_reach, url_of
from toolcrib.gateway.profiles import Principal
from toolcrib.gateway.relay import FAILURE, Client, ClientExchange
from toolcrib.gateway.server import Gateway
from toolcrib.limits import LOOK_EVERY_S
from toolcrib.settings import Settings
from toolcrib.sources.handshake import (
    LEGACY_VERSIONS,
    META_CAPABILITIES,
    META_VERSION,
    MODERN_VERSION,
)
from toolcrib.sources.json_rpc import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    Envelope,
    Identifier,
    RpcError,
    error_line,
    read_envelope,
    read_error,
    read_object,
    require_distinct_keys,
    require_id,
    result_body,
)
from toolcrib.sources.mcp_headers import Mirror, decode_value, mirrors_of, require_matching

if TYPE_CHECKING:
    from toolcrib.gateway.run import Options

logger = logging.getLogger("toolcrib.gateway")

ENDPOINT = "/mcp"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")


class HttpApp:
    """What the gateway answers over HTTP."""

    def __init__(
        self,
        gateway: Gateway,
        changes: ChangeFeed,
        *,
        door: Door,
        anonymous: Principal | None,
        annex: Annex | None = None,
    ) -> None:
        self.sessions = HttpSessions(changes, clock=time.monotonic)
        self.door = door
        self._gateway = gateway
        self._changes = changes
        self._anonymous = anonymous
        self._annex = annex
        self._unread = False
        """Whether the tokens could not be read when they were last looked at."""
        # Behind tokens, what one client gets is none of the next one's business.
        gateway.is_open = gateway.is_open and anonymous is not None
        self._mirrored: WeakKeyDictionary[Assembly, Mapping[str, Sequence[Mirror]]] = WeakKeyDictionary()

    def open(self, head: Head) -> Take:
        """What takes the body of a request, if it is let in. Raises `Refused`."""
        if head.cleared:
            # The same words as before: only who sends them may count for less by now.
            return partial(self._post, head, self._require_principal(head))
        self.door.require_host(head.headers)
        if head.path == "/health":
            require_small_body(head, 0)
            return _healthy
        if self._annex is not None and head.path.startswith(self._annex.prefix):
            return self._annex.open(head)
        if head.path != ENDPOINT:
            raise Refused(404, f"There is nothing here: MCP clients go to {ENDPOINT}.")
        return self._route(head, self._require_principal(head))

    def look(self) -> None:
        """Looks after what stays open: who is in use, and who is let in no more, which counts at once (G2)."""
        self.sessions.note_use()
        try:
            valid = self.door.tokens.valid() if self.door.tokens is not None else frozenset[tuple[str, str]]()
        except ConfigError as error:
            self._note_unread(error)
            return
        self._unread = False

        def is_refused(principal: Principal) -> bool:
            return principal is not self._anonymous and (principal.name, principal.profile) not in valid

        self.sessions.end_if(is_refused)
        self._changes.end_if(is_refused)

    def _note_unread(self, error: ConfigError) -> None:
        """Says once that the tokens cannot be read. An editor may be writing them: what is open is left as it is."""
        if not self._unread:
            self._unread = True
            logger.warning("no token is good for a request until the tokens can be read: %s", error)

    # Who asks

    def _require_principal(self, head: Head) -> Principal:
        if self._anonymous is not None and "authorization" not in head.headers:
            return self._anonymous
        entry = self.door.require_token(head, "client")
        try:
            return self._gateway.profiles.principal(entry.name, entry.profile)
        except ConfigError:
            raise Refused(403, "The profile of this token does not exist.") from None

    # What is asked

    def _route(self, head: Head, principal: Principal) -> Take:
        headers = head.headers
        modern = headers.get("mcp-protocol-version") == MODERN_VERSION
        if head.method == "POST":
            _require_types(headers)
            head.cleared = True
            return partial(self._post, head, principal)
        if modern or head.method not in ("GET", "DELETE"):
            allowed = b"POST" if modern else b"GET, POST, DELETE"
            raise Refused(405, "This method is not served here.", [(b"allow", allowed)])
        if head.method == "GET" and "text/event-stream" not in headers.get("accept", "").lower():
            raise Refused(406, "Accept text/event-stream.")
        session = self._session(headers, principal)
        return partial(self._listen if head.method == "GET" else self._end, session)

    def _post(self, head: Head, principal: Principal, body: bytes, reply: Reply) -> None:
        identifier: Identifier | None = None
        try:
            request = read_request(body)
            if request is not None and request[1] == CALL:
                identifier, _, params, invocation = request
                if self._call(head, principal, identifier, params, invocation, reply):
                    return
            envelope = read_envelope(body)
            if isinstance(envelope.id, (int, str)):
                identifier = envelope.id
            params = read_object(envelope.params)
            require_distinct_keys(body, envelope, params)
            if _is_modern(head, params):
                self._modern(head, principal, envelope, params, reply)
            else:
                self._legacy(head.headers, principal, envelope, params, reply)
        except RpcError as error:
            reply.send_error(STATUS.get(error.code, 400), error, identifier)

    def _call(
        self,
        head: Head,
        principal: Principal,
        identifier: Identifier,
        params: JsonObject,
        invocation: Invocation | None,
        reply: Reply,
    ) -> bool:
        """Whether a call of a tool is under way, without a task; if not, it is taken like any other request."""
        session: HttpSession | None = None
        if _is_modern(head, params):
            client = self._stateless(head, principal, CALL, params)
        else:
            session = self._session(head.headers, principal)
            client = session.client
            version = head.headers.get("mcp-protocol-version")
            if version is not None and version not in LEGACY_VERSIONS:
                return False
        exchange = ClientExchange(client, params, reply)
        errand = self._gateway.begin(client, params, invocation, exchange, _Asked(reply, session), identifier)
        if errand is None:
            return False
        reply.errand = errand
        if session is not None:
            session.running[identifier] = errand
        errand.start(reply.loop)
        return True

    # The stateless era

    def _stateless(self, head: Head, principal: Principal, method: str, params: JsonObject) -> Client:
        """The client of one request that says everything about itself. Raises `RpcError`."""
        _require_routing(head, method, params)
        require_envelope(params)
        meta = cast("JsonObject", params["_meta"])
        client = self._gateway.open_client(
            principal, "modern", version=MODERN_VERSION, capabilities=cast("JsonObject", meta[META_CAPABILITIES])
        )
        if method == "tools/call":
            self._require_params(client, params, head.headers)
        return client

    def _modern(
        self,
        head: Head,
        principal: Principal,
        envelope: Envelope,
        params: JsonObject,
        reply: Reply,
    ) -> None:
        if isinstance(envelope.method, UnsetType):
            raise RpcError(INVALID_REQUEST, "A client sends requests here, no answers.")
        method = envelope.method
        if isinstance(envelope.id, UnsetType):
            reply.send(202)
            return
        identifier = require_id(envelope)
        client = self._stateless(head, principal, method, params)
        if method == "subscriptions/listen":
            work = self._changes.serve(client, identifier, params, reply.push)
        else:
            work = self._gateway.answer(client, method, params, ClientExchange(client, params, reply))
        reply.run(work, identifier, statuses=STATUS)

    def _require_params(self, client: Client, params: JsonObject, headers: Mapping[str, str]) -> None:
        """Headers that mirror arguments say what the arguments say, for every tool that the client was shown."""
        assembly = client.session.assembly
        mirrored = self._mirrored.get(assembly)
        if mirrored is None:
            schemas = ((str(tool.name), cast("JsonObject", write_tool(tool)["inputSchema"])) for tool in assembly.tools)
            mirrored = {name: found for name, schema in schemas if (found := mirrors_of(schema))}
            self._mirrored[assembly] = mirrored
        mirrors = mirrored.get(str(params.get("name")))
        arguments = params.get("arguments")
        if mirrors is not None and (arguments is None or isinstance(arguments, dict)):
            require_matching(mirrors, arguments or {}, headers)

    # The era of sessions

    def _legacy(
        self,
        headers: Mapping[str, str],
        principal: Principal,
        envelope: Envelope,
        params: JsonObject,
        reply: Reply,
    ) -> None:
        if envelope.method == "initialize" and not isinstance(envelope.id, UnsetType):
            identifier = require_id(envelope)
            version, capabilities, answer = self._gateway.initialize(params)
            client = self._gateway.open_client(principal, "legacy", version=version, capabilities=capabilities)
            session = self.sessions.open(client)
            reply.send(200, result_body(identifier, answer), [(b"mcp-session-id", session.id.encode())])
            return
        session = self._session(headers, principal)
        client = session.client
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in LEGACY_VERSIONS:
            raise RpcError(INVALID_REQUEST, "This protocol version is not spoken here.")
        if isinstance(envelope.method, UnsetType):
            _settle(client, envelope)
            reply.send(202)
        elif isinstance(envelope.id, UnsetType):
            self._notified(session, envelope.method, params)
            reply.send(202)
        else:
            identifier = require_id(envelope)
            reply.run(self._cancellable(session, identifier, envelope.method, params, reply), identifier)

    async def _cancellable(
        self, session: HttpSession, identifier: Identifier, method: str, params: JsonObject, reply: Reply
    ) -> bytes:
        if reply.task is not None:
            session.running[identifier] = reply.task
        exchange = ClientExchange(session.client, params, reply)
        try:
            return await self._gateway.answer(session.client, method, params, exchange)
        except asyncio.CancelledError:
            # By the client's own word: the answer is an error that nobody waits for.
            if identifier in session.cancelled:
                raise RpcError(INVALID_REQUEST, "The request was cancelled.") from None
            raise
        finally:
            session.forget(identifier)

    def _notified(self, session: HttpSession, method: str, params: JsonObject) -> None:
        if method == "notifications/cancelled":
            identifier = params.get("requestId")
            task = session.running.get(identifier) if isinstance(identifier, int | str) else None
            if task is not None and isinstance(identifier, int | str):
                session.cancelled.add(identifier)
                task.cancel()

    def _listen(self, session: HttpSession, body: bytes, reply: Reply) -> None:
        if session.stream is not None:
            session.stream.close()
        session.stream = reply
        reply.begin_stream()

    def _end(self, session: HttpSession, body: bytes, reply: Reply) -> None:
        self.sessions.end(session)
        reply.send(200)

    def _session(self, headers: Mapping[str, str], principal: Principal) -> HttpSession:
        identifier = headers.get("mcp-session-id")
        if identifier is None:
            raise Refused(400, "The header Mcp-Session-Id is missing: send `initialize` first.")
        session = self.sessions.find(identifier, principal)
        if session is None:
            raise Refused(404, "There is no such session.")
        return session


class _Asked:
    """A call of a tool that an HTTP client waits for."""

    __slots__ = ("_reply", "_session")

    def __init__(self, reply: Reply, session: HttpSession | None) -> None:
        self._reply = reply
        self._session = session
        """Of an old client: a modern one has none."""

    def answered(self, key: Identifier, result: bytes) -> None:
        """Sends the result."""
        if self._session is not None:
            self._session.forget(key)
        self._reply.conclude(200, result_body(key, result))

    def refused(self, key: Identifier, error: RpcError) -> None:
        """Sends the error."""
        status = 200 if self._session is not None else STATUS.get(error.code, 200)
        self._end(key, status, error)

    def crashed(self, key: Identifier) -> None:
        """Says that the gateway failed."""
        self._end(key, 500, FAILURE)

    def dropped(self, key: Identifier) -> None:
        """The call was cancelled: by the client's own word it gets an answer that nobody waits for."""
        if self._session is not None and key in self._session.cancelled:
            self.refused(key, RpcError(INVALID_REQUEST, "The request was cancelled."))
            return
        if self._session is not None:
            self._session.forget(key)
        self._reply.break_off()

    def _end(self, key: Identifier, status: int, error: RpcError) -> None:
        if self._session is not None:
            self._session.forget(key)
        self._reply.conclude(status, error_line(key, error).rstrip())


def _is_modern(head: Head, params: JsonObject) -> bool:
    """Whether a request speaks the stateless protocol, by its header or by its body."""
    if head.headers.get("mcp-protocol-version") == MODERN_VERSION:
        return True
    meta = params.get("_meta")
    return meta is not None and isinstance(meta, Mapping) and META_VERSION in meta


def _healthy(body: bytes, reply: Reply) -> None:
    reply.send(200, b'{"status":"ok"}')


def _require_types(headers: Mapping[str, str]) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "The body must be application/json.")
    accepted = headers.get("accept", "").lower()
    if "*/*" not in accepted and not ("application/json" in accepted and "text/event-stream" in accepted):
        raise Refused(406, "Accept both application/json and text/event-stream.")


def _require_routing(head: Head, method: str, params: JsonObject) -> None:
    """The headers that those in between route by say what the body says (F7)."""
    headers = head.headers
    if not head.repeated.isdisjoint(_ROUTING):
        raise RpcError(HEADER_MISMATCH, "A routing header occurs twice.")
    meta = params.get("_meta")
    if isinstance(meta, Mapping) and META_VERSION in meta and headers.get("mcp-protocol-version") != meta[META_VERSION]:
        raise RpcError(HEADER_MISMATCH, "The header MCP-Protocol-Version does not say what the body says.")
    if isinstance(meta, Mapping) and META_VERSION in meta and headers.get("mcp-method") != method:
        raise RpcError(HEADER_MISMATCH, "The header Mcp-Method does not say what the body says.")
    key = _NAMED.get(method)
    value = params.get(key) if key else None
    if value is not None and decode_value(headers.get("mcp-name")) != value:
        raise RpcError(HEADER_MISMATCH, "The header Mcp-Name does not say what the body says.")


def _settle(client: Client, envelope: Envelope) -> None:
    identifier = None if isinstance(envelope.id, UnsetType) else envelope.id
    if not isinstance(envelope.result, UnsetType):
        client.settle(identifier, bytes(envelope.result), None)
    elif not isinstance(envelope.error, UnsetType):
        client.settle(identifier, None, read_error(envelope.error))


def open_door(options: "Options", settings: Settings) -> Door:
    """The door of everything that is served. Raises `ConfigError` for an address that may not be served on."""
    path = settings.gateway.tokens
    hosts = list(settings.gateway.hosts)
    for address in (options.http, options.console_at):
        if address is not None:
            host, _ = parse_address(address)
            require_reach(host, public=options.public)
            hosts += [] if is_loopback(host) else [host]
    return Door(tokens=TokenFile(Path(path) if path else None), hosts=hosts, origins=settings.gateway.origins)


def open_app(
    gateway: Gateway,
    changes: ChangeFeed,
    options: "Options",
    settings: Settings,
    *,
    door: Door | None = None,
    annex: Annex | None = None,
) -> HttpApp:
    """The application, if it may be served on its address. Raises `ConfigError`."""
    door = door or open_door(options, settings)
    host, _ = parse_address(options.http or "")
    if options.allow_unauthenticated and not is_loopback(host):
        raise ConfigError("--allow-unauthenticated is for loopback addresses only.")
    entries = [entry for entry in (door.tokens.read() if door.tokens is not None else ()) if entry.role == "client"]
    anonymous = None
    if options.allow_unauthenticated:
        anonymous = gateway.profiles.principal("local", options.profile)
    elif not entries:
        # A token in another file would not help.
        path = settings.gateway.tokens
        where = f" --file {shlex.quote(path)}" if path else ""
        raise ConfigError(
            f"HTTP needs a token: make one with `toolcrib token create NAME{where}`, or say --allow-unauthenticated."
        )
    for entry in entries:
        if entry.profile not in gateway.profiles.names:
            logger.warning("the token `%s` is refused: there is no profile `%s`", entry.name, entry.profile)
    return HttpApp(gateway, changes, door=door, anonymous=anonymous, annex=annex)


async def _keep_looking(app: HttpApp) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            app.look()
        except Exception:  # the next look is as good
            logger.exception("what is open could not be looked after")


async def serve_http(
    gateway: Gateway,
    changes: ChangeFeed,
    options: "Options",
    settings: Settings,
    stop: asyncio.Event,
    *,
    door: Door | None = None,
    annex: Annex | None = None,
) -> None:
    """Serves HTTP until told to stop. Raises `ConfigError`."""
    app = open_app(gateway, changes, options, settings, door=door, annex=annex)
    listening = listen_on(options.http or "")
    server = HttpServer(app)
    await server.listen(listening)
    looking = asyncio.ensure_future(_keep_looking(app))
    logger.info("listening on %s%s", url_of(listening), ENDPOINT)
    try:
        if annex is not None:
            annex.welcome(url_of(listening))
        await stop.wait()
    finally:
        looking.cancel()
        app.sessions.close()
        changes.close()
        if annex is not None:
            annex.close()
        await server.close()
