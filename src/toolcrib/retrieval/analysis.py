"""Turns a document into weighted terms, once per content.

Every number here depends on the document alone: lengths are normalised against fixed pivots and not against
the average of a catalog. So an index can take over what did not change from the one before it, and the outcome is the
same as that of a fresh build. What depends on the catalog (how rare a
term is) is applied at query time.

Invariant: a field counts for a bounded amount however often it repeats a word (saturation, length,
`FIELD_MAX_RUNS`), so keyword stuffing cannot buy rank (D1).
"""

import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.limits import FIELD_MAX_RUNS, TERM_MAX_CHARS, VOCABULARY_MAX_TERMS
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.documents import ENUM_MAX_VALUES, NESTED_MAX_CHARS, NESTED_MAX_DEPTH, described, read_inside
from toolcrib.retrieval.families import Families
from toolcrib.retrieval.forward import NAMES, Stretch, joined
from toolcrib.retrieval.numbering import Numbering
from toolcrib.retrieval.text import normal_name, plain_name

Shares = Mapping[str, Mapping[int, float]]
"""By field and term, how much a term counts there."""

_CODES = 255
_BATCH = 256
"""Documents analysed at once: enough to spread the cost of an array operation, small enough for the cache."""
_FIELD_BITS = 3
_BOUNDS = TERM_MAX_CHARS, FIELD_MAX_RUNS, NESTED_MAX_CHARS, NESTED_MAX_DEPTH, ENUM_MAX_VALUES
_TERM_BITS = 20
"""Bits of a term's number, while there are no more terms: with a row of a batch and a field that is 31."""


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
    coverage: float = 0.6
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
            "description": Field(weight=1.0, pivot=15.0, length_share=0.35),
            "parameters": Field(weight=1.0, pivot=3.0, length_share=0.3),
            "nested": Field(weight=0.5, pivot=15.0, length_share=0.35),
            "aliases": Field(weight=2.0, pivot=3.0, length_share=0.3),
        }
    )


def name_hash(name: str) -> int:
    """A stable hash of a name without case and separators; 0 for a name with no letters."""
    if kernel is not None and (found := kernel.name_hash(name)) is not None:
        return found
    # The same bytes by a shorter way: three of these are made for every document.
    normal = plain_name(name) if name.isascii() else normal_name(name).encode("utf-8", "surrogatepass")
    return (zlib.crc32(normal) or 1) if normal else 0


def names_of(document: Document) -> tuple[str, str, str]:
    """The names that a document answers to: exposed name, leaf, and toolset with leaf."""
    return document.key, document.leaf, f"{document.toolset} {document.leaf}"


def _name_hashes(batch: Sequence[Document]) -> NDArray[np.uint32]:
    """The hashes of the three names of each document."""
    hashes = [name_hash(name) for document in batch for name in names_of(document)]
    return np.array(hashes, dtype=np.uint32).reshape(len(batch), NAMES)


FIELDS = ("name", "toolset", "description", "parameters", "nested", "aliases")


def field_texts(document: Document) -> Iterable[tuple[str, str]]:
    """Each field with its text, in the order of `FIELDS`."""
    return zip(FIELDS, _texts(document), strict=True)


def _texts(document: Document) -> tuple[str, str, str, str, str, str]:
    parameters, nested = document.inside()
    return (
        document.leaf,
        document.toolset,
        document.description,
        " ".join(parameters),
        nested,
        " ".join(document.aliases),
    )


