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

from toolcrib.retrieval.analysis import HEADER_WORDS

Rows = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Postings of rows `0 … rows-1`."""

    rows: int
    starts: NDArray[np.int32]
    """Where the postings of each term number start; terms from `len(starts) - 1` on have none."""
    documents: Rows
    impacts: Floats
    names: NDArray[np.uint32]
    """Hashes of the names, one row of this array per kind of name."""

    def holding(self, number: int) -> int:
        """How many rows hold a term."""
        return int(self.starts[number + 1] - self.starts[number]) if number + 1 < len(self.starts) else 0

    def add(self, total: Floats, number: int, weight: float) -> None:
        """Adds the term's impacts, times `weight`, to the rows that hold it."""
        if number + 1 >= len(self.starts):
            return
        start, stop = self.starts[number], self.starts[number + 1]
        if start < stop:
            np.add.at(total, self.documents[start:stop], self.impacts[start:stop] * np.float32(weight))


def build_segment(analysed: Sequence[bytes]) -> Segment:
    """The postings of the given documents; row i is the i-th of them."""
    words = np.frombuffer(b"".join(analysed), dtype=np.int32)
    sizes = np.fromiter(map(len, analysed), dtype=np.int64, count=len(analysed)) // 4
    counts = (sizes - HEADER_WORDS) // 2
    heads = np.cumsum(sizes) - sizes
    rows = np.repeat(np.arange(len(analysed), dtype=np.int32), counts)
    firsts = np.cumsum(counts) - counts
    at = np.arange(len(rows), dtype=np.int64) + np.repeat(heads + HEADER_WORDS - firsts, counts)
    terms = words[at]
    impacts = words[at + np.repeat(counts, counts)].view(np.float32)
    # One sort of packed integers is several times faster than a stable argsort of the terms.
    packed = (terms.astype(np.int64) << 32) | np.arange(len(terms), dtype=np.int64)
    packed.sort()
    order = packed & 0xFFFFFFFF
    widest = int(terms.max()) + 1 if len(terms) else 0
    starts = np.zeros(widest + 1, dtype=np.int32)
    np.cumsum(np.bincount(terms, minlength=widest), out=starts[1:])
    names = words[heads[None, :] + np.arange(HEADER_WORDS)[:, None]].view(np.uint32)
    return Segment(
        rows=len(analysed), starts=starts, documents=rows[order], impacts=impacts[order], names=names
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """A base segment, without some of its rows, and with some rows added after it."""

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
            self.base.add(base, number, weight)
            if self.added.rows:
                self.added.add(added, number, weight)
        if len(self.gone):
            total[self.gone] = 0.0
        return total

    def named(self, wanted: int, kind: int) -> list[int]:
        """Living rows whose name of one kind has the given hash."""
        found = np.flatnonzero(self.base.names[kind] == wanted)
        if len(self.gone) and len(found):
            found = np.setdiff1d(found, self.gone)
        late = np.flatnonzero(self.added.names[kind] == wanted) + self.base.rows
        return [int(row) for row in (*found, *late)]


def amended(
    base: Segment, *, gone: Sequence[int], gone_analysed: Sequence[bytes], added: Segment
) -> Postings:
    """The base without the given rows (whose analysed documents tell which terms go) and with added ones."""
    terms: Counter[int] = Counter()
    for analysed in gone_analysed:
        words = np.frombuffer(analysed, dtype=np.int32)
        terms.update(words[HEADER_WORDS : HEADER_WORDS + (len(words) - HEADER_WORDS) // 2].tolist())
    return Postings(base=base, added=added, gone=np.array(gone, dtype=np.intp), gone_terms=terms)
