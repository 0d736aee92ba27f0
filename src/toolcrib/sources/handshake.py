"""Which protocol an MCP server speaks, and what it offers.

A server is asked the modern way first (`server/discover`); whatever is no clear yes means the old way
(`initialize`). Lists are read page by page, with an end: a cursor that comes again, or one page too many, ends the
reading. A list is taken whole or not at all.
"""

import asyncio
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import cast

from toolcrib.definitions import Json, JsonObject, fingerprint_of
from toolcrib.errors import SourceProtocolError, SourceUnavailable
from toolcrib.execution.dispatch import Era, Exchange
from toolcrib.limits import CONNECT_S, LIST_S, PROBE_S, UPSTREAM_PAGES
from toolcrib.sources.json_rpc import UNSUPPORTED_VERSION, RpcError
from toolcrib.sources.link import Link, read_json
from toolcrib.sources.patience import Patience

MODERN_VERSION = "2026-07-28"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions with a handshake, the newest first."""

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META_SERVER = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

_WORDS_MAX_CHARS = 300
"""What is told of an error that a server answered."""
_ITEMS_ON_LOOP = 100
_BYTES_ON_LOOP = 128 * 1024

LEGACY_CAPABILITIES: JsonObject = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
"""What an old server may ask for: it is passed to the client behind the call, or refused."""


def own_info() -> JsonObject:
    """Who we are, to servers and to clients."""
    return {"name": "toolcrib", "version": _own_version()}


@cache
def _own_version() -> str:
    # Looking it up reads the disk: once, not with every request.
    return importlib.metadata.version("toolcrib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What is known of a server after the handshake."""

    era: Era
    version: str
    capabilities: Mapping[str, Json] = field(default_factory=dict[str, Json])
    instructions: str | None = None

    def offers(self, capability: str) -> bool:
        """Whether it declared the capability."""
        return isinstance(self.capabilities.get(capability), Mapping)

    def dress(self, params: JsonObject, exchange: Exchange | None = None) -> JsonObject:
        """Parameters with the `_meta` that this server expects on every request."""
        theirs = exchange.meta if exchange is not None else None
        if not theirs and self.era == "legacy":
            return params
        meta: JsonObject = dict(theirs) if theirs else {}
        if self.era == "modern":
            meta[META_VERSION] = self.version
            meta[META_CLIENT] = own_info()
            meta[META_CAPABILITIES] = exchange.capabilities if exchange is not None else {}
        else:
            meta.pop(META_LOG_LEVEL, None)
        return {**params, "_meta": meta} if meta else params


async def shake_hands(link: Link, *, era: Era | None = None, patience: Patience | None = None) -> Peer:
    """Finds out what the server speaks. Raises `SourceUnavailable` or `SourceProtocolError`."""
    patience = patience or Patience()
    try:
        if era != "legacy":
            peer = await _discover(link, patience)
            if peer is not None:
                return peer
            if era == "modern":
                raise SourceProtocolError(f"it does not speak MCP {MODERN_VERSION}")
        return await _initialize(link, patience)
    except RpcError as error:
        words = link.withheld.cut(error.message, _WORDS_MAX_CHARS)
        raise SourceProtocolError(f"it refused the handshake: {words}") from None
    except TimeoutError:
        raise SourceUnavailable(f"it did not answer within {CONNECT_S:g} s") from None


async def _discover(link: Link, patience: Patience) -> Peer | None:
    probe = Peer(era="modern", version=MODERN_VERSION)
    try:
        async with patience.within(PROBE_S):
            answer = read_json(
                await link.request("server/discover", probe.dress({}), headers=modern_headers("server/discover"),
                                   cancellable=False)
            )  # fmt: skip
    except (RpcError, TimeoutError):
        return None
    versions = answer.get("supportedVersions")
    if not isinstance(versions, list) or MODERN_VERSION not in versions:
        return None
    return _peer("modern", MODERN_VERSION, answer)


async def _initialize(link: Link, patience: Patience) -> Peer:
    params: JsonObject = {
        "protocolVersion": LEGACY_VERSIONS[0],
        "capabilities": LEGACY_CAPABILITIES,
        "clientInfo": own_info(),
    }
    async with patience.within(CONNECT_S):
        answer = read_json(await link.request("initialize", params, cancellable=False))
    version = answer.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        raise RpcError(UNSUPPORTED_VERSION, f"it speaks MCP {version!r}, which is not known here")
    link.agree(cast("str", version))
    link.notify("notifications/initialized")
    return _peer("legacy", cast("str", version), answer)


def _peer(era: Era, version: str, answer: JsonObject) -> Peer:
    capabilities = answer.get("capabilities")
    instructions = answer.get("instructions")
    return Peer(
        era=era,
        version=version,
        capabilities=capabilities if isinstance(capabilities, Mapping) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    """The HTTP headers that mirror a request for those in between."""
    from toolcrib.sources.mcp_headers import encode_value

    headers = {"mcp-protocol-version": MODERN_VERSION, "mcp-method": method}
    return headers if name is None else {**headers, "mcp-name": encode_value(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A whole list, and the digest of the answers that it came in."""

    items: tuple[JsonObject, ...]
    digest: str
    problem: str | None = None
    """Why reading ended before the list did."""
    size: int = 0
    """Bytes of the answers."""

    @property
    def is_light(self) -> bool:
        """Whether it can be worked on without leaving the event loop: a few milliseconds."""
        return len(self.items) <= _ITEMS_ON_LOOP and self.size <= _BYTES_ON_LOOP


async def read_list(link: Link, peer: Peer, method: str, key: str, *, known: str | None = None) -> Listed | None:
    """A whole list; nothing if its digest is `known`. Raises `RpcError`, `SourceUnavailable`, `TimeoutError`."""
    try:
        return await _read_pages(link, peer, method, key, known)
    except RpcError as error:
        # It becomes a reason or a line of a log.
        raise RpcError(error.code, link.withheld.cut(error.message, _WORDS_MAX_CHARS)) from None


async def _read_pages(link: Link, peer: Peer, method: str, key: str, known: str | None) -> Listed | None:
    items: list[JsonObject] = []
    pages: list[bytes] = []
    cursors: set[str] = set()
    params: JsonObject = {}
    problem: str | None = None
    while True:
        headers = modern_headers(method) if peer.era == "modern" else None
        async with asyncio.timeout(LIST_S):
            raw = await link.request(method, peer.dress(params), headers=headers)
        pages.append(raw)
        if known is not None and len(pages) == 1 and fingerprint_of(raw) == known and b'"nextCursor"' not in raw:
            return None
        answer = read_json(raw) if len(raw) <= _BYTES_ON_LOOP else await asyncio.to_thread(read_json, raw)
        found = answer.get(key)
        if not isinstance(found, list):
            raise RpcError(-32603, f"its answer to {method} has no list of {key}")
        items.extend(item for item in found if isinstance(item, dict))
        cursor = answer.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            break
        if cursor in cursors or len(pages) >= UPSTREAM_PAGES:
            problem = "its pages go round in a circle" if cursor in cursors else f"it has over {UPSTREAM_PAGES} pages"
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    return Listed(items=tuple(items), digest=fingerprint_of(*pages), problem=problem, size=sum(map(len, pages)))
