"""Postings of many documents in three flat arrays: for each term the rows that hold it, with their impacts.

Invariant: a segment never changes after it was built, so any number of indexes may share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.analysis import Analysed

Rows = NDArray[np.int32]
Impacts = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Postings of rows `0 … rows-1`."""

    rows: int
    numbers: Rows
    """The term numbers that occur, ascending."""
    starts: NDArray[np.int64]
    """Where the postings of each of `numbers` start; one more entry than `numbers`."""
    documents: Rows
    impacts: Impacts
    names: NDArray[np.uint32]
    """Hashes of the names of each row, three columns."""

    def postings(self, number: int) -> tuple[Rows, Impacts]:
        """Rows that hold a term, ascending, with the term's impact in each."""
        at = int(np.searchsorted(self.numbers, number))
        if at == len(self.numbers) or self.numbers[at] != number:
            return self.documents[:0], self.impacts[:0]
        span = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.documents[span], self.impacts[span]


def build_segment(analysed: Sequence[Analysed]) -> Segment:
    """The postings of the given documents; row i is the i-th of them."""
    terms = np.frombuffer(b"".join([each.terms for each in analysed]), dtype=np.int32)
    impacts = np.frombuffer(b"".join([each.impacts for each in analysed]), dtype=np.float32)
    counts = np.fromiter((len(each.terms) for each in analysed), dtype=np.int64, count=len(analysed)) // 4
    rows = np.repeat(np.arange(len(analysed), dtype=np.int32), counts)
    # One sort of packed integers is several times faster than a stable argsort of the terms.
    packed = (terms.astype(np.int64) << 32) | np.arange(len(terms), dtype=np.int64)
    packed.sort()
    order = (packed & 0xFFFFFFFF).astype(np.int32)
    ordered = (packed >> 32).astype(np.int32)
    heads = np.flatnonzero(np.diff(ordered, prepend=np.int32(-1)))
    return Segment(
        rows=len(analysed),
        numbers=ordered[heads],
        starts=np.append(heads, len(ordered)),
        documents=rows[order],
        impacts=impacts[order],
        names=np.array([each.names for each in analysed], dtype=np.uint32).reshape(len(analysed), 3),
    )
