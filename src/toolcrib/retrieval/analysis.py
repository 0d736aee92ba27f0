"""Turns a document into weighted terms, once per content.

Every number here depends on the document alone: lengths are normalised against fixed pivots and not against
the average of a catalog. So an analysed document can be kept by its digest, an index can take over what did
not change, and the outcome is the same as that of a fresh build. What depends on the catalog (how rare a
term is) is applied at query time.

Invariant: a field counts for a bounded amount however often it repeats a word (saturation, length,
`FIELD_MAX_RUNS`), so keyword stuffing cannot buy rank (D1).
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import ANALYSED_MAX_DOCUMENTS, FIELD_MAX_RUNS, RUN_MEMO_MAX_RUNS, VOCABULARY_MAX_TERMS
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.text import ascii_runs, family, normal_name, plain_name, run_terms, runs_of

HEADER_BYTES = 12
"""Bytes before the terms of an analysed document: three hashes of its names, 32 bits each."""
BYTES_PER_TERM = 5
"""Four for the number, one for the impact."""
_CODES = 255
_BATCH = 256
"""Documents analysed at once: enough to spread the cost of an array operation, small enough for the cache."""
_FIELD_BITS = 3
_TERM_BITS = 40


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
    # The same bytes by a shorter way: three of these are made for every document.
    normal = plain_name(name) if name.isascii() else normal_name(name).encode("utf-8", "surrogatepass")
    return (zlib.crc32(normal) or 1) if normal else 0


def names_of(document: Document) -> tuple[str, str, str]:
    """The names that a document answers to: exposed name, leaf, and toolset with leaf."""
    return document.key, document.leaf, f"{document.toolset} {document.leaf}"


FIELDS = ("name", "toolset", "description", "parameters", "nested", "aliases")


def field_texts(document: Document) -> Iterable[tuple[str, str]]:
    """Each field with its text, in the order of `FIELDS`."""
    return (
        ("name", document.leaf),
        ("toolset", document.toolset),
        ("description", document.description),
        ("parameters", " ".join(document.parameters)),
        ("nested", document.nested),
        ("aliases", " ".join(document.aliases)),
    )


class _Runs(dict[bytes | str, tuple[int, ...]]):
    """The term numbers of runs; a run that is asked for the first time is taken apart then."""

    def __init__(self, number: Callable[[str], tuple[int, ...]]) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, run: bytes | str) -> tuple[int, ...]:
        numbers = self[run] = self._number(run if isinstance(run, str) else run.decode())
        return numbers


class Analyser:
    """Numbers terms and keeps analysed documents by digest; a number is never given anew.

    An analysed document is one `bytes`: hashes of its names, its term numbers (int32), and one byte for the
    impact of each term (`impact_table`). One object and five bytes a term keep 100,000 documents small.
    """

    __slots__ = ("_documents", "_fields", "_runs", "_variants", "_weights", "vocabulary")

    def __init__(self, weights: FieldWeights) -> None:
        self._weights = weights
        self._fields = tuple(weights.fields[name] for name in FIELDS)
        self._runs = _Runs(self._number)
        self._documents: dict[str, bytes] = {}
        self._variants: dict[str, tuple[int, ...]] = {}
        self.vocabulary: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """Whether the bounds are reached and a new analyser should take over."""
        return len(self.vocabulary) > VOCABULARY_MAX_TERMS or len(self._documents) > ANALYSED_MAX_DOCUMENTS

    def analyse(self, documents: Iterable[Document]) -> list[bytes]:
        """The analysed documents, from the cache where the content was seen before."""
        cache, given = self._documents, tuple(documents)
        missing = {document.digest: document for document in given if document.digest not in cache}
        news = tuple(missing.values())
        for start in range(0, len(news), _BATCH):
            batch = news[start : start + _BATCH]
            cache.update(zip((document.digest for document in batch), self._analyse(batch), strict=True))
        if len(self._runs) > RUN_MEMO_MAX_RUNS:
            self._runs.clear()
        return [cache[document.digest] for document in given]

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

    def _analyse(self, batch: Sequence[Document]) -> Iterable[bytes]:
        """All terms of a batch in one array, sorted by document, term and field, and summed up there."""
        numbers: list[int] = []
        ends: list[int] = []
        for document in batch:
            for _, text in field_texts(document):
                if text:
                    numbers += self._numbers(text)
                ends.append(len(numbers))
        lengths = np.diff(np.array(ends, dtype=np.int64), prepend=0)
        each = self._worth(lengths.reshape(len(batch), -1)).ravel()
        slots = np.repeat(np.arange(len(lengths)), lengths)
        rows, fields = np.divmod(slots, len(FIELDS))
        keys = (rows << _TERM_BITS) | (np.array(numbers, dtype=np.int64) << _FIELD_BITS) | fields
        keys, counts = np.unique(keys, return_counts=True)
        rows, fields = keys >> _TERM_BITS, keys & ((1 << _FIELD_BITS) - 1)
        shares = counts * each[rows * len(FIELDS) + fields]
        groups = np.flatnonzero(np.diff(keys >> _FIELD_BITS, prepend=-1))
        sums = np.add.reduceat(shares, groups) if len(groups) else shares
        named = np.bincount(rows[fields == 0], minlength=len(batch))
        rows = rows[groups]
        # The name is field 0, so a term of the name has its group begin with it.
        cover = np.where(fields[groups] == 0, self._weights.coverage / np.maximum(named, 1)[rows], 0.0)
        scale = _CODES * (1.0 + self._weights.coverage) ** -0.5
        codes = (scale * np.sqrt(sums / (self._weights.saturation + sums) + cover) + 0.5).astype(np.uint8).tobytes()
        terms = ((keys[groups] >> _FIELD_BITS) & ((1 << (_TERM_BITS - _FIELD_BITS)) - 1)).astype(np.int32).tobytes()
        heads = np.array([name_hash(name) for document in batch for name in names_of(document)], dtype=np.uint32)
        head = heads.tobytes()
        bounds: list[int] = np.searchsorted(rows, np.arange(len(batch) + 1)).tolist()
        for row, (start, stop) in enumerate(pairwise(bounds)):
            yield head[row * HEADER_BYTES : (row + 1) * HEADER_BYTES] + terms[4 * start : 4 * stop] + codes[start:stop]

    def _worth(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """What one occurrence in each field is worth, by the number of terms in it."""
        weight, pivot, share = np.array([(f.weight, f.pivot, f.length_share) for f in self._fields]).T
        return weight / (1.0 - share + share * lengths / pivot)

    def _numbers(self, text: str) -> list[int]:
        runs = (ascii_runs(text) if text.isascii() else runs_of(text))[:FIELD_MAX_RUNS]
        return list(chain.from_iterable(map(self._runs.__getitem__, runs)))

    def _shares(self, text: str, field: Field) -> dict[int, float]:
        numbers = self._numbers(text)
        length = 1.0 - field.length_share + field.length_share * len(numbers) / field.pivot
        return {number: count * field.weight / length for number, count in Counter(numbers).items()}

    def _number(self, run: str) -> tuple[int, ...]:
        vocabulary = self.vocabulary
        numbers: list[int] = []
        for term in run_terms(run):
            number = vocabulary.get(term)
            if number is None:
                number = vocabulary[term] = len(vocabulary)
                # No other ending makes a word form: most terms are spared the question.
                key = family(term) if term[-1] in "sgde" else term
                if key != term:
                    self._variants[key] = (*self._variants.get(key, ()), number)
            numbers.append(number)
        return tuple(numbers)
