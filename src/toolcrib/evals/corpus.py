"""Reads tools and queries from JSON lines or a JSON array, and says exactly where one is wrong.

One tool per line: `{"id", "name", "description", "parameters", "server"}`, where `parameters` is a JSON schema or a
list of names; the shapes of the model APIs and of MCP do as well. One query per line: `{"id", "query", "relevant":
[tool ids], "category"?}`; an empty `relevant` means that nothing fits and the right answer is an empty result.
"""

import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from toolcrib.definitions import Json
from toolcrib.dialects import expand_definitions
from toolcrib.errors import ConfigError
from toolcrib.retrieval.base import Document, PlainDocument
from toolcrib.retrieval.documents import inside_of

_SCHEMA_KEYS = ("inputSchema", "input_schema", "parametersJsonSchema", "parameters_json_schema")
"""Where dialects other than ours keep the schema."""


class CorpusError(ConfigError):
    """A line cannot be used; the text is `file:line: what`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: in a line of a file, or in an entry of the list that it holds."""

    path: Path
    number: int
    is_line: bool

    @property
    def within(self) -> str:
        """The place in its file."""
        return f"on line {self.number}" if self.is_line else f"in entry {self.number}"

    def __str__(self) -> str:
        """The place with its file, as an editor understands it."""
        return f"{self.path}:{self.number}" if self.is_line else f"{self.path}: entry {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question with its right answers."""

    id: str
    text: str
    relevant: frozenset[str]
    category: str = ""


def read_tools(path: Path) -> list[PlainDocument]:
    """The tools of a file as documents.

    Raises:
        CorpusError: the file cannot be read, a line is wrong, or an id occurs twice.
    """
    documents: list[PlainDocument] = []
    seen: dict[str, Place] = {}
    for place, row in _rows(path, expand_definitions):
        document = _document(row, place)
        if document.key in seen:
            raise CorpusError(f"{place}: the id `{document.key}` is already {seen[document.key].within}.")
        seen[document.key] = place
        documents.append(document)
    if not documents:
        raise CorpusError(f"{path}: holds no tools.")
    return documents


def read_queries(path: Path) -> list[Query]:
    """The queries of a file.

    Raises:
        CorpusError: the file cannot be read or a line is wrong.
    """
    queries: list[Query] = []
    for place, row in _rows(path, _items):
        if "relevant" not in row:
            raise CorpusError(f"{place}: has no `relevant`: give a list of tool ids, an empty one if nothing fits.")
        relevant = row["relevant"]
        if not isinstance(relevant, list) or not all(isinstance(each, str) or type(each) is int for each in relevant):
            raise CorpusError(f"{place}: `relevant` must be a list of tool ids.")
        queries.append(
            Query(
                id=_text(row, "id", place, default=str(place.number)),
                text=_text(row, "query", place),
                relevant=frozenset(map(str, relevant)),
                category=_text(row, "category", place, default=""),
            )
        )
    if not queries:
        raise CorpusError(f"{path}: holds no queries.")
    return queries


def with_keys(documents: Sequence[Document], queries: Sequence[Query]) -> list[Query]:
    """The queries, with the key of a tool where they have its own name and only one tool has it."""
    keys = {document.key for document in documents}
    leaves: dict[str, list[str]] = {}
    for document in documents:
        leaves.setdefault(document.leaf, []).append(document.key)
    meant = {leaf: found[0] for leaf, found in leaves.items() if len(found) == 1 and leaf not in keys}
    return [
        replace(query, relevant=frozenset(meant.get(answer, answer) for answer in query.relevant)) for query in queries
    ]


def unknown_answers(documents: Sequence[Document], queries: Sequence[Query]) -> list[str]:
    """Ids that queries call relevant but no tool has; they count as not found."""
    known = {document.key for document in documents}
    return sorted({each for query in queries for each in query.relevant} - known)


def _document(raw: Mapping[str, Json], place: Place) -> PlainDocument:
    row = _plain(raw)
    name = _text(row, "name", place)
    schema = row.get("parameters")
    if isinstance(schema, list):
        names, nested = tuple(str(each) for each in schema), ""
    elif isinstance(schema, Mapping) or schema is None:
        names, nested = inside_of(schema)
    else:
        raise CorpusError(f"{place}: `parameters` must be a JSON schema or a list of names.")
    toolset = _text(row, "server", place, default="")
    key = _text(row, "id", place, default=f"{toolset}__{name}" if toolset else name)
    description = _text(row, "description", place, default="")
    content = json.dumps([key, name, toolset, description, names, nested], ensure_ascii=True)
    return PlainDocument(
        key=key,
        digest=hashlib.blake2b(content.encode(), digest_size=16).hexdigest(),
        leaf=name,
        toolset=toolset,
        description=description,
        parameters=names,
        nested=nested,
    )


def _plain(row: Mapping[str, Json]) -> Mapping[str, Json]:
    """A definition of any dialect with the keys of ours."""
    inner = row.get("function")
    if isinstance(inner, Mapping):
        row = {**inner, **{key: row[key] for key in ("id", "server") if key in row}}
    for key in _SCHEMA_KEYS:
        if key in row and "parameters" not in row:
            return {**row, "parameters": row[key]}
    return row


def _items(value: Json) -> Iterator[Json]:
    """The queries of a list, or the one that it is, whatever other keys it has: those of another benchmark, say."""
    yield from value if isinstance(value, list) else (value,)


def _rows(path: Path, expand: Callable[[Json], Iterator[Json]]) -> Iterator[tuple[Place, Mapping[str, Json]]]:
    try:
        content = path.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or type(error).__name__}.") from error
    whole = _whole(content, f"{path}")
    if whole is not None:
        for number, row in enumerate(expand(whole), 1):
            yield _object(row, Place(path, number, is_line=False))
        return
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            place = Place(path, number, is_line=True)
            for row in expand(_parse(line, f"{place}")):
                yield _object(row, place)


def _whole(content: bytes, where: str) -> Json:
    """The file as one value, if it is one over several lines: a list, or the answer of `tools/list`."""
    head = content.lstrip().partition(b"\n")[0].rstrip()
    if head[:1] != b"[" and _try(head) is not None:
        return None
    whole = _try(content)
    if whole is None and (head == b"{" or (head[:1] == b"[" and _try(head) is None)):
        # No line of it is a value: what is wrong stands where the whole breaks off.
        return _parse(content, where)
    return whole


def _try(text: bytes) -> Json:
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError):
        return None


def _parse(text: bytes, where: str) -> Json:
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{where}: is no valid JSON: {error}.") from error


def _object(row: Json, place: Place) -> tuple[Place, Mapping[str, Json]]:
    if not isinstance(row, Mapping):
        raise CorpusError(f"{place}: a JSON object is expected.")
    return place, row


def _text(row: Mapping[str, Json], key: str, place: Place, *, default: str | None = None) -> str:
    value = row.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, str) and (value or default is not None):
        return value
    if isinstance(value, int) and key == "id":
        return str(value)
    raise CorpusError(f"{place}: `{key}` must be a text" + ("." if default is not None else ", and not empty."))