class Analyser:
    """Turns documents into numbered terms with impacts; a number is never given anew."""

    __slots__ = ("_numbering", "_scale", "_shape", "_weights")

    def __init__(self, weights: FieldWeights) -> None:
        self._weights = weights
        self._scale = _CODES * (1.0 + weights.coverage) ** -0.5
        numbers = [(each.weight, each.pivot, each.length_share) for each in map(weights.fields.__getitem__, FIELDS)]
        self._shape = array("d", chain(*numbers, (weights.coverage, weights.saturation, self._scale)))
        """All of it as the compiled kernel takes it: three numbers a field, and three for all."""
        self._numbering = Numbering()

    @property
    def vocabulary(self) -> dict[str, int]:
        """The terms with their numbers."""
        return self._numbering.vocabulary

    @property
    def full(self) -> bool:
        """Whether the bound is reached and a new analyser should take over."""
        return len(self.vocabulary) > VOCABULARY_MAX_TERMS

    def analyse(self, documents: Sequence[Document]) -> Stretch:
        """What is to be known of the documents, in their order."""
        if 0 < len(documents) <= _BATCH:
            held = self._analyse(documents)
        else:
            starts = range(0, len(documents), _BATCH)
            held = joined(self._analyse(documents[start : start + _BATCH]) for start in starts)
        self._numbering.rest()
        return held

    @property
    def families(self) -> Families:
        """The terms by word family."""
        return self._numbering.families

    def shares(self, document: Document) -> Shares:
        """The terms of each field of a document, and how much each counts there: for explanations."""
        return {name: self._shares(text, self._weights.fields[name]) for name, text in field_texts(document) if text}

    def parts(self, shares: Shares, weights: Mapping[int, float]) -> dict[str, float]:
        """What each field gives to a document's score if terms count as given: an explanation's detail."""
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

    def _analyse(self, batch: Sequence[Document]) -> Stretch:
        """What is to be known of some documents; the terms of each are in no order."""
        numbering = self._numbering
        if kernel is None or numbering.memo is None:
            return self._sum_up(batch)
        parts = described(batch)
        sizes, terms, codes = kernel.analyse(numbering.memo, numbering.runs, read_inside, parts, self._shape, _BOUNDS)
        hashes = kernel.name_hashes(parts)
        return Stretch(
            sizes=np.frombuffer(sizes, dtype=np.int64),
            terms=np.frombuffer(terms, dtype=np.int32),
            codes=np.frombuffer(codes, dtype=np.uint8),
            names=_name_hashes(batch) if hashes is None else np.frombuffer(hashes, dtype=np.uint32).reshape(-1, NAMES),
        )

    def _sum_up(self, batch: Sequence[Document]) -> Stretch:
        """All terms of a batch in one array, sorted by document, term and field, and summed up there."""
        numbers, places = self._numbering.numbers(map(_texts, batch))
        lengths = np.bincount(places, minlength=len(batch) * len(FIELDS))
        each = self._worth(lengths.reshape(len(batch), -1)).ravel()
        bits = max(_TERM_BITS, len(self.vocabulary).bit_length())
        # In 32 bits as long as they suffice: sorting takes half the time.
        wide = np.int32 if bits == _TERM_BITS else np.int64
        slots = np.arange(len(lengths), dtype=wide)
        heads = (slots // len(FIELDS) << (bits + _FIELD_BITS)) | slots % len(FIELDS)
        keys, counts = _counted(heads[places] | (numbers.astype(wide) << _FIELD_BITS))
        rows, fields = keys >> (bits + _FIELD_BITS), keys & ((1 << _FIELD_BITS) - 1)
        shares = counts * each[rows * len(FIELDS) + fields]
        groups = np.flatnonzero(np.diff(keys >> _FIELD_BITS, prepend=-1))
        sums = np.add.reduceat(shares, groups) if len(groups) else shares
        named = np.bincount(rows[fields == 0], minlength=len(batch))
        rows = rows[groups]
        # The name is field 0, so a term of the name has its group begin with it.
        cover = np.where(fields[groups] == 0, self._weights.coverage / np.maximum(named, 1)[rows], 0.0)
        codes = (self._scale * np.sqrt(sums / (self._weights.saturation + sums) + cover) + 0.5).astype(np.uint8)
        terms = (keys[groups] >> _FIELD_BITS) & ((1 << bits) - 1)
        sizes = np.bincount(rows, minlength=len(batch))
        return Stretch(sizes=sizes, terms=terms.astype(np.int32), codes=codes, names=_name_hashes(batch))

    def _worth(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """What one occurrence in each field is worth, by the number of terms in it."""
        weight, pivot, share = np.array(self._shape[: 3 * len(FIELDS)]).reshape(-1, 3).T
        return weight / (1.0 - share + share * lengths / pivot)

    def _shares(self, text: str, field: Field) -> dict[int, float]:
        numbers: list[int] = self._numbering.numbers([(text,)])[0].tolist()
        length = 1.0 - field.length_share + field.length_share * len(numbers) / field.pivot
        return {number: count * field.weight / length for number, count in Counter(numbers).items()}


def _counted(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct keys in order, and how often each occurs; sorts them in place."""
    keys.sort()
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[firsts], np.diff(firsts, append=len(keys))
