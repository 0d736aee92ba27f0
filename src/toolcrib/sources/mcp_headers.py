"""`x-mcp-header`: arguments that travel in a header too, so that those in between can see them (X18).

An annotation counts only on a property that can be reached through `properties` alone, of a plain type, with a name
that is a header token and occurs once. A tool with any other annotation is one that clients must not use.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import orjson
from msgspec import Struct

from toolcrib.definitions import Json, JsonObject
from toolcrib.sources.json_rpc import HEADER_MISMATCH, RpcError

KEY = "x-mcp-header"
PREFIX = "mcp-param-"
_KEY = KEY.encode()

_WRAPPED = re.compile(r"=\?base64\?(?P<payload>.*)\?=")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"-?[0-9]+(\.0+)?")
_SINGLE = frozenset({
    "items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties",
    "not", "if", "then", "else", "contentSchema",
})  # fmt: skip
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


def encode_value(value: str) -> str:
    """A value as a header may carry it: plain where that is safe, wrapped where it is not (F9)."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def decode_value(value: str | None) -> str | None:
    """What `encode_value` was given; nothing for what it cannot have written."""
    match = _WRAPPED.fullmatch(value) if value is not None else None
    if match is None:
        return value
    payload = match["payload"]
    try:
        decoded = base64.b64decode(payload, validate=True)
        text = decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(decoded).decode() == payload else None


def find_problem(definition: JsonObject) -> str | None:
    """Why a definition's annotations cannot be used, if they cannot."""
    seen: set[str] = set()
    for path, schema in _positions(definition.get("inputSchema")):
        if KEY not in schema:
            continue
        token = schema[KEY]
        if not path:
            return f"`{KEY}` stands where no argument can be"
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            return f"`{KEY}` of `{'.'.join(path)}` is no header name"
        if schema.get("type") not in ("string", "integer", "boolean"):
            return f"`{KEY}` of `{'.'.join(path)}` is on neither text, integer nor boolean"
        if token.lower() in seen:
            return f"`{KEY}` {token} occurs twice"
        seen.add(token.lower())
    return None


def has_mirrors(schema: bytes) -> bool:
    """Whether a schema may say of an argument that a header repeats it."""
    return _KEY in schema


def param_headers(schema: bytes, arguments: JsonObject) -> dict[str, str]:
    """The headers that mirror a call's arguments."""
    if not has_mirrors(schema):
        return {}
    headers: dict[str, str] = {}
    for path, position in _positions(orjson.loads(schema)):
        token = position.get(KEY)
        text = _render(_value_at(arguments, path)) if path and isinstance(token, str) else None
        if text is not None:
            headers[f"{PREFIX}{cast('str', token).lower()}"] = encode_value(text)
    return headers


class Mirror(Struct, frozen=True):
    """One argument that a header repeats."""

    path: tuple[str, ...]
    token: str
    kind: Json
    """The type that the schema gives the argument."""

    @property
    def header(self) -> str:
        """The name of the header, as a request is read."""
        return f"{PREFIX}{self.token.lower()}"


def mirrors_of(schema: JsonObject) -> tuple[Mirror, ...]:
    """The arguments that headers repeat; none if the annotations cannot be used."""
    if find_problem({"inputSchema": schema}) is not None:
        return ()
    return tuple(
        Mirror(path, token, position.get("type"))
        for path, position in _positions(schema)
        if path and isinstance(token := position.get(KEY), str)
    )


def require_matching(mirrors: Iterable[Mirror], arguments: JsonObject, headers: Mapping[str, str]) -> None:
    """Raises `RpcError` if a header says something else than the argument that it mirrors (A18)."""
    for mirror in mirrors:
        raw = headers.get(mirror.header)
        value = _value_at(arguments, mirror.path)
        text = _render(value)
        if raw is None and text is None:
            continue
        said = decode_value(raw)
        if said is None or text is None or not _same(mirror.kind, value, text, said):
            where = ".".join(mirror.path)
            raise RpcError(
                HEADER_MISMATCH, f"The header Mcp-Param-{mirror.token} does not say what the argument `{where}` says."
            )


def _same(kind: Json, value: Json, text: str, said: str) -> bool:
    if kind == "integer" and isinstance(value, int | float) and not isinstance(value, bool):
        if not _DECIMAL.fullmatch(said):
            return False
        return float(value).is_integer() and len(said) < 400 and int(said.partition(".")[0]) == int(value)
    return said == text


def _positions(root: Json) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Every schema inside a schema, with the way to it where that is through `properties` alone."""
    stack: list[tuple[tuple[str, ...] | None, Json]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, Mapping):
            continue
        yield path, cast("JsonObject", node)
        for key, value in node.items():
            if key == "properties" and isinstance(value, Mapping):
                stack.extend((None if path is None else (*path, name), inner) for name, inner in value.items())
            elif key in _SINGLE:
                stack.append((None, value))
            elif key in _SEVERAL and isinstance(value, list):
                stack.extend((None, inner) for inner in value)
            elif key in _NAMED and isinstance(value, Mapping):
                stack.extend((None, inner) for inner in value.values())


def _value_at(arguments: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(key)
    return arguments


def _render(value: Json) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None
