"""Reading JSON that people write: with comments, trailing commas and every position kept.

A tree that was parsed and written back loses the comments, the order of blanks and the person's trust. So values keep
where they stand in the text, and whoever edits replaces spans. Broken text is an error that names its line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import orjson

from toolcrib.definitions import Json
from toolcrib.limits import CLIENT_FILE_MAX_DEPTH

_BLANK = re.compile(r"(?:[ \t\r\n\f\v\u00a0\ufeff\u2028\u2029]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"[-+.\w]+")


class TextError(ValueError):
    """Text that cannot be read, or an edit that would not mean what it should; `offset` is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Member:
    """One key of an object, with its value."""

    key: str
    start: int
    """Where the key's quotation mark stands."""
    value: "Node"


@dataclass(frozen=True, slots=True)
class Node:
    """One value and where it stands."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    scalar: Json = None
    members: Sequence[Member] = ()
    items: Sequence["Node"] = ()
    twice: str | None = None
    """A key that an object has more than once, if there is one."""

    def get(self, key: str) -> "Node | None":
        """The value of a key; the last one wins, as everywhere."""
        return next((member.value for member in reversed(self.members) if member.key == key), None)

    def data(self) -> Json:
        """The value without positions."""
        if self.kind == "object":
            return {member.key: member.value.data() for member in self.members}
        if self.kind == "array":
            return [item.data() for item in self.items]
        return self.scalar


def read_jsonc(text: str) -> Node:
    """The value of a text. An empty text is an empty object. Raises `TextError`."""
    reader = _Reader(text)
    at = reader.skip(0)
    if at == len(text):
        return Node("object", at, at)
    node = reader.value(at, 0)
    rest = reader.skip(node.end)
    if rest != len(text):
        raise TextError("there is something after the end of the value", rest)
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, at: int) -> int:
        """Past blanks and comments."""
        found = _BLANK.match(self.text, at)
        end = found.end() if found else at
        if self.text.startswith("/*", end):
            raise TextError("a comment is not closed", end)
        return end

    def value(self, at: int, depth: int) -> Node:
        if depth > CLIENT_FILE_MAX_DEPTH:
            raise TextError(f"values are nested more than {CLIENT_FILE_MAX_DEPTH} levels deep", at)
        first = self.text[at : at + 1]
        if first == "{":
            return self.object(at, depth)
        if first == "[":
            return self.array(at, depth)
        if first == '"':
            end, value = self.string(at)
            return Node("scalar", at, end, value)
        found = _WORD.match(self.text, at)
        if not found:
            raise TextError("the text ends too early" if not first else f"`{first}` stands where a value should", at)
        return Node("scalar", at, found.end(), self.parse(found[0], at))

    def object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        keys: set[str] = set()
        twice: str | None = None
        position = self.skip(at + 1)
        while not self.text.startswith("}", position):
            start = position
            if not self.text.startswith('"', start):
                raise TextError("a key in quotation marks or `}` should stand here", start)
            position, key = self.string(start)
            position = self.skip(position)
            if not self.text.startswith(":", position):
                raise TextError(f"after the key `{key[:40]}` a colon should stand", position)
            value = self.value(self.skip(position + 1), depth + 1)
            members.append(Member(key, start, value))
            twice = key if key in keys else twice
            keys.add(key)
            position = self.separator(value.end, "}")
        return Node("object", at, position + 1, members=members, twice=twice)

    def array(self, at: int, depth: int) -> Node:
        items: list[Node] = []
        position = self.skip(at + 1)
        while not self.text.startswith("]", position):
            item = self.value(position, depth + 1)
            items.append(item)
            position = self.separator(item.end, "]")
        return Node("array", at, position + 1, items=items)

    def separator(self, at: int, close: str) -> int:
        """To the next element or to the closing bracket; a comma may trail."""
        position = self.skip(at)
        if self.text.startswith(",", position):
            return self.skip(position + 1)
        if self.text.startswith(close, position):
            return position
        raise TextError(f"a comma or `{close}` should stand here", position)

    def string(self, at: int) -> tuple[int, str]:
        found = _STRING.match(self.text, at)
        if not found:
            raise TextError("a text in quotation marks is not closed", at)
        value = self.parse(found[0], at)
        return found.end(), cast("str", value)

    def parse(self, word: str, at: int) -> Json:
        try:
            return cast("Json", orjson.loads(word))
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            raise TextError(f"`{word[:40]}` is no JSON value", at) from None


def skip_blank(text: str, at: int) -> int:
    """Past blanks and comments of JSON with comments."""
    return _Reader(text).skip(at)
