"""The listing: what the model can see of the deferred tools without asking (X9).

A model that cannot see a name does not look for it, so names come first; a line of description is a luxury for small
catalogs. Toolsets are sorted, each is rendered once per form, and whichever does not fit is reduced on its own, the
largest first: one huge server never costs a small one its names. Same catalog, same budget, same bytes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import orjson

from toolcrib.catalog import Catalog
from toolcrib.definitions import Toolset, json_chars
from toolcrib.intake.naming import SEPARATOR
from toolcrib.settings import Mode

Form = Literal["lines", "names", "count"]

LINE_MAX_CHARS = 60
LINES_MAX_TOKENS = 600
"""In `auto`, lines of description are shown only while the whole listing stays below this."""

_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The rendered text, and how much of the catalog it names."""

    text: str
    chars: int
    """Characters inside a JSON string: what it costs."""
    names_listed: int


NO_LISTING = Listing(text="", chars=0, names_listed=0)


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    chars: int


class ListingRenderer:
    """Renders listings, keeping the blocks of toolsets that did not change."""

    def __init__(self) -> None:
        self._blocks: WeakKeyDictionary[Toolset, dict[Form, _Block]] = WeakKeyDictionary()

    def render(self, catalog: Catalog, *, mode: Mode, max_chars: int) -> Listing:
        """The listing of a catalog in at most so many characters of JSON."""
        if mode == "off" or not catalog.toolsets:
            return NO_LISTING
        forms: dict[Toolset, Form] = dict.fromkeys(catalog.toolsets, "names")
        sizes = {toolset: self._block(toolset, "names").chars for toolset in catalog.toolsets}
        total = sum(sizes.values())
        if total <= max_chars:
            lines_budget = max_chars if mode == "on" else min(max_chars, LINES_MAX_TOKENS * 4)
            self._grow(forms, total, lines_budget)
        else:
            total = self._shrink(forms, sizes, total, max_chars)
            if total > max_chars:
                return self._toolsets_only(catalog, max_chars)
        blocks = [self._block(toolset, forms[toolset]) for toolset in catalog.toolsets]
        named = sum(len(toolset.tools) for toolset in catalog.toolsets if forms[toolset] != "count")
        return Listing(
            text="".join(block.text for block in blocks),
            chars=sum(block.chars for block in blocks),
            names_listed=named,
        )

    def _grow(self, forms: dict[Toolset, Form], total: int, budget: int) -> None:
        """Gives lines of description to the smallest toolsets first, while all of it fits."""
        for toolset in sorted(forms, key=lambda item: (len(item.tools), item.name)):
            more = self._block(toolset, "lines").chars - self._block(toolset, "names").chars
            if total + more > budget:
                return
            forms[toolset] = "lines"
            total += more

    def _shrink(self, forms: dict[Toolset, Form], sizes: Mapping[Toolset, int], total: int, budget: int) -> int:
        """Takes the names of the largest toolsets first, until the rest fits."""
        for toolset in sorted(forms, key=lambda item: (-sizes[item], item.name)):
            if total <= budget:
                break
            less = sizes[toolset] - self._block(toolset, "count").chars
            if less > 0:
                forms[toolset] = "count"
                total -= less
        return total

    def _toolsets_only(self, catalog: Catalog, budget: int) -> Listing:
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

    def _block(self, toolset: Toolset, form: Form) -> _Block:
        blocks = self._blocks.get(toolset)
        if blocks is None:
            blocks = self._blocks[toolset] = {}
        block = blocks.get(form)
        if block is None:
            text = _render(toolset, form)
            block = blocks[form] = _Block(text, _chars(text))
        return block


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
    for match in _SENTENCE_END.finditer(flat):
        if match.group() != "\n" and flat[: match.start()].rpartition(" ")[2].lower() in {
            "e.g",
            "i.e",
            "etc",
            "vs",
            "cf",
            "approx",
        }:
            continue
        flat = flat[: match.start()]
        break
    line = " ".join(flat.split()).rstrip(".!?:;,")
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    head = cut if line[max_chars - 1] == " " else cut.rpartition(" ")[0]
    return f"{(head if len(head) > max_chars // 2 else cut).rstrip(' ,;:')}…"
