"""What screening found, and the strings it looks at.

A finding explains itself: which rule, where in the definition, what was seen (with every hidden character made
visible), and why it matters. Hard findings have next to no honest explanation; soft ones are an alarm for a person.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from toolcrib.definitions import JsonObject
from toolcrib.limits import EXCERPT_MAX_CHARS

Severity = Literal["soft", "hard"]

_INVISIBLE = frozenset({"Cf", "Co", "Cn", "Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason to look at a definition before a model does."""

    rule: str
    severity: Severity
    path: str
    """Where in the definition: `description`, `inputSchema.properties.path.default`, or `… (key)`."""
    excerpt: str
    """What was seen, safe to print."""
    explanation: str

    def as_json(self) -> JsonObject:
        """The finding as plain data."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "path": self.path,
            "excerpt": self.excerpt,
            "explanation": self.explanation,
        }


def make_visible(text: str) -> str:
    """The text with everything that a terminal would hide or obey written as its code point."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char == "\n":
        return "⏎"
    if unicodedata.category(char) in _INVISIBLE or char in OTHER_INVISIBLE or is_variation_selector(char):
        return f"‹U+{ord(char):04X}›"
    return " " if char.isspace() else char


OTHER_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that show nothing although Unicode calls them letters, marks or symbols."""


def is_variation_selector(char: str) -> bool:
    """Whether the character only changes how the one before it looks."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or "\u180b" <= char <= "\u180f"


def excerpt_of(text: str, start: int, end: int) -> str:
    """The part of the text around a place, made visible and short."""
    room = max(10, (EXCERPT_MAX_CHARS - min(end - start, EXCERPT_MAX_CHARS)) // 2)
    head, tail = max(0, start - room), min(len(text), start + EXCERPT_MAX_CHARS, end + room)
    shown = make_visible(text[head:tail])
    return f"{'…' if head else ''}{shown}{'…' if tail < len(text) else ''}"


def strings_of(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a JSON value with its place, keys included."""
    stack: list[tuple[str, object]] = [(path, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, Mapping):
            entries = list(cast("Mapping[str, object]", item).items())
            for key, inner in reversed(entries):
                stack.append((f"{place}.{key}" if place else key, inner))
            for key, _ in entries:
                yield f"{place}.{make_visible(key)} (key)".lstrip("."), key
        elif isinstance(item, list | tuple):
            inside = cast("list[object]", item)
            stack.extend((f"{place}[{number}]", inside[number]) for number in range(len(inside) - 1, -1, -1))
