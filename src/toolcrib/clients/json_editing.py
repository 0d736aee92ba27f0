"""Replacing servers in JSON with comments, span by span.

The first server that goes makes room for the gateway's entry; the others go with their comma and the blanks before
them. Comments, order, blanks and commas of everything else stay as the person wrote them.
"""

import json
import re
from collections.abc import Collection, Sequence
from typing import cast

import orjson

from toolcrib.clients.base import ENTRY, Section
from toolcrib.clients.spans import Change, apply_changes, newline_of
from toolcrib.definitions import Json, JsonObject
from toolcrib.jsonc import Member, Node, TextError, read_jsonc, skip_blank


def load(text: str) -> Json:
    """The data of a text. Raises `TextError`."""
    try:
        # Most files are strict JSON, and some keep years of history: a reader in C spares a second.
        return cast("Json", orjson.loads(text))
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return read_jsonc(text).data()


def replace_servers(text: str, section: Section, names: Collection[str], entry: JsonObject) -> tuple[str, list[str]]:
    """The text with `names` replaced by the gateway's entry, and the source text of what went."""
    node = _require_section(text, section)
    gone = [member for member in node.members if member.key in names]
    if not gone:
        raise TextError("there is nothing to replace", node.start)
    first = gone[0]
    ours = _member(ENTRY, entry, indent_of(text, first.start), _step(text, node)).replace("\n", newline_of(text))
    changes = [Change(first.start, first.value.end, ours)]
    for member in gone[1:]:
        changes.extend(_removal(text, member))
    last = node.members[-1]
    if last in gone[1:] and _comma_after(text, last) is None:
        left = [member for member in node.members if member is first or member not in gone][-1]
        comma = _comma_after(text, left)
        changes.extend([Change(comma, comma + 1, "")] if comma is not None else [])
    return apply_changes(text, changes), [text[member.start : member.value.end] for member in gone]


def put_back(text: str, section: Section, pieces: Sequence[str]) -> str:
    """The text with the gateway's entry replaced by servers that had gone."""
    node = _require_section(text, section)
    ours = next((member for member in node.members if member.key == ENTRY), None)
    if ours is None:
        raise TextError(f"there is no `{ENTRY}` any more", node.start)
    inner = indent_of(text, ours.start)
    separator = f",{newline_of(text)}{inner}" if inner is not None else ", "
    return apply_changes(text, [Change(ours.start, ours.value.end, separator.join(pieces))])


def indent_of(text: str, at: int) -> str | None:
    """The blanks before a position, if nothing else stands before it on its line."""
    line = text.rfind("\n", 0, at) + 1
    blanks = text[line:at]
    return blanks if line and not blanks.strip() else None


def _require_section(text: str, section: Section) -> Node:
    node: Node | None = read_jsonc(text)
    for key in section:
        if node is None or node.kind != "object":
            break
        if node.twice == key:
            raise TextError(f"the key `{key}` occurs twice", node.start)
        node = node.get(key)
    if node is None or node.kind != "object":
        raise TextError(f"there is no `{'.'.join(section)}`", 0)
    if node.twice:
        raise TextError(f"the server `{node.twice}` occurs twice", node.start)
    return node


def _member(key: str, value: JsonObject, indent: str | None, step: str) -> str:
    """A member as its neighbours are written: on lines of their own, or all on one."""
    if indent is None:
        return f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
    lines = [f"{json.dumps(name)}: {json.dumps(item, ensure_ascii=False)}" for name, item in value.items()]
    body = f",\n{indent}{step}".join(lines)
    return f"{json.dumps(key)}: {{\n{indent}{step}{body}\n{indent}}}"


def _step(text: str, node: Node) -> str:
    """How much deeper one level is written than the next."""
    outer = re.match(r"[ \t]*", text[text.rfind("\n", 0, node.start) + 1 :])
    inner = indent_of(text, node.members[0].start) or ""
    above = outer[0] if outer else ""
    return inner[len(above) :] if inner.startswith(above) and len(inner) > len(above) else "  "


def _comma_after(text: str, member: Member) -> int | None:
    at = skip_blank(text, member.value.end)
    return at if text.startswith(",", at) else None


def _removal(text: str, member: Member) -> list[Change]:
    """The changes that take one member out: the comma after it, and its line if nothing else stands there."""
    comma = _comma_after(text, member)
    end = member.value.end
    rest = end + 1 if comma == end else end
    start = member.start
    while text[start - 1] in " \t\r\n":
        start -= 1
    ends_line = text.startswith(("\n", "\r\n"), rest)
    if "\n" in text[start : member.start] and not ends_line:
        # A comment may end with the line before, and another may follow: the line stays for them.
        start = member.start
    changes = [Change(start, end, "")]
    return changes if comma is None else [*changes, Change(comma, comma + 1, "")]
