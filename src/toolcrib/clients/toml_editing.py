"""Replacing servers in TOML, statement by statement.

The standard library reads TOML but does not say where things stand, so a small scanner finds the statements (headers,
and keys with their values) and the table that each belongs to. It knows strings, brackets and comments, and nothing
of values: what an edit means is always checked by reading the result with `tomllib`.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.clients.base import ENTRY, Section
from toolcrib.clients.spans import Change, apply_changes, join_lines, line_end, newline_of
from toolcrib.definitions import Json, JsonObject
from toolcrib.jsonc import TextError

_KEY = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\]|\\.)*)"|'([^']*)')[ \t]*""")
_QUOTED = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or a key with its value."""

    path: tuple[str, ...]
    """The whole path from the root."""
    start: int
    """Where its line begins."""
    end: int
    """After its line break."""
    header: bool
    table: tuple[str, ...]
    """The table that it stands in; its own path if it is a header."""


def load(text: str) -> Json:
    """The data of a text. Raises `TextError`."""
    try:
        return cast("Json", tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _PLACE.search(message)
        offset = len(text)
        if found and found[1]:
            lines = text.splitlines(keepends=True)[: int(found[1]) - 1]
            offset = sum(map(len, lines))
        raise TextError(_PLACE.sub("", message).strip().lower() or "it cannot be read", offset) from None


def replace_servers(text: str, section: Section, names: Collection[str], entry: JsonObject) -> tuple[str, list[str]]:
    """The text with `names` replaced by the gateway's entry, and the source text of what went."""
    depth = len(section) + 1
    going = [item for item in _statements(text) if item.path[: depth - 1] == section and item.path[depth - 1 : depth]]
    going = [item for item in going if item.path[depth - 1] in names]
    if not going:
        raise TextError(f"`{'.'.join(section)}` is written as one inline table, which is not edited", 0)
    newline = newline_of(text)
    ours = _entry(going[0], section, entry).replace("\n", newline)
    changes = [Change(start, end, "") for start, end in _blocks(text, going)]
    pieces = [text[change.start : change.end] for change in changes]
    first = changes[0]
    # A blank line that closed the first table closes the new one too.
    tail = newline if text[first.start : first.end].endswith(newline * 2) else ""
    changes[0] = Change(first.start, first.end, ours + tail)
    return apply_changes(text, changes), pieces


def put_back(text: str, section: Section, pieces: Sequence[str]) -> str:
    """The text with the gateway's entry replaced by servers that had gone."""
    path = (*section, ENTRY)
    ours = [item for item in _statements(text) if item.path[: len(path)] == path]
    if not ours:
        raise TextError(f"there is no `{ENTRY}` any more", 0)
    blocks = _blocks(text, ours)
    changes = [Change(start, end, "") for start, end in blocks]
    changes[0] = Change(blocks[0][0], blocks[0][1], join_lines(pieces, text, blocks[0][1]))
    return apply_changes(text, changes)


def _entry(first: Statement, section: Section, entry: JsonObject) -> str:
    """The gateway's entry in the manner of the statement whose place it takes."""
    if first.header:
        body = "".join(f"{_spell((key,))} = {_value(value)}\n" for key, value in entry.items())
        return f"[{_spell((*section, ENTRY))}]\n{body}"
    inline = ", ".join(f"{_spell((key,))} = {_value(value)}" for key, value in entry.items())
    path = (*section, ENTRY)[len(first.table) :]
    return f"{_spell(path)} = {{ {inline} }}\n"


def _spell(path: Sequence[str]) -> str:
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key) for key in path)


def _value(value: Json) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return (
            '"'
            + "".join(f"\\u{ord(char):04x}" if ord(char) < 32 or ord(char) == 127 else char for char in escaped)
            + '"'
        )
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise AssertionError("an entry holds texts and lists of texts")


def _blocks(text: str, going: Sequence[Statement]) -> list[tuple[int, int]]:
    """The spans of the statements; what stands between two of one table, such as comments, goes with them."""
    spans: list[tuple[int, int]] = []
    last: Statement | None = None
    for item in going:
        joined = last is not None and not item.header and item.table == last.table and last.table == item.path[:-1]
        if joined and _only_blank(text[spans[-1][1] : item.start]):
            spans[-1] = (spans[-1][0], item.end)
        else:
            spans.append((item.start, item.end))
        last = item
    return [(start, _past_blank_lines(text, end)) for start, end in spans] if _headed(going) else spans


def _headed(going: Sequence[Statement]) -> bool:
    return going[0].header


def _only_blank(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _past_blank_lines(text: str, at: int) -> int:
    while at < len(text) and not text[at : line_end(text, at)].strip():
        at = line_end(text, at)
    return at


def _statements(text: str) -> Iterator[Statement]:
    table: tuple[str, ...] = ()
    at = 0
    while at < len(text):
        end = line_end(text, at)
        line = text[at:end].strip()
        if not line or line.startswith("#"):
            at = end
            continue
        start = at
        opened = text.index(line[0], at)
        if line[0] == "[":
            brackets = 2 if line.startswith("[[") else 1
            table, _ = _read_path(text, opened + brackets)
            yield Statement(table, start, end, header=True, table=table)
        else:
            path, equals = _read_path(text, opened)
            end = line_end(text, _value_end(text, equals + 1))
            yield Statement((*table, *path), start, end, header=False, table=table)
        at = end


def _read_path(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """A dotted key, and the position after it."""
    path: list[str] = []
    while True:
        found = _KEY.match(text, at)
        if not found:
            raise TextError("a key cannot be read", at)
        bare, basic, literal = found.groups()
        path.append(bare if bare is not None else literal if literal is not None else _unquote(basic, at))
        at = found.end()
        if not text.startswith(".", at):
            return tuple(path), at
        at += 1


def _unquote(text: str, at: int) -> str:
    value = cast("dict[str, object]", load(f'key = "{text}"')).get("key")
    if not isinstance(value, str):
        raise TextError("a key cannot be read", at)
    return value


def _value_end(text: str, at: int) -> int:
    """The end of the last line of a value."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char in "\"'":
            found = _QUOTED.match(text, at)
            if not found:
                raise TextError("a text in quotation marks is not closed", at)
            at = found.end()
            continue
        if char == "#":
            at = line_end(text, at) - 1
            if depth == 0 or at >= len(text) - 1:
                return at
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "\n" and depth <= 0:
            return at
        at += 1
    return len(text)
