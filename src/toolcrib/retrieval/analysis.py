"""Turns a document into weighted terms, once per content.

Every number here depends on the document alone: lengths are normalised against fixed pivots and not against
the average of a catalog. So an analysed document can be kept by its digest, an index can take over what did
not change, and the outcome is the same as that of a fresh build. What depends on the catalog (how rare a
term is) is applied at query time.

Invariant: a field counts for a bounded amount however often it repeats a word (saturation, length,
`FIELD_MAX_RUNS`), so keyword stuffing cannot buy rank (D1).
"""

import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolcrib.limits import ANALYSED_MAX_DOCUMENTS, FIELD_MAX_RUNS, VOCABULARY_MAX_TERMS
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.text import normal_name, run_terms, runs_of

FIELDS = ("name", "toolset", "description", "parameters", "nested", "aliases")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """How one field counts."""

    weight: float
    """What one occurrence in a field of pivot length is worth."""
    pivot: float
    """Terms of a typical field; longer ones count less per occurrence."""
    length_share: float
    """0: length does not matter; 1: an occurrence counts by its share of the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWeights:
    """The weights of all fields and the shape of saturation."""

    name: Field = Field(weight=2.0, pivot=4.0, length_share=0.5)
    toolset: Field = Field(weight=1.0, pivot=2.0, length_share=0.5)
    description: Field = Field(weight=1.0, pivot=25.0, length_share=0.75)
    parameters: Field = Field(weight=0.5, pivot=6.0, length_share=0.75)
    nested: Field = Field(weight=0.2, pivot=40.0, length_share=0.75)
    aliases: Field = Field(weight=2.0, pivot=4.0, length_share=0.5)
    saturation: float = 1.2
    """Weighted occurrences that give half of what endless ones would."""
    coverage: float = 0.5
    """What covering a whole name adds; each of its terms gives its share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """What an index keeps of a document: term numbers with impacts, and hashes of its names."""

    terms: bytes
    """Term numbers, int32."""
    impacts: bytes
    """Impact of each term, float32, in the same order."""
    names: tuple[int, int, int]
    """Hashes of the exposed name, of the leaf, and of toolset and leaf together."""


def name_hash(name: str) -> int:
    """A stable hash of a name without case and separators; 0 for a name with no letters."""
    normal = normal_name(name)
    return (zlib.crc32(normal.encode("utf-8", "surrogatepass")) or 1) if normal else 0


def field_texts(document: Document) -> tuple[str, str, str, str, str, str]:
    """The text of each field, in the order of `FIELDS`."""
    return (
        document.leaf,
        document.toolset,
        document.description,
        " ".join(document.parameters),
        document.nested,
        " ".join(document.aliases),
    )


class Analyser:
    """Numbers terms and keeps analysed documents by digest; a number is never given anew."""

    __slots__ = ("_documents", "_memo", "_weights", "vocabulary")

    def __init__(self, weights: FieldWeights) -> None:
        self._weights = weights
        self._memo: dict[str, tuple[int, ...]] = {}
        self._documents: dict[tuple[str, str], Analysed] = {}
        self.vocabulary: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """Whether the bounds are reached and a new analyser should take over."""
        return len(self.vocabulary) > VOCABULARY_MAX_TERMS or len(self._documents) > ANALYSED_MAX_DOCUMENTS

    def analyse(self, document: Document) -> Analysed:
        """The analysed document, from the cache if its content was seen before."""
        identity = (document.key, document.digest)
        known = self._documents.get(identity)
        if known is None:
            known = self._documents[identity] = self._analyse(document)
        return known

    def weigh(self, document: Document) -> dict[str, dict[int, float]]:
        """What each field gives to each term before saturation: the detail behind an explanation."""
        return {field: self._shares(text, getattr(self._weights, field)) for field, text in _named(document)}

    def _analyse(self, document: Document) -> Analysed:
        weights = self._weights
        sums: dict[int, float] = {}
        cover: dict[int, float] = {}
        for field, text in _named(document):
            if not text:
                continue
            shares = self._shares(text, getattr(weights, field))
            if field == "name" and shares:
                each = weights.coverage / len(shares)
                cover = dict.fromkeys(shares, each)
            for term, share in shares.items():
                sums[term] = sums.get(term, 0.0) + share
        half = weights.saturation
        impacts = array("f", [value / (half + value) + cover.get(term, 0.0) for term, value in sums.items()])
        key, leaf, full = document.key, document.leaf, f"{document.toolset} {document.leaf}"
        return Analysed(
            terms=array("i", sums).tobytes(),
            impacts=impacts.tobytes(),
            names=(name_hash(key), name_hash(leaf), name_hash(full)),
        )

    def _shares(self, text: str, field: Field) -> dict[int, float]:
        numbers = self._numbers(runs_of(text)[:FIELD_MAX_RUNS])
        length = 1.0 - field.length_share + field.length_share * len(numbers) / field.pivot
        each = field.weight / length
        shares: dict[int, float] = {}
        for number in numbers:
            shares[number] = shares.get(number, 0.0) + each
        return shares

    def _numbers(self, runs: Sequence[str]) -> list[int]:
        memo = self._memo
        numbers: list[int] = []
        for run in runs:
            known = memo.get(run)
            if known is None:
                known = memo[run] = self._number(run)
            numbers += known
        return numbers

    def _number(self, run: str) -> tuple[int, ...]:
        vocabulary = self.vocabulary
        return tuple(vocabulary.setdefault(term, len(vocabulary)) for term in run_terms(run))


def _named(document: Document) -> Iterable[tuple[str, str]]:
    return zip(FIELDS, field_texts(document), strict=True)
