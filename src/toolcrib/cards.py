"""How an answer shows a tool that was found: name, source, one sentence, a typed signature (X3).

A card is a function of the definition alone, so it is made once and kept by content: an answer is put together from
ready pieces whose size is known.
"""

from typing import NamedTuple
from weakref import ref

import orjson

from toolcrib.catalog import Catalog
from toolcrib.definitions import JsonObject, Tool, json_chars
from toolcrib.intake.naming import fold
from toolcrib.limits import CACHE_CARDS, HIT_DESCRIPTION_MAX_CHARS
from toolcrib.listing import first_sentence
from toolcrib.retrieval.signature import build_signature, compact_parameters
from toolcrib.tokens import estimate_tokens


class Card(NamedTuple):
    """One tool as an answer shows it."""

    entry: JsonObject
    """The entry of `matches`; nothing in it can be changed but itself, so a copy is yours."""
    tokens: int
    """What the entry costs."""
    leaf: str
    """The name that a tool has on every server, folded: the same tool has the same schema too."""
    schema_chars: int
    """Characters of the schema that goes with it where the signature is not enough; 0 where it is."""


class Cards:
    """The cards of tools that were found lately."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str, bytes], Card] = {}

    def of(self, tool: Tool) -> Card:
        """The card of a tool."""
        # Whatever a card is made of follows from these, whose hashes are known: no digest has to be found out.
        content = (tool.name, tool.toolset, tool.leaf, tool.raw)
        card = self._kept.get(content)
        if card is None:
            if len(self._kept) >= CACHE_CARDS:
                self._kept.clear()
            card = self._kept[content] = make_card(tool)
        return card


class Shelf(dict[str, tuple[Tool, Card] | None]):
    """The tools of one catalog with their cards, by name, as soon as somebody asks: mostly for the same ones again."""

    def __init__(self, catalog: Catalog, cards: Cards) -> None:
        """Holds nothing that keeps the catalog: it is kept beside it."""
        super().__init__()
        self._catalog = ref(catalog)
        self._cards = cards

    def __missing__(self, name: str) -> tuple[Tool, Card] | None:
        if len(self) >= CACHE_CARDS:
            self.clear()
        catalog = self._catalog()
        tool = None if catalog is None else catalog.get(name)
        found = self[name] = None if tool is None else (tool, self._cards.of(tool))
        return found


def make_card(tool: Tool) -> Card:
    """The card of a tool, made anew."""
    signature = build_signature(tool)
    entry: JsonObject = {
        "name": tool.name,
        "source": tool.toolset,
        "description": first_sentence(tool.description, HIT_DESCRIPTION_MAX_CHARS),
        "signature": signature.text,
        "complete": signature.exact,
    }
    return Card(
        entry=entry,
        tokens=estimate_tokens(json_chars(orjson.dumps(entry))),
        leaf=fold(tool.leaf),
        schema_chars=0 if signature.exact else json_chars(orjson.dumps(compact_parameters(tool))),
    )
