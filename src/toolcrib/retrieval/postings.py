"""Postings of many documents in flat arrays: for each term the rows that hold it, with their impacts.

A `Segment` never changes after it was built, so any number of indexes may share one. `Postings` are one large
segment, the rows of it that are gone, and a small segment of what came since: changing one of 20,000
documents costs what one document costs.

Invariant: `Postings` answer exactly as one fresh segment of the living rows would; only row numbers differ.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.forward import Stretch

_ROW_SHIFT = 8
_ROW_MASK = (1 << 32) - 1
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

    def holding(self, number: int) -> int:
        """How many rows hold a term."""
        return int(self.starts[number + 1] - self.starts[number]) if number + 1 < len(self.starts) else 0

    def add(self, total: Floats, number: int, worth: Floats) -> None:
        """Adds to the rows that hold the term what `worth` says of their codes."""
        if number + 1 >= len(self.starts):
            return
        start, stop = self.starts[number], self.starts[number + 1]
        if start < stop:
            np.add.at(total, self.documents[start:stop], worth[self.codes[start:stop]])


def build_segment(held: Stretch) -> Segment:
    """The postings of the given documents; row i is the i-th of them."""
    count = len(held.sizes)
    rows = np.repeat(np.arange(count, dtype=np.int64), held.sizes)
    # Term, row and code in one integer: one sort, and nothing to gather after it.
    packed = (held.terms.astype(np.int64) << _TERM_SHIFT) | (rows << _ROW_SHIFT) | held.codes
    packed.sort()
    widest = int(packed[-1] >> _TERM_SHIFT) + 1 if len(packed) else 0
    starts = np.zeros(widest + 1, dtype=np.int32)
    np.cumsum(np.bincount(held.terms, minlength=widest), out=starts[1:])
    return Segment(
        rows=count,
        starts=starts,
        documents=((packed >> _ROW_SHIFT) & _ROW_MASK).astype(np.int32),
        codes=packed.astype(np.uint8),
        names=np.ascontiguousarray(held.names.T),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """A base segment, without some of its rows, and with some rows added after it."""

    impacts: Floats
    """The impact that each code stands for."""
    base: Segment
    added: Segment
    gone: NDArray[np.intp]
    """Rows of the base that no longer count."""
    gone_terms: Counter[int] = field(default_factory=Counter[int])
    """In how many of the gone rows each term occurs."""

    @property
    def rows(self) -> int:
        """Rows in all, the gone ones included; added ones are numbered after the base."""
        return self.base.rows + self.added.rows

    @property
    def living(self) -> int:
        """Rows that count."""
        return self.rows - len(self.gone)

    def holding(self, number: int) -> int:
        """How many living rows hold a term."""
        return self.base.holding(number) - self.gone_terms[number] + self.added.holding(number)

    def accumulate(self, weighted: Sequence[tuple[int, float]]) -> Floats:
        """The sum of weighted impacts for every row; gone rows get 0."""
        total = np.zeros(self.rows, dtype=np.float32)
        base, added = total[: self.base.rows], total[self.base.rows :]
        for number, weight in weighted:
            worth = self.impacts * np.float32(weight)
            self.base.add(base, number, worth)
            if self.added.rows:
                self.added.add(added, number, worth)
        if len(self.gone):
            total[self.gone] = 0.0
        return total

    def named(self, wanted: int) -> list[tuple[int, int]]:
        """Kind of name and row of every living row that has a name with the given hash."""
        # All kinds in one pass: nearly every query names nothing.
        found = _places(self.base.names, wanted)
        if found and len(self.gone):
            gone = set(self.gone.tolist())
            found = [(kind, row) for kind, row in found if row not in gone]
        late = _places(self.added.names, wanted) if self.added.rows else []
        return [*found, *((kind, row + self.base.rows) for kind, row in late)]


def _places(names: NDArray[np.uint32], wanted: int) -> list[tuple[int, int]]:
    same = names == wanted
    return [(int(kind), int(row)) for kind, row in zip(*np.nonzero(same), strict=True)] if same.any() else []


def count_terms(held: Stretch) -> Counter[int]:
    """In how many of the documents each term occurs."""
    return Counter(held.terms.tolist())
