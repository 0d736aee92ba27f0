"""Changing a text by replacing spans of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """A span of the text and what stands there afterwards."""

    start: int
    end: int
    text: str


def apply_changes(text: str, changes: Iterable[Change]) -> str:
    """The text after all changes. They may come in any order, and must not overlap."""
    parts: list[str] = []
    position = 0
    for change in sorted(changes, key=lambda item: (item.start, item.end)):
        if change.start < position:
            raise AssertionError("changes overlap")
        parts += (text[position : change.start], change.text)
        position = change.end
    parts.append(text[position:])
    return "".join(parts)


def line_start(text: str, at: int) -> int:
    """Where the line of a position begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line of a position ends, its line break included."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def newline_of(text: str) -> str:
    """The line break that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def join_lines(pieces: Sequence[str], text: str, end: int) -> str:
    """The pieces one after the other, to stand in the text before `end`.

    The last line of a file may lack its line break; it gets one where something follows.
    """
    newline = newline_of(text)
    joined = "".join(piece if piece.endswith("\n") else piece + newline for piece in pieces)
    bare = bool(pieces) and not pieces[-1].endswith("\n") and end == len(text)
    return joined.removesuffix(newline) if bare else joined
