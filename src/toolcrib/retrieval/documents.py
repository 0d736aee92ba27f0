"""From tools to documents: which words of a definition can be searched, and how many of them.

Top-level parameter names are a field of their own. Everything below them (descriptions, nested names, enum values) is
one bounded text, so that a tool with a hundred parameters does not drown its neighbours. That text is not kept: the
schema is at hand, and reading the few of its keywords that matter costs less than a search.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
import orjson

from toolcrib.definitions import Json, Tool, Toolset
from toolcrib.kernel import kernel
from toolcrib.retrieval.base import Document, Inside

NESTED_MAX_CHARS = 2_000
_NESTED_MAX_DEPTH = 6
_ENUM_MAX_VALUES = 20


class ToolDocument(msgspec.Struct, frozen=True, gc=False):
    """The document of one tool: its own words are the tool's, so it takes next to no memory."""

    key: str
    """The exposed name."""
    tool: Tool
    toolset: str
    aliases: tuple[str, ...]
    digest: str

    @property
    def leaf(self) -> str:
        """The source's own name."""
        return self.tool.leaf

    @property
    def description(self) -> str:
        """What the source says."""
        return self.tool.description

    def inside(self) -> Inside:
        """The words of the schema, read anew."""
        return read_inside(self.tool.schema)


def documents_of(
    toolset: Toolset, aliases: Mapping[str, tuple[str, ...]] | None = None, known: Iterable[Document] = ()
) -> tuple[Document, ...]:
    """The documents of a toolset. `aliases` are the operator's words, by tool or toolset name.

    A document that is `known` already is handed out again, so that whoever compares by identity sees no change.
    """
    made = {document.digest: document for document in known}
    extra = aliases or {}
    label = toolset.name.removeprefix("mcp-")
    shared = extra.get(toolset.name, ())
    documents: list[Document] = []
    for tool in toolset.tools:
        words = (*tool.aliases, *extra.get(tool.name, extra.get(tool.leaf, ())), *shared) if extra else tool.aliases
        digest = f"{tool.fingerprint}:{'|'.join(words)}" if words else tool.fingerprint
        documents.append(made.get(digest) or ToolDocument(tool.name, tool, label, words, digest))
    return tuple(documents)


class _Schema(msgspec.Struct, gc=False):
    """The keywords of a JSON Schema that hold words; a decoder passes over all others."""

    properties: "dict[str, _Schema | bool] | None" = None
    description: str | None = None
    enum: list[Any] | None = None
    items: "_Schema | bool | list[Any] | None" = None
    anyOf: "list[_Schema | bool] | None" = None
    oneOf: "list[_Schema | bool] | None" = None
    allOf: "list[_Schema | bool] | None" = None


_DECODER = msgspec.json.Decoder(_Schema)


def read_inside(schema: bytes) -> Inside:
    """The words of an encoded schema."""
    if kernel is not None and (found := kernel.inside(schema, _NESTED_MAX_DEPTH, _ENUM_MAX_VALUES)) is not None:
        return _joined(*found)
    try:
        return _inside(_DECODER.decode(schema))
    except msgspec.ValidationError:  # some keyword holds what it should not: the others still count
        return inside_of(orjson.loads(schema))


def inside_of(schema: Json) -> Inside:
    """The words of a schema, whatever is in it."""
    return _inside(_lenient(schema, _NESTED_MAX_DEPTH + 1))


def _lenient(value: object, levels: int) -> _Schema:
    """As much of a schema as can be used."""
    if not isinstance(value, Mapping) or not levels:
        return _Schema()
    given = cast("Mapping[str, Json]", value)
    properties, description, values = given.get("properties"), given.get("description"), given.get("enum")

    def options(keyword: str) -> "list[_Schema | bool]":
        found = given.get(keyword)
        return [_lenient(option, levels - 1) for option in found] if isinstance(found, list) else []

    return _Schema(
        properties={str(key): _lenient(inner, levels - 1) for key, inner in properties.items()}
        if isinstance(properties, Mapping)
        else None,
        description=description if isinstance(description, str) else None,
        enum=values if isinstance(values, list) else None,
        items=_lenient(given.get("items"), levels - 1),
        anyOf=options("anyOf"),
        oneOf=options("oneOf"),
        allOf=options("allOf"),
    )


def _inside(schema: _Schema) -> Inside:
    properties = schema.properties
    if not properties:
        return Inside()
    return _joined(properties, _nested_words(list(properties.values())))


def _joined(parameters: Iterable[str], words: list[str]) -> Inside:
    if sum(map(len, words)) + len(words) > NESTED_MAX_CHARS:
        words = _bounded(words)
    return Inside(tuple(parameters), " ".join(words))


def _bounded(words: Iterable[str]) -> list[str]:
    kept: list[str] = []
    room = NESTED_MAX_CHARS
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return kept


def _nested_words(level: "list[_Schema | bool]") -> list[str]:
    """Descriptions of the parameters first, then what is inside them, level by level."""
    words: list[str] = []
    for _ in range(_NESTED_MAX_DEPTH):
        below: list[_Schema | bool] = []
        for schema in level:
            if not isinstance(schema, _Schema):
                continue
            if schema.description is not None:
                words.append(schema.description)
            if schema.enum:
                words += (value for value in schema.enum[:_ENUM_MAX_VALUES] if isinstance(value, str))
            if schema.properties:
                words += schema.properties
                below += schema.properties.values()
            if isinstance(schema.items, _Schema):
                below.append(schema.items)
            for options in (schema.anyOf, schema.oneOf, schema.allOf):
                if options:
                    below += options
        if not below:
            break
        level = below
    return words
