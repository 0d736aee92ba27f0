"""How an answer shows a tool that was found: name, source, one sentence, a typed signature (X3).

A card is a function of the definition alone, so it is made once and kept by content: an answer is put together from
ready pieces whose size is known.
"""

from weakref import ref

import orjson
from msgspec import Struct

from toolcrib.catalog import Catalog
from toolcrib.definitions import JsonObject, Tool, json_chars
from toolcrib.intake.naming import fold
from toolcrib.kernel import kernel
from toolcrib.limits import CACHE_CARDS, HIT_DESCRIPTION_MAX_CHARS, SIGNATURE_MAX_CHARS
from toolcrib.listing import first_sentence
from toolcrib.retrieval.base import Hit
from toolcrib.retrieval.documents import ToolDocument
from toolcrib.retrieval.signature import KNOWN_WORDS, build_signature, compact_schema
from toolcrib.tokens import estimate_tokens


class Card(Struct, gc=False):
    """One tool as an answer shows it."""

    entry: JsonObject
    """The entry of `matches`; nothing in it can be changed but itself, so a copy is yours."""
    tokens: int
    """What the entry costs."""
    leaf: str
    """The name that a tool has on every server, folded: the same tool has the same schema too."""
    schema: bytes = b""
    """The schema that goes with it where the signature is not enough; nothing where it is."""
    _schema_chars: int = -1

    @property
    def schema_chars(self) -> int:
        """Characters of that schema, without what says nothing to a model; found out when somebody asks."""
        if self._schema_chars < 0:
            schema = self.schema
            self._schema_chars = json_chars(orjson.dumps(compact_schema(orjson.loads(schema)))) if schema else 0
        return self._schema_chars


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


class Shelf(dict[str, tuple[Tool, Card]]):
    """The tools of one catalog with their cards, by name, as soon as somebody asks: mostly for the same ones again."""

    def __init__(self, catalog: Catalog, cards: Cards) -> None:
        """Holds nothing that keeps the catalog: it is kept beside it."""
        super().__init__()
        self._catalog = ref(catalog)
        self._cards = cards

    def fetch(self, hit: Hit) -> tuple[Tool, Card] | None:
        """The tool of a hit that is not here yet, if the catalog has it."""
        document = hit.document
        if isinstance(document, ToolDocument):  # made of this catalog's tools, as everything that is searched is
            tool = document.tool
        else:
            catalog = self._catalog()
            tool = None if catalog is None else catalog.get(hit.key)
            if tool is None:
                return None
        if len(self) >= CACHE_CARDS:
            self.clear()
        found = self[hit.key] = (tool, self._cards.of(tool))
        return found


def make_card(tool: Tool) -> Card:
    """The card of a tool, made anew."""
    if kernel is not None and KNOWN_WORDS is not None:
        told = kernel.card(
            tool.name,
            tool.toolset,
            tool.leaf,
            tool.description,
            tool.schema,
            KNOWN_WORDS,
            SIGNATURE_MAX_CHARS,
            HIT_DESCRIPTION_MAX_CHARS,
        )
        if told is not None:
            entry, chars, leaf, exact = told
            return Card(entry, estimate_tokens(chars), leaf, b"" if exact else tool.schema)
    signature = build_signature(tool)
    entry = {
        "name": tool.name,
        "source": tool.toolset,
        "description": first_sentence(tool.description, HIT_DESCRIPTION_MAX_CHARS),
        "signature": signature.text,
        "complete": signature.exact,
    }
    return Card(
        entry,
        estimate_tokens(json_chars(orjson.dumps(entry))),
        fold(tool.leaf),
        b"" if signature.exact else tool.schema,
    )
