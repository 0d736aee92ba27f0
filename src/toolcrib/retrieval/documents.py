"""From tools to documents: which words of a definition can be searched, and how many of them.

Top-level parameter names are a field of their own. Everything below them (descriptions, nested names, enum values) is
one bounded text, so that a tool with a hundred parameters does not drown its neighbours. That text is not kept: the
schema is at hand, and reading the few of its keywords that matter costs less than a search.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
import orjson

from toolcrib.definitions import Json, Tool, Toolset
from toolcrib.kernel import kernel
from toolcrib.retrieval.base import Described, Document, Inside

NESTED_MAX_CHARS = 2_000
NESTED_MAX_DEPTH = 6
ENUM_MAX_VALUES = 20


class ToolDocument(msgspec.Struct, frozen=True, gc=False):
    """The document of one tool: its own words are the tool's, so it takes next to no memory."""

    key: str
    """The exposed name."""
    tool: Tool
    toolset: str
    aliases: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of the tool and the aliases."""
        return digest_of(self.tool, self.aliases)

    @property
    def leaf(self) -> str:
        """The source's own name."""
        return self.tool.leaf

    @property
    def description(self) -> str:
        """What the source says."""
        return self.tool.description

    @property
    def described(self) -> Described:
        """All of its words, those of the schema still in it."""
        tool = self.tool
        return self.key, tool.leaf, self.toolset, tool.description, tool.schema, self.aliases

    def inside(self) -> Inside:
        """The words of the schema, read anew."""
        return read_inside(self.tool.schema)


def digest_of(tool: Tool, aliases: tuple[str, ...]) -> str:
    """The digest of the document of a tool."""
    return f"{tool.fingerprint}:{'|'.join(aliases)}" if aliases else tool.fingerprint


def documents_of(
    toolset: Toolset, aliases: Mapping[str, tuple[str, ...]] | None = None, known: Sequence[Document] = ()
) -> tuple[Document, ...]:
    """The documents of a toolset. `aliases` are the operator's words, by full or short tool name, or toolset name.

    A document that is `known` already is handed out again, so that whoever compares by identity sees no change.
    """
    extra = aliases or {}
    label = toolset.name.removeprefix("mcp-")
    shared = extra.get(toolset.name, ())
    if not extra and not known:
        return tuple([ToolDocument(tool.name, tool, label, tool.aliases) for tool in toolset.tools])
    made = _Made(toolset, known)
    documents: list[Document] = []
    for tool in toolset.tools:
        words = tool.aliases
        if extra:
            named = [word for name in dict.fromkeys((tool.name, tool.leaf)) for word in extra.get(name, ())]
            words = tuple(dict.fromkeys((*words, *named, *shared)))
        documents.append(made.of(tool, words) or ToolDocument(tool.name, tool, label, words))
    return tuple(documents)


def described(documents: Sequence[Document]) -> list[Described]:
    """All words of each document."""
    if set(map(type, documents)) != {ToolDocument}:
        return [document.described for document in documents]
    # The same for many of one kind, at half the price.
    made = cast("Sequence[ToolDocument]", documents)
    return [
        (each.key, (tool := each.tool).leaf, each.toolset, tool.description, tool.schema, each.aliases) for each in made
    ]


class _Made:
    """Documents that are known already: by tool, or by content where the tool is another object."""

    __slots__ = ("_by_digest", "_by_tool")

    def __init__(self, toolset: Toolset, known: Iterable[Document]) -> None:
        self._by_tool = {id(document.tool): document for document in known if isinstance(document, ToolDocument)}
        left = self._by_tool.keys() - map(id, toolset.tools) if self._by_tool else ()
        self._by_digest = {document.digest: document for document in map(self._by_tool.__getitem__, left)}

    def of(self, tool: Tool, aliases: tuple[str, ...]) -> ToolDocument | None:
        document = self._by_tool.get(id(tool))
        if document is None and self._by_digest:
            document = self._by_digest.get(digest_of(tool, aliases))
        return document if document is not None and document.aliases == aliases else None


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
    if kernel is not None and (found := kernel.inside(schema, NESTED_MAX_DEPTH, ENUM_MAX_VALUES)) is not None:
        return _joined(*found)
    try:
        return _inside(_DECODER.decode(schema))
    except msgspec.ValidationError:  # some keyword holds what it should not: the others still count
        return inside_of(orjson.loads(schema))


def inside_of(schema: Json) -> Inside:
    """The words of a schema, whatever is in it."""
    return _inside(_lenient(schema, NESTED_MAX_DEPTH + 1))


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
    for _ in range(NESTED_MAX_DEPTH):
        below: list[_Schema | bool] = []
        for schema in level:
            if not isinstance(schema, _Schema):
                continue
            if schema.description is not None:
                words.append(schema.description)
            if schema.enum:
                words += (value for value in schema.enum[:ENUM_MAX_VALUES] if isinstance(value, str))
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
