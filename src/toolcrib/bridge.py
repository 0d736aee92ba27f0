"""The bridge is a syntax: three schemas, and one place that reads what the model wrote in it.

`unwrap` turns a model's call into what it asks for. A call by a tool's own name is that call; `tool_call` is the call
inside it; `tool_search` and `tool_describe` are questions. From here on nothing knows or cares by which way a call
came in (S5, X13), and what was checked is what runs, because nobody reads the model's JSON a second time.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from math import isfinite
from typing import cast

import orjson
from msgspec import Struct

from toolcrib.definitions import (
    BRIDGE_NAMES,
    Json,
    JsonObject,
    ModelCall,
    Route,
    Tool,
    ToolName,
    ToolsetName,
    Traits,
    fingerprint_of,
    json_chars,
)  # fmt: skip
from toolcrib.dialects.base import kind_of
from toolcrib.errors import InvalidCall
from toolcrib.intake.naming import fold, is_reserved
from toolcrib.limits import (
    ARGUMENTS_MAX_BYTES,
    ARGUMENTS_MAX_DEPTH,
    NAMES_PER_DESCRIBE,
    QUERIES_PER_SEARCH,
    QUERY_READ_CHARS,
)
from toolcrib.retrieval.pasted import needs_without_data

TOOL_SEARCH, TOOL_DESCRIBE, TOOL_CALL = BRIDGE_NAMES
BRIDGE_TOOLSET = ToolsetName("toolcrib")

_SEARCH_TEXT = (
    "Find tools that are not in this list, by what you need done; several needs: one per line. "
    "Hits show how to call them. Search before you say that something cannot be done; "
    "only an empty answer means no such tool."
)
LISTING_INTRO = " If you see the name below, skip the search. Prefix + name:"
_DESCRIBE_TEXT = "Full schema of a found tool, if its signature is not enough."
_CALL_TEXT = "Run a found or named tool, as if you had called it directly. Never for tools of this list."


_LISTINGS_KEPT = 16
_CALL_KEYS = frozenset({"name", "arguments"})
_WHOLE = re.compile(r"-?\d+")


class Invocation(Struct, frozen=True, kw_only=True):
    """The model wants a tool to run."""

    name: str
    arguments: JsonObject
    route: Route
    encoded: bytes | None = None
    """The arguments as JSON, where somebody has written them already."""


class Search(Struct, frozen=True, kw_only=True):
    """The model asks which tools there are."""

    queries: tuple[str, ...]
    limit: int | None


class Describe(Struct, frozen=True, kw_only=True):
    """The model asks what tools take."""

    names: tuple[str, ...]


Request = Invocation | Search | Describe


def bridge_tools(listing: str = "") -> tuple[Tool, ...]:
    """The three tools that stand for all deferred ones, in their fixed order (S2); the listing rides in the first."""
    bare = _bare_tools()
    return (_listing_tool(listing), *bare[1:]) if listing else bare


@lru_cache(_LISTINGS_KEPT)
def _listing_tool(listing: str) -> Tool:
    """Most changes of a catalog change nothing that is listed."""
    return _tool(_definitions(listing)[0])


@cache
def _bare_tools() -> tuple[Tool, ...]:
    """Without a listing they are always the same."""
    return tuple(_tool(definition) for definition in _definitions(""))


def _tool(definition: JsonObject) -> Tool:
    function = cast("dict[str, str]", definition["function"])
    encoded = orjson.dumps(definition)
    name = function["name"]
    return Tool(
        name=ToolName(name),
        toolset=BRIDGE_TOOLSET,
        origin="host",
        leaf=name,
        description=function["description"],
        schema=orjson.dumps(function["parameters"]),
        raw=encoded,
        dialect="openai_chat",
        traits=_traits(name),
        aliases=(),
        chars=json_chars(encoded),
        seal=fingerprint_of(encoded),
    )


def _traits(name: str) -> Traits:
    """Honest ones: asking changes nothing and stays here; what `tool_call` does depends on the tool inside it."""
    if name == TOOL_CALL:
        return Traits(read_only=False)
    return Traits(read_only=True, open_world=False, parallel=True)


def _definitions(listing: str) -> tuple[JsonObject, ...]:
    search = _SEARCH_TEXT + (LISTING_INTRO + listing if listing else "")
    return (
        _function(TOOL_SEARCH, search, {"query": {"type": "string"}, "limit": {"type": "integer"}}, ["query"]),
        _function(TOOL_DESCRIBE, _DESCRIBE_TEXT, {"name": {"type": "string"}}, ["name"]),
        _function(
            TOOL_CALL,
            _CALL_TEXT,
            {"name": {"type": "string"}, "arguments": {"type": "object"}},
            ["name", "arguments"],
        ),
    )


def _function(name: str, description: str, properties: JsonObject, required: list[str]) -> JsonObject:
    parameters: JsonObject = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def unwrap(call: ModelCall, *, route: Route = "direct") -> Request:
    """What the model asks for. Raises `InvalidCall` with what to send instead."""
    exact = call.name in BRIDGE_NAMES
    if not exact and not is_reserved(call.name):
        return Invocation(name=call.name, arguments=read_arguments(call.arguments), route=route)
    kind = call.name if exact else next((name for name in BRIDGE_NAMES if fold(name) == fold(call.name)), None)
    if kind == TOOL_SEARCH:
        return read_search(_read_object(call.arguments, TOOL_SEARCH, bare="query"))
    if kind == TOOL_DESCRIBE:
        return _read_describe(_read_object(call.arguments, TOOL_DESCRIBE, bare="name"))
    if kind == TOOL_CALL:
        return _read_call(_read_object(call.arguments, TOOL_CALL))
    raise InvalidCall(
        f"There is no tool of that name. Did you mean {' or '.join(f'`{name}`' for name in BRIDGE_NAMES)}?"
    )


def plain_invocation(name: str, arguments: Json) -> Invocation | None:
    """What `unwrap` makes of a call that was read from JSON and has the usual shape; nothing for any other.

    What the name of the tool may be is not asked: this is for names that `unwrap` has let pass before.
    """
    route: Route = "direct"
    if name == TOOL_CALL:
        if not isinstance(arguments, dict) or len(arguments) != 2:
            return None
        inner, arguments, route = arguments.get("name"), arguments.get("arguments"), "bridge"
        if not isinstance(inner, str):
            return None
        name = inner
    if not isinstance(arguments, dict):
        return None
    try:
        encoded = orjson.dumps(arguments)
    except TypeError:  # nested deeper than can be written
        return None
    if len(encoded) > ARGUMENTS_MAX_BYTES or encoded.count(b"{") + encoded.count(b"[") > ARGUMENTS_MAX_DEPTH:
        return None
    return Invocation(name=name, arguments=arguments, route=route, encoded=encoded)


def read_arguments(value: Json) -> JsonObject:
    """Arguments as an object: given as one, as a JSON string of one, or left out. Raises `InvalidCall`."""
    parsed = isinstance(value, str)
    if isinstance(value, str):
        value = _parse(value) if value.strip() else None
    if value is None:
        return {}
    if not isinstance(value, dict) and not isinstance(value, Mapping):
        raise InvalidCall(f'`arguments` must be a JSON object such as {{"key": "value"}}, not {kind_of(value)}.')
    arguments = dict(value)
    encoded = _require_bounded(arguments)
    # What the caller keeps, such as the model's own entry in a transcript, stays as it is whatever becomes of the call.
    return arguments if parsed else cast("JsonObject", orjson.loads(encoded))


def read_search(raw: JsonObject) -> Search:
    """The search that the arguments of `tool_search` ask for. Raises `InvalidCall`."""
    _require_keys(raw, TOOL_SEARCH, {"query", "queries", "limit"})
    value = raw.get("query", raw.get("queries"))
    return search_for(value if isinstance(value, list) else [value], raw.get("limit"))


def search_for(items: Sequence[Json], limit: Json = None) -> Search:
    """The search for these needs, each on a line of its own. Raises `InvalidCall`."""
    lines: list[str] = []
    for item in items:
        if isinstance(item, str):
            lines += item.splitlines()
    # A lone surrogate is no character, and no answer could repeat it.
    needs = dict.fromkeys(line.strip()[:QUERY_READ_CHARS].encode("utf-8", "replace").decode() for line in lines)
    needs.pop("", None)
    # A picture on lines of its own is no need.
    queries = needs_without_data(needs)
    if not queries:
        raise InvalidCall("`query` is blank: say in a few words what you need done.")
    if len(queries) > QUERIES_PER_SEARCH:
        raise InvalidCall(f"`query` holds {len(queries)} needs; send at most {QUERIES_PER_SEARCH} at once.")
    return Search(queries=queries, limit=None if limit is None else _read_limit(limit))


def _read_limit(value: Json) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value.strip()[:10])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidCall(f"`limit` must be a whole number, not {kind_of(value)}.")
    return value


def _read_describe(raw: JsonObject) -> Describe:
    _require_keys(raw, TOOL_DESCRIBE, {"name", "names"})
    value = raw.get("name", raw.get("names"))
    items = value if isinstance(value, list) else [value]
    names = tuple(dict.fromkeys(item.strip() for item in items if isinstance(item, str) and item.strip()))
    if not names:
        raise InvalidCall("`name` is blank: give the name of a tool that `tool_search` found.")
    if len(names) > NAMES_PER_DESCRIBE:
        raise InvalidCall(f"`name` holds {len(names)} names; send at most {NAMES_PER_DESCRIBE} at once.")
    return Describe(names=names)


def _read_call(raw: JsonObject) -> Invocation:
    _require_keys(raw, TOOL_CALL, _CALL_KEYS)
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InvalidCall('`name` is missing: send {"name": "<tool>", "arguments": {...}}.')
    name = name.strip()
    if is_reserved(name):
        raise InvalidCall(
            f"`{TOOL_CALL}` cannot run a bridge tool. Call `{TOOL_SEARCH}` or `{TOOL_DESCRIBE}` by its own name."
        )
    return Invocation(name=name, arguments=read_arguments(raw.get("arguments")), route="bridge")


def _read_object(value: Json, name: str, *, bare: str | None = None) -> JsonObject:
    """The bridge's own arguments; a bare string stands for the one that matters."""
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            value = _parse(value)
        except InvalidCall:
            if bare is None:
                raise
            return {bare: value}
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if bare is not None and isinstance(value, str | list):
        return {bare: value}
    raise InvalidCall(f"The arguments of `{name}` must be a JSON object, not {kind_of(value)}.")


