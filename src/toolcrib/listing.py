"""The listing: what the model can see of the deferred tools without asking (X9).

A model that cannot see a name does not look for it, so names come first; a line of description is a luxury for small
catalogs. Toolsets are sorted, each is rendered once per form, and whichever does not fit is reduced on its own, the
largest first: one huge server never costs a small one its names. Same catalog, same budget, same bytes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import orjson

from toolcrib.alongside import Alongside, common_ends
from toolcrib.catalog import Catalog
from toolcrib.definitions import Toolset, json_chars
from toolcrib.intake.naming import SEPARATOR
from toolcrib.settings import Mode

Form = Literal["lines", "names", "count"]

LINE_MAX_CHARS = 60
LINES_MAX_TOKENS = 600
"""In `auto`, lines of description are shown only while the whole listing stays below this."""

_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc", "vs", "cf", "approx"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The rendered text, and how much of the catalog it names."""

    text: str
    chars: int
    """Characters inside a JSON string: what it costs."""
    names_listed: int


NO_LISTING = Listing(text="", chars=0, names_listed=0)


class _Block(NamedTuple):
    text: str
    chars: int


class _Names(NamedTuple):
    """What a toolset looks like in the listing; its other forms are made where they are wanted."""

    block: _Block
    rank: tuple[int, str]
    """The largest lose their names first, then by name."""


class ListingRenderer:
    """Renders listings, keeping the blocks of toolsets that did not change."""

    def __init__(self) -> None:
        self._names: Alongside[Toolset, _Names] = Alongside(_names)
        self._counts: Alongside[Toolset, _Block] = Alongside(lambda toolset: _block(toolset, "count"))
        self._lines: Alongside[Toolset, _Block] = Alongside(lambda toolset: _block(toolset, "lines"))
        self._shrunk: tuple[tuple[_Names, ...], int, Listing] = ((), 0, NO_LISTING)
        """The last one that did not fit: of what, into how many characters, and what became of it."""

    def render(self, catalog: Catalog, *, mode: Mode, max_chars: int) -> Listing:
        """The listing of a catalog in at most so many characters of JSON."""
        if mode == "off" or not catalog.toolsets:
            return NO_LISTING
        toolsets = catalog.toolsets
        names = self._names.of(toolsets)
        before, budget, listing = self._shrunk
        if budget == max_chars and _are_equal(before, names):
            return listing
        chosen = [each.block for each in names]
        total = sum([block.chars for block in chosen])
        if total <= max_chars:
            lines_budget = max_chars if mode == "on" else min(max_chars, LINES_MAX_TOKENS * 4)
            self._grow(toolsets, chosen, total, lines_budget)
            return _listing(chosen, catalog.size)
        counts = self._counts.of(toolsets)
        counted = _shrink(names, counts, total, max_chars)
        for place in counted:
            chosen[place] = counts[place]
        if sum([block.chars for block in chosen]) > max_chars:
            listing = _toolsets_only(catalog, max_chars)
        else:
            listing = _listing(chosen, catalog.size - sum([len(toolsets[place].tools) for place in counted]))
        self._shrunk = (names, max_chars, listing)
        return listing

    def _grow(self, toolsets: Sequence[Toolset], chosen: list[_Block], total: int, budget: int) -> None:
        """Gives lines of description to the smallest toolsets first, while all of it fits."""
        for count, _, place in sorted((len(item.tools), item.name, place) for place, item in enumerate(toolsets)):
            # A line of its own takes two characters more than a name between others, whatever else is in it.
            if total + 2 * count > budget:
                return
            lines = self._lines.one(toolsets[place])
            more = lines.chars - chosen[place].chars
            if total + more > budget:
                return
            chosen[place] = lines
            total += more


def _are_equal(before: tuple[_Names, ...], names: tuple[_Names, ...]) -> bool:
    """Whether all names are as before, and so are their counts; nearly all of them are the same objects."""
    head, tail = common_ends(before, names)
    return before[head : len(before) - tail] == names[head : len(names) - tail]


def _listing(chosen: Sequence[_Block], named: int) -> Listing:
    return Listing(
        text="".join([block.text for block in chosen]), chars=sum([block.chars for block in chosen]), names_listed=named
    )


def _shrink(names: Sequence[_Names], counts: Sequence[_Block], total: int, budget: int) -> list[int]:
    """The places of those that lose their names, the largest first, until the rest fits."""
    counted: list[int] = []
    ranks = [each.rank for each in names]
    for place in sorted(range(len(ranks)), key=ranks.__getitem__):
        if total <= budget:
            break
        spared = names[place].block.chars - counts[place].chars
        if spared > 0:
            counted.append(place)
            total -= spared
    return counted


def _toolsets_only(catalog: Catalog, budget: int) -> Listing:
    """So many toolsets that not even their counts fit: as many of their names as do, and how many more."""
    tail_room = 60
    shown: list[str] = []
    used = tail_room
    for toolset in catalog.toolsets:
        label = _label(toolset)
        if used + len(label) + 1 > budget:
            break
        shown.append(label)
        used += len(label) + 1
    more = len(catalog.toolsets) - len(shown)
    text = "\n" + " ".join(shown) + (f" and {more} more toolsets" if more else "")
    return Listing(text=text, chars=_chars(text), names_listed=0)


def _names(toolset: Toolset) -> _Names:
    block = _block(toolset, "names")
    return _Names(block, (-block.chars, toolset.name))


def _block(toolset: Toolset, form: Form) -> _Block:
    text = _render(toolset, form)
    return _Block(text, _chars(text))


def _render(toolset: Toolset, form: Form) -> str:
    label = _label(toolset)
    mark = " (unavailable)" if toolset.unavailable else ""
    if form == "count":
        count = len(toolset.tools)
        return f"\n{label}: {count} tool{'s' if count > 1 else ''}{mark}"
    start = len(label) if label.endswith(SEPARATOR) else 0
    names = [tool.name[start:] for tool in toolset.tools]
    if form == "names":
        return f"\n{label}: {' '.join(names)}{mark}"
    lines = (
        f"\n {name} - {line}" if (line := first_sentence(tool.description, LINE_MAX_CHARS)) else f"\n {name}"
        for name, tool in zip(names, toolset.tools, strict=True)
    )
    return f"\n{label}:{mark}{''.join(lines)}"


def _label(toolset: Toolset) -> str:
    """The prefix that completes the names, or the toolset's name where they are complete."""
    return f"{toolset.prefix}{SEPARATOR}" if toolset.prefix else toolset.name


def _chars(text: str) -> int:
    return json_chars(orjson.dumps(text)) - 2


def first_sentence(text: str, max_chars: int) -> str:
    """The first sentence, on one line. A full stop inside `e.g.`, `v1.2` or `api.example.com` does not end it."""
    flat = text.strip()[: max_chars * 8]
    inner = flat[:-1]
    if "." in inner or "\n" in inner or "!" in inner or "?" in inner:
        flat = _until_sentence_end(flat)
    line = " ".join(flat.split()).rstrip(".!?:;,")
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    head = cut if line[max_chars - 1] == " " else cut.rpartition(" ")[0]
    return f"{(head if len(head) > max_chars // 2 else cut).rstrip(' ,;:')}…"


def _until_sentence_end(text: str) -> str:
    for match in _SENTENCE_END.finditer(text):
        before = text[: match.start()]
        if match.group() == "\n" or before.rpartition(" ")[2].lower() not in _ABBREVIATIONS:
            return before
    return text
