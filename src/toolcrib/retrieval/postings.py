"""Postings of many documents in flat arrays: for each term the rows that hold it, with their impacts.

A `Segment` never changes after it was built, so any number of indexes may share one; `reading` is how queries use it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.analysis import BYTES_PER_TERM, HEADER_BYTES

Rows = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Postings of rows `0 … rows-1`."""

    rows: int
    starts: NDArray[np.int32]
    """Where the postings of each term number start; terms from `len(starts) - 1` on have none."""
    documents: Rows
    codes: NDArray[np.uint8]
    """The impact of each posting, as a place in a table of impacts."""
    names: NDArray[np.uint32]
    """Hashes of the names, one row of this array per kind of name."""

    def holding(self, number: int) -> int:
        """How many rows hold a term."""
        return int(self.starts[number + 1] - self.starts[number]) if number + 1 < len(self.starts) else 0

    def span(self, number: int) -> slice:
        """Where the postings of a term stand."""
        if number + 1 >= len(self.starts):
            return slice(0, 0)
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


def build_segment(analysed: Sequence[bytes]) -> Segment:
    """The postings of the given documents; row i is the i-th of them."""
    counts = np.fromiter(map(len, analysed), dtype=np.int64, count=len(analysed))
    counts = (counts - HEADER_BYTES) // BYTES_PER_TERM
    heads = b"".join([each[:HEADER_BYTES] for each in analysed])
    terms = np.frombuffer(b"".join([_terms_of(each) for each in analysed]), dtype=np.int32)
    codes = b"".join([each[_codes_at(each) :] for each in analysed])
    rows = np.repeat(np.arange(len(analysed), dtype=np.int32), counts)
    # One sort of packed integers is several times faster than a stable argsort of the terms.
    packed = (terms.astype(np.int64) << 32) | np.arange(len(terms), dtype=np.int64)
    packed.sort()
    order = packed & 0xFFFFFFFF
    widest = int(terms.max()) + 1 if len(terms) else 0
    starts = np.zeros(widest + 1, dtype=np.int32)
    np.cumsum(np.bincount(terms, minlength=widest), out=starts[1:])
    return Segment(
        rows=len(analysed),
        starts=starts,
        documents=rows[order],
        codes=np.frombuffer(codes, dtype=np.uint8)[order],
        names=np.ascontiguousarray(np.frombuffer(heads, dtype=np.uint32).reshape(len(analysed), -1).T)
        if analysed
        else np.zeros((HEADER_BYTES // 4, 0), dtype=np.uint32),
    )


def _codes_at(analysed: bytes) -> int:
    return HEADER_BYTES + (len(analysed) - HEADER_BYTES) // BYTES_PER_TERM * (BYTES_PER_TERM - 1)


def _terms_of(analysed: bytes) -> bytes:
    return analysed[HEADER_BYTES : _codes_at(analysed)]


def count_terms(analysed: Sequence[bytes]) -> Counter[int]:
    """In how many of the analysed documents each term occurs."""
    terms: Counter[int] = Counter()
    for each in analysed:
        terms.update(np.frombuffer(_terms_of(each), dtype=np.int32).tolist())
    return terms
