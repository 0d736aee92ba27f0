"""From tools to documents: which words of a definition can be searched, and how many of them.

Top-level parameter names are a field of their own. Everything below them (descriptions, nested names, enum values) is
one bounded text, so that a tool with a hundred parameters does not drown its neighbours.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from toolcrib.definitions import Json, Tool, Toolset
from toolcrib.retrieval.base import Document

NESTED_MAX_CHARS = 2_000
_NESTED_MAX_DEPTH = 6


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
        words = (*tool.aliases, *extra.get(tool.name, extra.get(tool.leaf, ())), *shared)
        documents.append(made.get(_digest(tool, words)) or build_document(tool, label, words))
    return tuple(documents)


def _digest(tool: Tool, aliases: tuple[str, ...]) -> str:
    return f"{tool.fingerprint}:{'|'.join(aliases)}" if aliases else tool.fingerprint


def build_document(tool: Tool, label: str, aliases: tuple[str, ...] = ()) -> Document:
    """The document of one tool, in the toolset that the model knows as `label`."""
    schema = tool.parameters
    properties = schema.get("properties")
    names = tuple(properties) if isinstance(properties, Mapping) else ()
    return Document(
        key=tool.name,
        digest=_digest(tool, aliases),
        leaf=tool.leaf,
        toolset=label,
        description=tool.description,
        parameters=names,
        nested=nested_text(properties),
        aliases=aliases,
    )


def nested_text(properties: Json) -> str:
    """The bounded text of what is inside the parameters of a schema, given its `properties`."""
    return _bounded(_nested_words(properties)) if isinstance(properties, Mapping) else ""


def _bounded(words: Iterator[str]) -> str:
    kept: list[str] = []
    room = NESTED_MAX_CHARS
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return " ".join(kept)


def _nested_words(properties: Json) -> Iterator[str]:
    """Descriptions of the parameters first, then what is inside them, level by level."""
    level: list[Json] = list(cast("Mapping[str, Json]", properties).values())
    for _ in range(_NESTED_MAX_DEPTH):
        below: list[Json] = []
        for schema in level:
            if not isinstance(schema, Mapping):
                continue
            description = schema.get("description")
            if isinstance(description, str):
                yield description
            values = schema.get("enum")
            if isinstance(values, list):
                yield from (value for value in values[:20] if isinstance(value, str))
            inner = schema.get("properties")
            if isinstance(inner, Mapping):
                yield from inner
                below.extend(inner.values())
            below.append(schema.get("items"))
            for key in ("anyOf", "oneOf", "allOf"):
                options = schema.get(key)
                if isinstance(options, list):
                    below.extend(options)
        if not below:
            return
        level = below
