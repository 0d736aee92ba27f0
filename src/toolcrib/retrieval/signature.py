"""Compact typed signatures: enough to call most tools without asking for their schema (X3).

`create_issue(owner: str, repo: str, title: str, state?: "open"|"closed")`. Required parameters come first and are
never left out; optional ones give way when there are too many. `exact` says whether the signature tells everything
that the schema does, descriptions aside.
"""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from toolcrib.definitions import Json, JsonObject, Tool
from toolcrib.kernel import kernel
from toolcrib.limits import SIGNATURE_MAX_CHARS

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
    "object": "object",
    "array": "list",
}
_PLAIN = {kind: name for kind, name in _TYPES.items() if kind not in {"object", "array"}}
"""Types with nothing inside."""
_CHOICES = frozenset({"const", "enum", "anyOf", "oneOf"})
"""Keywords that say more than the type does."""
_SHOWN_ENUM = 8
_MAX_DEPTH = 3

_ANNOTATIONS = frozenset({
    "type", "description", "title", "default", "examples", "example", "properties", "required", "items", "enum",
    "const", "additionalProperties", "$schema", "anyOf", "oneOf", "deprecated", "readOnly", "nullable", "format",
})  # fmt: skip
"""Keywords that the signature says or that constrain nothing; any other makes it inexact."""
_SIMPLE = _ANNOTATIONS - _CHOICES
"""Keywords beside which the type says everything."""


class Signature(NamedTuple):
    """One line, and whether it tells the whole schema."""

    text: str
    exact: bool


class _Writer:
    def __init__(self) -> None:
        self.exact = True

    def type_of(self, schema: Json, depth: int = 0) -> str:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            self.exact = self.exact and schema in (True, None)
            return "any"
        kind = schema.get("type")
        plain = _PLAIN.get(kind) if isinstance(kind, str) else None
        if not _ANNOTATIONS.issuperset(schema):
            self.exact = False
        if plain and _CHOICES.isdisjoint(schema):
            return plain
        if "const" in schema:
            return _literal(schema["const"])
        values = schema.get("enum")
        if isinstance(values, list):
            return self._enum(values)
        for key in ("anyOf", "oneOf"):
            options = schema.get(key)
            if isinstance(options, list):
                return "|".join(dict.fromkeys(self.type_of(option, depth + 1) for option in options))
        if isinstance(kind, list):
            return "|".join(self._plain(str(name), schema, depth) for name in kind)
        return self._plain(kind if isinstance(kind, str) else "", schema, depth)

    def _plain(self, kind: str, schema: Mapping[str, Json], depth: int) -> str:
        if kind == "array":
            items = schema.get("items")
            return "list" if items is None else f"list[{self.type_of(items, depth + 1)}]"
        if kind == "object" or (not kind and "properties" in schema):
            return self._object(schema, depth)
        if not kind and "$ref" not in schema and not set(schema) - {"description", "title", "default"}:
            return "any"
        if kind not in _TYPES:
            self.exact = False
        return _TYPES.get(kind, "any")

    def _object(self, schema: Mapping[str, Json], depth: int) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            if isinstance(schema.get("additionalProperties"), dict):
                self.exact = False
            return "object"
        if depth >= 2 or len(properties) > _SHOWN_ENUM:
            self.exact = False
            return "object"
        required = _required(schema)
        fields = (
            f"{name}{'' if name in required else '?'}: {self.type_of(value, depth + 1)}"
            for name, value in properties.items()
        )
        return "{" + ", ".join(fields) + "}"

    def _enum(self, values: list[Json]) -> str:
        shown = [_literal(value) for value in values[:_SHOWN_ENUM]]
        if len(values) > _SHOWN_ENUM:
            self.exact = False
            shown.append("…")
        return "|".join(shown)


KNOWN_WORDS = kernel.words(word.encode() for word in _ANNOTATIONS) if kernel is not None else None


def build_signature(tool: Tool) -> Signature:
    """The signature of a tool, under its source's own name: the exposed one stands beside it in every answer."""
    if kernel is not None and KNOWN_WORDS is not None:
        # Most schemas can be told from their bytes.
        told = kernel.signature(tool.leaf, tool.schema, KNOWN_WORDS, SIGNATURE_MAX_CHARS)
        if told is not None:
            return Signature(*told)
    return write_signature(tool.leaf, tool.parameters)


def write_signature(name: str, schema: JsonObject) -> Signature:
    """The signature of arguments with this schema: a function of the two alone."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return Signature(f"{name}()", _ANNOTATIONS.issuperset(schema))
    required = _required(schema)
    writer = _Writer()
    if not _ANNOTATIONS.issuperset(schema) or not required <= properties.keys():
        writer.exact = False
    head: list[str] = []
    optional: list[tuple[str, Json]] = []
    for key, value in properties.items():
        if key in required:
            head.append(f"{key}: {_simple_type(value) or writer.type_of(value)}")
        else:
            optional.append((key, value))
    head += [f"{key}: any" for key in sorted(required.difference(properties))]
    room = SIGNATURE_MAX_CHARS - sum(map(len, head)) - 2 * len(head)
    for count, (key, value) in enumerate(optional):
        part = f"{key}?: {_simple_type(value) or writer.type_of(value)}"
        room -= len(part) + 2
        if room < 0:
            head.append(f"… {len(optional) - count} more optional")
            writer.exact = False
            break
        head.append(part)
    return Signature(f"{name}({', '.join(head)})", writer.exact)


def _simple_type(schema: Json) -> str | None:
    """The type of a parameter of which nothing else is to be said: most of them."""
    if isinstance(schema, dict) and _SIMPLE.issuperset(schema):
        kind = schema.get("type")
        return _PLAIN.get(kind) if isinstance(kind, str) else None
    return None


def _required(schema: Mapping[str, Json]) -> set[str]:
    names = schema.get("required")
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _literal(value: Json) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"


def compact_parameters(tool: Tool) -> JsonObject:
    """The whole schema without what says nothing to a model: `$schema` and generated titles."""
    return compact_schema(tool.parameters)


def compact_schema(schema: JsonObject) -> JsonObject:
    """The schema, after it lost what says nothing to a model."""
    schema.pop("$schema", None)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, value in properties.items():
            if isinstance(value, dict) and _is_generated_title(name, value.get("title")):
                value.pop("title")
    return schema


def _is_generated_title(name: str, title: Json) -> bool:
    return isinstance(title, str) and title.casefold().replace(" ", "") == name.casefold().replace("_", "")