def _require_keys(raw: JsonObject, name: str, known: AbstractSet[str]) -> None:
    """Exact keys only: what was checked under one spelling must not run under another."""
    if not raw.keys() <= known:
        unknown = sorted(map(str, raw.keys() - known))  # a caller in Python may have sent others than strings
        keys = " and ".join(f"`{key}`" for key in sorted(known - {"queries", "names"}))
        shown = ", ".join(f"`{key[:40]}`" for key in unknown[:3])
        hint = " Put the tool's own arguments inside `arguments`." if name == TOOL_CALL else ""
        raise InvalidCall(f"`{name}` takes {keys}, not {shown}.{hint}")


def _parse(text: str) -> Json:
    if len(text) > ARGUMENTS_MAX_BYTES:
        raise InvalidCall(f"The arguments have {len(text)} characters; at most {ARGUMENTS_MAX_BYTES} are taken.")
    try:
        return cast("Json", orjson.loads(text))
    except (orjson.JSONDecodeError, UnicodeEncodeError) as error:
        reason = str(error).partition(":")[0]
        raise InvalidCall(f"The arguments are not valid JSON ({reason}): send a JSON object.") from None


def _require_bounded(arguments: JsonObject) -> bytes:
    """The arguments as JSON. Raises `InvalidCall` where they are too large, too deep or no JSON."""
    try:
        encoded = orjson.dumps(arguments)
    except (TypeError, ValueError):
        raise InvalidCall("The arguments hold a value that JSON cannot carry: send plain JSON.") from None
    if len(encoded) > ARGUMENTS_MAX_BYTES:
        raise InvalidCall(f"The arguments have {len(encoded)} bytes; at most {ARGUMENTS_MAX_BYTES} are taken.")
    # NaN is encoded as null, and few brackets cannot nest deeply: most arguments need no walk.
    if b"null" in encoded or (
        len(encoded) > 2 * ARGUMENTS_MAX_DEPTH and encoded.count(b"{") + encoded.count(b"[") > ARGUMENTS_MAX_DEPTH
    ):
        _walk(arguments)
    return encoded


def _walk(arguments: JsonObject) -> None:
    stack: list[tuple[object, int]] = [(arguments, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > ARGUMENTS_MAX_DEPTH:
            raise InvalidCall(f"The arguments are nested more than {ARGUMENTS_MAX_DEPTH} levels deep.")
        if isinstance(value, float) and not isfinite(value):
            raise InvalidCall("The arguments hold NaN or Infinity, which JSON does not have.")
        if isinstance(value, dict):
            stack.extend((item, depth + 1) for item in cast("JsonObject", value).values())
        elif isinstance(value, list | tuple):
            stack.extend((item, depth + 1) for item in cast("list[object]", value))
