"""The methods of the gateway, for clients of either era.

What a client gets depends on its principal and the catalog, and on nothing else: not on the connection, not on what
it asked before. Every call of a tool goes through its session, and so through the one list of stages; searching and
describing ask no server anything, and a call asks one server once.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from typing import cast

import orjson

from toolcrib.bridge import TOOL_DESCRIBE, TOOL_SEARCH, Invocation
from toolcrib.crib import Crib
from toolcrib.definitions import Json, JsonObject, ModelCall
from toolcrib.dialects.mcp import write_result
from toolcrib.errors import CallError, SourceError, SourceRefused, ToolNotAvailable
from toolcrib.execution.dispatch import Era
from toolcrib.execution.errands import Errand
from toolcrib.execution.executor import Done
from toolcrib.execution.places import Places
from toolcrib.gateway.approvals import InputNeeded
from toolcrib.gateway.changes import note_listed
from toolcrib.gateway.desk import ApprovalDesk
from toolcrib.gateway.library import Library
from toolcrib.gateway.parking import Parking
from toolcrib.gateway.profiles import Principal, Profiles, open_session
from toolcrib.gateway.relay import LEVELS, Asker, Client, ClientExchange
from toolcrib.gateway.results import with_lifetime, with_type
from toolcrib.sources.handshake import LEGACY_VERSIONS, META_SERVER, MODERN_VERSION, own_info
from toolcrib.sources.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Identifier, RpcError
from toolcrib.sources.mcp_source import Event, McpSource

logger = logging.getLogger("toolcrib.gateway")

CACHE_TTL_MS = 5_000
"""How long a client may keep a list before it asks again; changes are announced besides."""

Handler = Callable[[Client, JsonObject, ClientExchange], Awaitable[bytes]]
_BOTH: frozenset[Era] = frozenset({"legacy", "modern"})
_LEGACY: frozenset[Era] = frozenset({"legacy"})
_MODERN: frozenset[Era] = frozenset({"modern"})


class Gateway:
    """A crib, offered to MCP clients."""

    def __init__(self, crib: Crib, profiles: Profiles, *, desk: ApprovalDesk | None = None) -> None:
        self.crib = crib
        self.profiles = profiles
        self.desk = desk or ApprovalDesk(ttl_s=crib.settings.approvals.ttl_s)
        """Where calls wait for a person whom their client cannot ask."""
        self.library = Library(crib)
        self.parking = Parking(places=crib.settings.limits.concurrency_per_session)
        self.startup_wait_s = crib.settings.gateway.startup_wait
        self.is_open = not profiles.differ
        """Whether everybody who reaches it may see the same: then others may keep a list for each other."""
        self.in_flight = 0
        """Requests under way."""
        self._mark, self._numbers, self._clients = secrets.token_hex(2), count(1), count(1)
        """What calls and clients are named after: apart from those of another process, and in their order."""
        self._places: dict[str, Places] = {}
        self._logged: set[Client] = set()
        """Old clients that said which log messages they want."""
        self._settled = False
        self._methods: Mapping[str, tuple[frozenset[Era], Handler]] = {
            "server/discover": (_MODERN, self._discover),
            "ping": (_LEGACY, _empty),
            "logging/setLevel": (_LEGACY, self._set_level),
            "tools/list": (_BOTH, self._list_tools),
            "tools/call": (_BOTH, self._call_tool),
            "prompts/list": (_BOTH, self._list_prompts),
            "prompts/get": (_BOTH, self._settled_first(self.library.get_prompt)),
            "resources/list": (_BOTH, self._list_resources),
            "resources/templates/list": (_BOTH, self._list_templates),
            "resources/read": (_BOTH, self._settled_first(self._read_resource)),
            "resources/subscribe": (_LEGACY, self._settled_first(self.library.subscribe)),
            "resources/unsubscribe": (_LEGACY, self._settled_first(self.library.unsubscribe)),
            "completion/complete": (_BOTH, self._settled_first(self.library.complete)),
        }

    @property
    def servers(self) -> tuple[McpSource, ...]:
        """The MCP servers behind it."""
        return tuple(source for source in self.crib.sources if isinstance(source, McpSource))

    # Clients

    def open_client(self, principal: Principal, era: Era, *, version: str, capabilities: JsonObject) -> Client:
        """A client of this principal."""
        client = Client(
            id=f"{principal.name}:{self._mark}{next(self._clients):x}",
            principal=principal,
            session=open_session(self.crib, principal),
            era=era,
            version=version,
            capabilities=capabilities,
        )
        # However many connections somebody opens, their calls share one bound.
        places = self._places.get(principal.name)
        if places is None:
            places = self._places[principal.name] = client.session.places
            places.wanted = partial(self.parking.make_room, principal.name)
        client.session.places = places
        if era == "legacy":
            client.left = lambda: self._left(client)
        return client

    def _left(self, client: Client) -> None:
        """An old client is gone: what it wished counts no more, and it answers nothing more."""
        client.leave_questions()
        self.library.left(client)
        if client in self._logged:
            self._logged.discard(client)
            self._set_levels()

    def initialize(self, params: JsonObject) -> tuple[str, JsonObject, bytes]:
        """The version that is spoken, the client's capabilities, and the answer to `initialize`."""
        asked = params.get("protocolVersion")
        version = asked if isinstance(asked, str) and asked in LEGACY_VERSIONS else LEGACY_VERSIONS[0]
        capabilities = params.get("capabilities")
        answer: JsonObject = {
            "protocolVersion": version,
            "capabilities": self.capabilities("legacy"),
            "serverInfo": own_info(),
        }
        return version, dict(capabilities) if isinstance(capabilities, Mapping) else {}, orjson.dumps(answer)

    def capabilities(self, era: Era) -> JsonObject:
        """What the gateway offers; the same whatever servers are up, because a client asks once."""
        offered: JsonObject = {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "completions": {},
        }
        return {**offered, "logging": {}} if era == "legacy" else offered

    # Requests

    async def answer(self, client: Client, method: str, params: JsonObject, exchange: ClientExchange) -> bytes:
        """The result of a request as JSON. Raises `RpcError`."""
        eras, handler = self._methods.get(method, (_BOTH, None))
        if handler is None or client.era not in eras:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method[:80]}.")
        self.in_flight += 1
        try:
            if client.era == "modern" and self.parking.concerns(client, method, exchange):
                result = await self.parking.run(
                    client, method, params, exchange, lambda: self._begin(handler, client, params, exchange)
                )
            else:
                result = await handler(client, params, exchange)
            return result if client.era == "legacy" else with_type(result)
        except SourceRefused as error:
            raise RpcError(error.rpc_code, error.rpc_message, cast("Json", error.rpc_data)) from None
        except CallError as error:
            raise RpcError(INVALID_PARAMS, error.message) from None
        except SourceError as error:
            raise RpcError(INTERNAL_ERROR, f"The server cannot be reached now: {error}") from None
        finally:
            self.in_flight -= 1

    def begin(
        self,
        client: Client,
        params: JsonObject,
        invocation: Invocation | None,
        exchange: ClientExchange,
        asker: Asker,
        key: Identifier,
    ) -> Errand | None:
        """Begins `tools/call` without a task, if nothing but the answer has to be waited for; it is to be started."""
        if client.era == "modern" and self.parking.concerns(client, "tools/call", exchange):
            return None
        call_id = f"{self._mark}{next(self._numbers):x}"
        try:
            errand = client.session.begin(call_id, params, invocation, exchange, self)
        except Exception:  # a fault of our own: the long way answers
            logger.exception("a call takes the long way")
            return None
        if errand is not None:
            errand.owner, errand.key = (client, asker), key
            self.in_flight += 1
        return errand

    def answered(self, errand: Errand, result: bytes) -> None:
        """Hands the result of an errand to whoever asked for it."""
        self.in_flight -= 1
        client: Client
        asker: Asker
        client, asker = errand.owner
        try:
            client.session.guard.note_progress()
            asker.answered(errand.key, result if client.era == "legacy" else with_type(result))
        except Exception:
            logger.exception("a request failed", extra={"method": "tools/call"})
            asker.crashed(errand.key)

    def arrived(self, errand: Errand, done: Done) -> None:
        """Hands the end of an errand to whoever asked for it."""
        self.in_flight -= 1
        client: Client
        asker: Asker
        client, asker = errand.owner
        try:
            if done.error is None:
                client.session.guard.note_progress()
            result = done.result.encoded
            if result is None or done.error is not None:
                call = ModelCall(id=errand.call.id, name=errand.invocation.name, arguments=None)
                try:
                    result = _written(call, done)
                except RpcError as error:
                    asker.refused(errand.key, error)
                    return
            asker.answered(errand.key, result if client.era == "legacy" else with_type(result))
        except Exception:
            logger.exception("a request failed", extra={"method": "tools/call"})
            asker.crashed(errand.key)

    def dropped(self, errand: Errand) -> None:
        """Tells whoever asked for an errand that it was cancelled."""
        self.in_flight -= 1
        errand.owner[1].dropped(errand.key)

    def crashed(self, errand: Errand) -> None:
        """Tells whoever asked for an errand that it failed."""
        self.in_flight -= 1
        errand.owner[1].crashed(errand.key)

    async def _begin(self, handler: Handler, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        return await handler(client, params, exchange)

    async def wait_settled(self) -> None:
        """Waits a while for servers that are still starting, so that the first list is not an empty one."""
        if self._settled:
            return
        waiting = [source.settled.wait() for source in self.servers]
        try:
            async with asyncio.timeout(self.startup_wait_s):
                await asyncio.gather(*waiting)
        except TimeoutError:
            slow = ", ".join(source.server for source in self.servers if not source.settled.is_set())
            logger.warning("still starting, and listed as soon as they are up: %s", slow)
        self._settled = True

    def _settled_first(self, handler: Handler) -> Handler:
        """The handler, once the servers had their time to start."""

        async def wait_and_answer(client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
            await self.wait_settled()
            return await handler(client, params, exchange)

        return wait_and_answer

    async def _discover(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        answer: JsonObject = {
            "resultType": "complete",
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self.capabilities("modern"),
            "serverInfo": own_info(),
            "ttlMs": 3_600_000,
            "cacheScope": "public",
            "_meta": {META_SERVER: own_info()},
        }
        return orjson.dumps(answer)

    async def _set_level(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError(INVALID_PARAMS, f"`level` must be one of {', '.join(LEVELS)}.")
        client.log_level = cast("str", level)
        self._logged.add(client)
        self._set_levels()
        return b"{}"

    def _set_levels(self) -> None:
        """Asks every server for what the most curious of the clients wants that may use it."""
        for source in self.servers:
            wanted = [
                LEVELS.index(client.log_level)
                for client in self._logged
                if client.log_level is not None and client.principal.scope.allows_toolset(source.name)
            ]
            source.set_log_level(LEVELS[min(wanted)] if wanted else None)

    async def _list_tools(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        await self.wait_settled()
        array = client.session.assemble(dialect="mcp").encoded
        return self._listed(client, "tools", "tools", array)

    async def _list_prompts(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        await self.wait_settled()
        return self._listed(client, "prompts", "prompts", orjson.dumps(self.library.prompts(client.principal)))

    async def _list_resources(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        await self.wait_settled()
        return self._listed(client, "resources", "resources", orjson.dumps(self.library.resources(client.principal)))

    async def _list_templates(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        await self.wait_settled()
        array = orjson.dumps(self.library.templates(client.principal))
        return self._listed(client, "resources", "resourceTemplates", array)

    async def _read_resource(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        result = await self.library.read_resource(client, params, exchange)
        return result if client.era == "legacy" else with_lifetime(result)

    def _listed(self, client: Client, event: Event, key: str, array: bytes) -> bytes:
        if client.era == "legacy":
            note_listed(self.crib, client, event, templates=key == "resourceTemplates")
            return b'{"%b":%b}' % (key.encode(), array)
        scope = b"public" if self.is_open and not client.principal.is_restricted else b"private"
        return b'{"resultType":"complete","%b":%b,"ttlMs":%d,"cacheScope":"%b"}' % (
            key.encode(), array, CACHE_TTL_MS, scope,
        )  # fmt: skip

    async def _call_tool(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        name = params.get("name")
        if not isinstance(name, str) or not name:
            raise RpcError(INVALID_PARAMS, "`name` must be the name of a tool.")
        if not self._settled and name in {TOOL_SEARCH, TOOL_DESCRIBE}:
            # A search that finds nothing is an answer: it must not be given before there is anything to find.
            await self.wait_settled()
        call = ModelCall(
            id=f"{self._mark}{next(self._numbers):x}", name=name, arguments=params.get("arguments"), dialect="mcp"
        )
        done = await client.session.relay(call, exchange)
        if done.error is None and done.result.encoded is not None:
            return done.result.encoded
        if isinstance(done.error, ToolNotAvailable) and not self._settled:
            await self.wait_settled()
            done = await client.session.relay(call, exchange)
        return _written(call, done)


def _written(call: ModelCall, done: Done) -> bytes:
    error = done.error
    if isinstance(error, SourceRefused):
        raise RpcError(error.rpc_code, error.rpc_message, cast("Json", error.rpc_data))
    if isinstance(error, InputNeeded):
        return orjson.dumps(error.result())
    if isinstance(error, ToolNotAvailable) and done.tool is None and not call.name.startswith("tool_"):
        # The protocol's own answer to a name that means nothing; inside the bridge a model has to read it.
        raise RpcError(INVALID_PARAMS, error.message)
    if done.result.encoded is not None:
        return done.result.encoded
    return orjson.dumps(write_result(call, done.result), default=str)


async def _empty(client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
    return b"{}"
