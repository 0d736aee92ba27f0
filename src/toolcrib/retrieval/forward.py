"""What analysis found, document by document, in flat arrays that only ever grow.

Five bytes a term and no object per document. A document is a row here, and stays that row.
"""

from dataclasses import dataclass
from itertools import pairwise

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
    """All analysed documents of one analyser, in the blocks in which they came: nothing is ever moved."""

    __slots__ = ("_blocks", "_firsts", "_rows")

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[np.int64], Stretch]] = []
        """Where the terms of each document of a block start, and the block."""
        self._firsts: list[int] = []
        self._rows = 0

    def append(self, held: Stretch) -> int:
        """Takes documents in, and says in which row the first of them is."""
        first = self._rows
        self._blocks.append((np.concatenate(([0], np.cumsum(held.sizes))), held))
        self._firsts.append(first)
        self._rows += len(held.sizes)
        return first

    def take(self, rows: NDArray[np.int64]) -> Stretch:
        """The documents of these rows, in this order."""
        blocks = np.searchsorted(np.array(self._firsts, dtype=np.int64), rows, side="right") - 1
        # Rows that follow each other in one block are taken as one.
        borders = np.flatnonzero((np.diff(rows) != 1) | (np.diff(blocks) != 0)) + 1
        parts = [NOTHING]
        for start, stop in pairwise((0, *borders.tolist(), len(rows)) if len(rows) else ()):
            number = int(blocks[start])
            first = int(rows[start]) - self._firsts[number]
            parts.append(_slice(*self._blocks[number], first, first + stop - start))
        return Stretch(
            sizes=np.concatenate([part.sizes for part in parts]),
            terms=np.concatenate([part.terms for part in parts]),
            codes=np.concatenate([part.codes for part in parts]),
            names=np.concatenate([part.names for part in parts]),
        )


NOTHING = Stretch(
    sizes=np.empty(0, dtype=np.int64),
    terms=np.empty(0, dtype=np.int32),
    codes=np.empty(0, dtype=np.uint8),
    names=np.empty((0, NAMES), dtype=np.uint32),
)
"""No documents."""


def _slice(starts: NDArray[np.int64], held: Stretch, first: int, stop: int) -> Stretch:
    terms = slice(int(starts[first]), int(starts[stop]))
    return Stretch(
        sizes=held.sizes[first:stop],
        terms=held.terms[terms],
        codes=held.codes[terms],
        names=held.names[first:stop],
    )
