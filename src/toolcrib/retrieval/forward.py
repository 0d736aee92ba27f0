"""What analysis found, document by document, in flat arrays that only ever grow.

Five bytes a term and no object per document. A document is a row here, and stays that row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = 3
"""Names that a document answers to, each as a hash of 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some documents: the terms of the first, then those of the second, and so on."""

    sizes: NDArray[np.int64]
    """How many terms each has."""
    terms: NDArray[np.int32]
    codes: NDArray[np.uint8]
    """The impact of each term, as a place in a table of impacts."""
    names: NDArray[np.uint32]
    """One row per document."""


class Forward:
    """All analysed documents of one analyser."""

    __slots__ = ("_codes", "_names", "_rows", "_starts", "_terms", "_used")

    def __init__(self) -> None:
        self._rows = 0
        self._used = 0
        self._starts = np.zeros(1, dtype=np.int64)
        self._terms = np.empty(0, dtype=np.int32)
        self._codes = np.empty(0, dtype=np.uint8)
        self._names = np.empty((0, NAMES), dtype=np.uint32)

    def append(
        self,
        *,
        sizes: NDArray[np.int64],
        terms: NDArray[Any],
        codes: NDArray[np.uint8],
        names: NDArray[np.uint32],
    ) -> int:
        """Takes documents in, and says in which row the first of them is."""
        first, used = self._rows, self._used
        self._rows, self._used = first + len(sizes), used + len(terms)
        if self._rows >= len(self._starts):
            room = 2 * self._rows
            self._starts = _grown(self._starts, room + 1)
            self._names = _grown(self._names, room)
        if self._used > len(self._terms):
            room = self._used + max(self._used // 4, 4_096)
            self._terms = _grown(self._terms, room)
            self._codes = _grown(self._codes, room)
        self._starts[first + 1 : self._rows + 1] = used + np.cumsum(sizes)
        self._terms[used : self._used] = terms
        self._codes[used : self._used] = codes
        self._names[first : self._rows] = names
        return first

    def take(self, rows: NDArray[np.int64]) -> Stretch:
        """The documents of these rows, in this order."""
        starts = self._starts[rows]
        sizes = self._starts[rows + 1] - starts
        if len(rows) and bool((np.diff(rows) == 1).all()):
            # Nothing but one stretch of rows, as in a first build.
            held = slice(int(starts[0]), int(starts[0] + sizes.sum()))
            return Stretch(
                sizes=sizes, terms=self._terms[held], codes=self._codes[held], names=self._names[rows[0] : rows[-1] + 1]
            )
        before = np.cumsum(sizes) - sizes
        places = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
        return Stretch(sizes=sizes, terms=self._terms[places], codes=self._codes[places], names=self._names[rows])


def _grown(old: NDArray[Any], room: int) -> NDArray[Any]:
    # What is not written to yet takes no memory: a large array is mapped, not filled.
    new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
    new[: len(old)] = old
    return new
