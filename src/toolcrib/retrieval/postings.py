"""Postings of many documents in flat arrays: for each term the rows that hold it, with their impacts.

A `Segment` never changes after it was built, so any number of indexes may share one; `reading` is how queries use it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.retrieval.forward import NAMES, Stretch

_ROW_SHIFT = 8
_TERM_SHIFT = 40
"""Bits of a posting while it is sorted: 23 for the term, 32 for the row, 8 for the code."""

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

    def __post_init__(self) -> None:
        """Closes the arrays: whoever checked them once may rely on them."""
        for array in (self.starts, self.documents, self.codes, self.names):
            array.setflags(write=False)

    def holding(self, number: int) -> int:
        """How many rows hold a term."""
        starts = self.starts
        return starts.item(number + 1) - starts.item(number) if number + 1 < len(starts) else 0

    def span(self, number: int) -> slice:
        """Where the postings of a term stand."""
        if number + 1 >= len(self.starts):
            return slice(0, 0)
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


NO_POSTINGS = Segment(
    rows=0,
    starts=np.zeros(1, dtype=np.int32),
    documents=np.empty(0, dtype=np.int32),
    codes=np.empty(0, dtype=np.uint8),
    names=np.empty((NAMES, 0), dtype=np.uint32),
)


def build_segment(held: Stretch, rows: NDArray[np.int64] | None = None) -> Segment:
    """The postings of the given documents; row i is the i-th of them, unless `rows` says which row each is."""
    count = len(held.sizes)
    if kernel is not None:
        starts, documents, codes = kernel.segment(held.sizes, held.terms, held.codes, rows)
        return Segment(
            rows=count,
            starts=np.frombuffer(starts, dtype=np.int32),
            documents=np.frombuffer(documents, dtype=np.int32),
            codes=np.frombuffer(codes, dtype=np.uint8),
            names=_in_rows(held.names, rows),
        )
    places = np.arange(count) if rows is None else rows
    # Term, row and code in one integer: one sort, and nothing to gather after it. All of it in place: each further
    # array of this size would be memory that the process keeps.
    packed = np.repeat(places << _ROW_SHIFT, held.sizes)
    packed += held.terms * np.int64(1 << _TERM_SHIFT)
    packed += held.codes
    packed.sort()
    widest = int(packed[-1] >> _TERM_SHIFT) + 1 if len(packed) else 0
    starts = _starts(packed, widest)
    codes = packed.astype(np.uint8)
    packed >>= _ROW_SHIFT
    return Segment(
        rows=count,
        starts=starts,
        documents=packed.astype(np.int32),  # the lower 32 bits: the term is cut off
        codes=codes,
        names=_in_rows(held.names, rows),
    )


def _in_rows(names: NDArray[np.uint32], rows: NDArray[np.int64] | None) -> NDArray[np.uint32]:
    if rows is None:
        return np.ascontiguousarray(names.T)
    placed = np.empty((NAMES, len(names)), dtype=np.uint32)
    placed[:, rows] = names.T
    return placed


def _starts(packed: NDArray[np.int64], widest: int) -> NDArray[np.int32]:
    """Where the postings of each term number start."""
    if len(packed) > widest:
        return np.searchsorted(packed, np.arange(widest + 1, dtype=np.int64) << _TERM_SHIFT).astype(np.int32)
    # Few postings under many numbers: counting them takes a tenth of the time, and little memory.
    counts = np.zeros(widest + 1, dtype=np.int32)
    np.add.at(counts, (packed >> _TERM_SHIFT) + 1, 1)
    return np.cumsum(counts, dtype=np.int32, out=counts)


def read_rows(segment: Segment, rows: NDArray[np.int64]) -> Stretch:
    """What went into the segment for these rows, in this order: postings lose nothing."""
    places = np.full(segment.rows, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    packed = places[segment.documents]
    wanted = packed >= 0
    terms = np.repeat(np.arange(len(segment.starts) - 1, dtype=np.int64), np.diff(segment.starts))
    packed <<= _TERM_SHIFT
    packed += terms << _ROW_SHIFT
    packed += segment.codes
    packed = packed[wanted]
    packed.sort()
    return Stretch(
        sizes=np.bincount(packed >> _TERM_SHIFT, minlength=len(rows)),
        terms=(packed >> _ROW_SHIFT).astype(np.int32),
        codes=packed.astype(np.uint8),
        names=segment.names.T[rows],
    )


def terms_of(held: Stretch) -> list[list[int]]:
    """The terms of each document."""
    return [part.tolist() for part in np.split(held.terms, np.cumsum(held.sizes)[:-1])]
