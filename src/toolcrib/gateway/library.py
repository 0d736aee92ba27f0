"""Prompts and resources of the servers, passed on under names that tell them apart (X20).

A prompt is named like a tool: prefix, separator, own name. A resource's URI gets the prefix in front of its scheme
(`github+repo://x`), unless its server has none; the URI as the server wrote it is understood too where only one
granted server lists it, because results of tools refer to resources that way. Everything is read from the lists that
are already here; only reading, getting and completing ask a server, and then the one that it concerns.
"""

import re
from collections.abc import Iterator
from typing import cast

import orjson

from toolcrib.crib import Crib
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import DefinitionError
from toolcrib.gateway.profiles import Principal
from toolcrib.gateway.relay import Client, ClientExchange
from toolcrib.gateway.results import require_object
from toolcrib.intake.naming import exposed_name
from toolcrib.limits import SUBSCRIPTIONS_PER_CLIENT
from toolcrib.sources.json_rpc import INVALID_PARAMS, RpcError
from toolcrib.sources.mcp_source import McpSource

_RESOURCE_NOT_FOUND_LEGACY = -32002
_VARIABLE = re.compile(r"\\\{[^{}]*\\\}|\{[^{}]*\}")


class Library:
    """What the servers of a crib offer besides tools."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._followers: dict[tuple[str, str], set[Client]] = {}
        """Who follows a resource, by the names of its source and of itself there."""

    def servers(self, principal: Principal) -> Iterator[McpSource]:
        """The servers that a principal may use. One that sees single tools only has no prompts and resources."""
        if principal.scope.tools or principal.scope.read_only:
            return
        held = self._crib.held_sources
        for source in self._crib.sources:
            if (
                isinstance(source, McpSource)
                and principal.scope.allows_toolset(source.name)
                and source.name not in held
            ):
                yield source

    # Lists

    def prompts(self, principal: Principal) -> list[JsonObject]:
        """All prompts, under their exposed names."""
        found: dict[str, JsonObject] = {}
        for source in self.servers(principal):
            for prompt in source.prompts:
                name = _prompt_name(source, prompt)
                if name is not None and self._crib.intake.lets_through(prompt):
                    found.setdefault(name, {**prompt, "name": name})
        return list(found.values())

    def resources(self, principal: Principal) -> list[JsonObject]:
        """All resources, under their exposed URIs."""
        return self._exposed(principal, "resources", "uri")

    def templates(self, principal: Principal) -> list[JsonObject]:
        """All templates of resources, under their exposed URIs."""
        return self._exposed(principal, "templates", "uriTemplate")

    def _exposed(self, principal: Principal, kind: str, key: str) -> list[JsonObject]:
        found: dict[str, JsonObject] = {}
        for source in self.servers(principal):
            for item in cast("tuple[JsonObject, ...]", getattr(source, kind)):
                uri = item.get(key)
                if isinstance(uri, str) and self._crib.intake.lets_through(item):
                    shown = f"{uri_prefix(source)}{uri}"
                    found.setdefault(shown, {**item, key: shown})
        return list(found.values())

    # Requests

    async def get_prompt(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        """`prompts/get` at the server that has the prompt."""
        source, name = self._find_prompt(client.principal, params.get("name"))
        sent = _own_params(params, name=name)
        return require_object(await source.relay("prompts/get", sent, exchange, name=name))

    async def read_resource(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        """`resources/read` at the server that has the resource; the URIs in the answer are those that were asked."""
        source, uri = self.find_resource(client, params.get("uri"))
        raw = require_object(await source.relay("resources/read", _own_params(params, uri=uri), exchange, name=uri))
        prefix = uri_prefix(source)
        if not prefix or params.get("uri") == uri:
            return raw
        answer = cast("JsonObject", orjson.loads(raw))
        contents = answer.get("contents")
        if isinstance(contents, list):
            answer["contents"] = [
                {**item, "uri": f"{prefix}{item['uri']}"} if isinstance(item, dict) and "uri" in item else item
                for item in contents
            ]
        return orjson.dumps(answer)

    async def complete(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        """`completion/complete` at the server that the reference is about."""
        reference = params.get("ref")
        if not isinstance(reference, dict):
            raise RpcError(INVALID_PARAMS, "`ref` must be a reference to a prompt or a resource.")
        if reference.get("type") == "ref/prompt":
            source, name = self._find_prompt(client.principal, reference.get("name"))
            target: JsonObject = {**reference, "name": name}
        else:
            source, uri = self.find_resource(client, reference.get("uri"))
            target = {**reference, "uri": uri}
        return require_object(await source.relay("completion/complete", _own_params(params, ref=target), exchange))

    async def subscribe(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        """`resources/subscribe`: the client hears about changes of this resource. The server is asked by the first."""
        source, uri = self.find_resource(client, params.get("uri"))
        key = (source.name, uri)
        if client not in self._followers.get(key, ()) and len(client.subscribed) >= SUBSCRIPTIONS_PER_CLIENT:
            raise RpcError(INVALID_PARAMS, f"A client follows at most {SUBSCRIPTIONS_PER_CLIENT} resources.")
        # Before the server answers: whoever leaves meanwhile is not the last one.
        self._followers.setdefault(key, set()).add(client)
        try:
            result = await source.follow(uri, exchange)
        except BaseException:
            self._leave(source, uri, client)
            raise
        if client.is_gone:
            self._leave(source, uri, client)
            return result
        client.subscribed.add(f"{uri_prefix(source)}{uri}")
        return result

    async def unsubscribe(self, client: Client, params: JsonObject, exchange: ClientExchange) -> bytes:
        """`resources/unsubscribe`: the client hears no more. The server is told when nobody is left."""
        source, uri = self.find_resource(client, params.get("uri"))
        client.subscribed.discard(f"{uri_prefix(source)}{uri}")
        self._leave(source, uri, client)
        return b"{}"

    def left(self, client: Client) -> None:
        """A client is gone, and whatever it followed is followed by one less, now or when its server answers."""
        client.is_gone = True
        if client.subscribed:
            client.subscribed.clear()
            sources = {source.name: source for source in self._crib.sources if isinstance(source, McpSource)}
            for name, uri in [key for key, followers in self._followers.items() if client in followers]:
                self._leave(sources.get(name), uri, client, name=name)

    def _leave(self, source: McpSource | None, uri: str, client: Client, *, name: str = "") -> None:
        key = (source.name if source is not None else name, uri)
        followers = self._followers.get(key, set())
        followers.discard(client)
        if not followers:
            self._followers.pop(key, None)
            if source is not None:
                source.unfollow(uri)

    # Inside

    def _find_prompt(self, principal: Principal, name: Json) -> tuple[McpSource, str]:
        for source in self.servers(principal):
            for prompt in source.prompts:
                if (
                    isinstance(name, str)
                    and _prompt_name(source, prompt) == name
                    and self._crib.intake.lets_through(prompt)
                ):
                    return source, str(prompt["name"])
        raise RpcError(INVALID_PARAMS, "There is no prompt of that name.")

    def find_resource(self, client: Client, uri: Json) -> tuple[McpSource, str]:
        """The server that has a resource, and its URI there. Raises `RpcError`."""
        if not isinstance(uri, str) or not uri:
            raise RpcError(INVALID_PARAMS, "`uri` must be the URI of a resource.")
        servers = list(self.servers(client.principal))
        for source in servers:
            prefix = uri_prefix(source)
            if prefix and uri.lower().startswith(prefix.lower()):
                return source, uri[len(prefix) :]
        owners = [source for source in servers if _lists(source, uri)]
        if len(owners) == 1:
            return owners[0], uri
        bare = [source for source in servers if not uri_prefix(source) and source.resources]
        if not owners and len(bare) == 1:
            return bare[0], uri
        code = INVALID_PARAMS if client.era == "modern" else _RESOURCE_NOT_FOUND_LEGACY
        raise RpcError(code, "There is no resource of that URI.", {"uri": uri[:500]})


def uri_prefix(source: McpSource) -> str:
    """What the URIs of a server's resources start with: its prefix, spelled as a scheme may be."""
    if not source.prefix:
        return ""
    scheme = source.prefix.replace("_", ".")
    return f"{scheme}+" if scheme[0].isalpha() else f"x.{scheme}+"


def _lists(source: McpSource, uri: str) -> bool:
    if any(item.get("uri") == uri for item in source.resources):
        return True
    return any(
        isinstance(template := item.get("uriTemplate"), str) and _matches(template, uri) for item in source.templates
    )


def _matches(template: str, uri: str) -> bool:
    """Whether a URI can come from a template: literal parts in order, with something between them."""
    parts = _VARIABLE.split(template)
    if not uri.startswith(parts[0]) or not uri.endswith(parts[-1]) or len(parts) == 1:
        return uri == template
    at = 0
    for part in parts:
        found = uri.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _prompt_name(source: McpSource, prompt: JsonObject) -> str | None:
    name = prompt.get("name")
    try:
        return exposed_name(source.prefix, name) if isinstance(name, str) else None
    except DefinitionError:
        return None


def _own_params(params: JsonObject, **changed: Json) -> JsonObject:
    """The parameters that a server gets: the known ones, and nothing else that a client may have sent (A11)."""
    known = ("arguments", "argument", "context")
    return {**{key: params[key] for key in known if key in params}, **changed}
