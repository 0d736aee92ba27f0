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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import ANALYSED_MAX_DOCUMENTS, FIELD_MAX_RUNS, RUN_MEMO_MAX_RUNS, VOCABULARY_MAX_TERMS
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.text import family, normal_name, run_terms, runs_of

HEADER_BYTES = 12
"""Bytes before the terms of an analysed document: three hashes of its names, 32 bits each."""
BYTES_PER_TERM = 5
"""Four for the number, one for the impact."""
_CODES = 255


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

    fields: Mapping[str, Field]
    saturation: float = 1.2
    """Weighted occurrences that give half of what endless ones would."""
    coverage: float = 1.0
    """What covering a whole name adds; each of its terms gives its share."""

    def impact_table(self) -> NDArray[np.float32]:
        """The impact that each byte stands for: quadratic, so that small impacts keep their order."""
        codes = np.arange(_CODES + 1, dtype=np.float32)
        return (codes / np.float32(_CODES)) ** 2 * np.float32(1.0 + self.coverage)


def default_weights() -> FieldWeights:
    """The weights that the development sets gave, rounded; docs/retrieval.md shows what each field brings."""
    return FieldWeights(
        fields={
            "name": Field(weight=2.0, pivot=3.0, length_share=0.3),
            "toolset": Field(weight=0.6, pivot=2.0, length_share=0.5),
            "description": Field(weight=1.0, pivot=15.0, length_share=0.7),
            "parameters": Field(weight=1.0, pivot=3.0, length_share=0.3),
            "nested": Field(weight=0.5, pivot=15.0, length_share=0.75),
            "aliases": Field(weight=2.0, pivot=3.0, length_share=0.3),
        }
    )


def name_hash(name: str) -> int:
    """A stable hash of a name without case and separators; 0 for a name with no letters."""
    normal = normal_name(name)
    return (zlib.crc32(normal.encode("utf-8", "surrogatepass")) or 1) if normal else 0


def names_of(document: Document) -> tuple[str, str, str]:
    """The names that a document answers to: exposed name, leaf, and toolset with leaf."""
    return document.key, document.leaf, f"{document.toolset} {document.leaf}"


def field_texts(document: Document) -> Iterable[tuple[str, str]]:
    """Each field with its text."""
    return (
        ("name", document.leaf),
        ("toolset", document.toolset),
        ("description", document.description),
        ("parameters", " ".join(document.parameters)),
        ("nested", document.nested),
        ("aliases", " ".join(document.aliases)),
    )


class Analyser:
    """Numbers terms and keeps analysed documents by digest; a number is never given anew.

    An analysed document is one `bytes`: hashes of its names, its term numbers (int32), and one byte for the
    impact of each term (`impact_table`). One object and five bytes a term keep 100,000 documents small.
    """

    __slots__ = ("_documents", "_memo", "_variants", "_weights", "vocabulary")

    def __init__(self, weights: FieldWeights) -> None:
        self._weights = weights
        self._memo: dict[str, tuple[int, ...]] = {}
        self._documents: dict[str, bytes] = {}
        self._variants: dict[str, tuple[int, ...]] = {}
        self.vocabulary: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """Whether the bounds are reached and a new analyser should take over."""
        return len(self.vocabulary) > VOCABULARY_MAX_TERMS or len(self._documents) > ANALYSED_MAX_DOCUMENTS

    def analyse(self, documents: Iterable[Document]) -> list[bytes]:
        """The analysed documents, from the cache where the content was seen before."""
        cache = self._documents
        found: list[bytes] = []
        for document in documents:
            known = cache.get(document.digest)
            if known is None:
                known = cache[document.digest] = self._analyse(document)
            found.append(known)
        if len(self._memo) > RUN_MEMO_MAX_RUNS:
            self._memo = {}
        return found

    def family_numbers(self, key: str) -> tuple[int, ...]:
        """The numbers of all terms of a word family, in the order in which they were first seen."""
        numbers = self._variants.get(key, ())
        own = self.vocabulary.get(key)
        if own is None or own in numbers or family(key) != key:
            return numbers
        return (own, *numbers)

    def parts(self, document: Document, weights: Mapping[int, float]) -> dict[str, float]:
        """What each field gives to a document's score if terms count as given: an explanation's detail."""
        shares = {name: self._shares(text, self._weights.fields[name]) for name, text in field_texts(document) if text}
        sums: dict[int, float] = {}
        for held in shares.values():
            for term, share in held.items():
                sums[term] = sums.get(term, 0.0) + share
        half = self._weights.saturation
        parts = {
            name: sum(share / (half + sums[term]) * weights[term] for term, share in held.items() if term in weights)
            for name, held in shares.items()
        }
        named = shares.get("name", {})
        covered = sum(weights[term] for term in named if term in weights)
        parts["name_coverage"] = self._weights.coverage * covered / len(named) if named else 0.0
        return parts

    def _analyse(self, document: Document) -> bytes:
        weights = self._weights
        sums: dict[int, float] = {}
        cover: dict[int, float] = {}
        for name, text in field_texts(document):
            if not text:
                continue
            shares = self._shares(text, weights.fields[name])
            if name == "name" and shares:
                cover = dict.fromkeys(shares, weights.coverage / len(shares))
            for term, share in shares.items():
                sums[term] = sums.get(term, 0.0) + share
        half = weights.saturation
        get = cover.get
        scale = _CODES * (1.0 + weights.coverage) ** -0.5
        codes = bytes(
            int(scale * (value / (half + value) + get(term, 0.0)) ** 0.5 + 0.5) for term, value in sums.items()
        )
        header = array("I", [name_hash(name) for name in names_of(document)])
        return header.tobytes() + array("i", sums).tobytes() + codes

    def _shares(self, text: str, field: Field) -> dict[int, float]:
        memo = self._memo
        numbers: list[int] = []
        for run in runs_of(text)[:FIELD_MAX_RUNS]:
            known = memo.get(run)
            if known is None:
                known = memo[run] = self._number(run)
            numbers += known
        length = 1.0 - field.length_share + field.length_share * len(numbers) / field.pivot
        each = field.weight / length
        shares: dict[int, float] = {}
        for number in numbers:
            shares[number] = shares.get(number, 0.0) + each
        return shares

    def _number(self, run: str) -> tuple[int, ...]:
        vocabulary = self.vocabulary
        numbers: list[int] = []
        for term in run_terms(run):
            number = vocabulary.get(term)
            if number is None:
                number = vocabulary[term] = len(vocabulary)
                key = family(term)
                if key != term:
                    self._variants[key] = (*self._variants.get(key, ()), number)
            numbers.append(number)
        return tuple(numbers)
