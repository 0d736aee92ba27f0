"""Reads tools and queries from JSON lines, and says exactly where a line is wrong.

One tool per line: `{"id", "name", "description", "parameters", "server"}`, where `parameters` is a JSON schema or a
list of names. One query per line: `{"id", "query", "relevant": [tool ids], "category"?}`; an empty `relevant`
means that nothing fits and the right answer is an empty result.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from toolcrib.definitions import Json
from toolcrib.errors import ConfigError
from toolcrib.retrieval.base import Document, PlainDocument
from toolcrib.retrieval.documents import inside_of


class CorpusError(ConfigError):
    """A line cannot be used; the text is `file:line: what`."""


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
    seen: dict[str, int] = {}
    for number, row in _rows(path):
        document = _document(row, path, number)
        if document.key in seen:
            raise CorpusError(f"{path}:{number}: the id `{document.key}` is already on line {seen[document.key]}")
        seen[document.key] = number
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
    for number, row in _rows(path):
        relevant = row.get("relevant", [])
        if not isinstance(relevant, list) or not all(isinstance(each, str) for each in relevant):
            raise CorpusError(f"{path}:{number}: `relevant` must be a list of tool ids")
        queries.append(
            Query(
                id=_text(row, "id", path, number, default=str(number)),
                text=_text(row, "query", path, number),
                relevant=frozenset(cast(list[str], relevant)),
                category=_text(row, "category", path, number, default=""),
            )
        )
    if not queries:
        raise CorpusError(f"{path}: holds no queries.")
    return queries


def unknown_answers(documents: Sequence[Document], queries: Sequence[Query]) -> list[str]:
    """Ids that queries call relevant but no tool has; they count as not found."""
    known = {document.key for document in documents}
    return sorted({each for query in queries for each in query.relevant} - known)


def _document(row: Mapping[str, Json], path: Path, number: int) -> PlainDocument:
    name = _text(row, "name", path, number)
    schema = row.get("parameters")
    if isinstance(schema, list):
        names, nested = tuple(str(each) for each in schema), ""
    elif isinstance(schema, Mapping) or schema is None:
        names, nested = inside_of(schema)
    else:
        raise CorpusError(f"{path}:{number}: `parameters` must be a JSON schema or a list of names")
    key = _text(row, "id", path, number, default=name)
    toolset = _text(row, "server", path, number, default="")
    description = _text(row, "description", path, number, default="")
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


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Json]]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or type(error).__name__}.") from error
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = cast(Json, json.loads(line))
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{path}:{number}: is no valid JSON: {error}.") from error
        if not isinstance(row, dict):
            raise CorpusError(f"{path}:{number}: a JSON object is expected")
        yield number, row


def _text(row: Mapping[str, Json], key: str, path: Path, number: int, *, default: str | None = None) -> str:
    value = row.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, str) and (value or default is not None):
        return value
    if isinstance(value, int) and key == "id":
        return str(value)
    raise CorpusError(f"{path}:{number}: `{key}` must be a text" + ("" if default is not None else ", and not empty"))
