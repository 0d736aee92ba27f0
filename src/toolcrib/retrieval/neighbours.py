"""Words that mean nearly the same as a word: what a query may also be answered by, at a lower weight.

The pairs are those of the table of word vectors, worked out once (`training/neighbours.py`) and kept in a small file of
their own. So `semantic: off` has them too: it reads no table, and a look-up costs nothing to speak of.

Invariant: a word is never its own neighbour, nor is another form of it: forms meet in their family. Without the file,
words are answered by themselves alone.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import NEIGHBOURS_PER_WORD
from toolcrib.retrieval.vectors import read_arrays

logger = logging.getLogger("toolcrib")

NEIGHBOURS_FILE = Path(__file__).parent / "model" / "neighbours.npz"
_CODES = 255


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Families of words by word, the nearest first."""

    keys: tuple[str, ...] = ()
    """The families that occur as neighbours."""
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    """The row of each word."""
    rows: NDArray[np.uint16] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint16))
    """Numbers of families."""
    codes: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint8))
    """Nearness of each in 255ths; 0 where a word has fewer neighbours."""
    version: str = ""
    """The table that the pairs are from."""
    lacking: str | None = None
    """What searches do without, if the file cannot be used; for `doctor`."""

    def of(self, word: str) -> list[tuple[str, float]]:
        """The families near to a word, each with its nearness, 0 to 1; none for a word that is not known."""
        place = self.places.get(word)
        if place is None:
            return []
        pairs: list[tuple[int, int]] = list(zip(self.rows[place].tolist(), self.codes[place].tolist(), strict=True))
        return [(self.keys[row], code / _CODES) for row, code in pairs[:NEIGHBOURS_PER_WORD] if code]


@cache
def shipped_neighbours() -> Neighbours:
    """What ships with the package, read once in a process."""
    return read_neighbours(NEIGHBOURS_FILE)


def read_neighbours(path: Path) -> Neighbours:
    """The neighbours of a file; none, and a word in the log, if it is missing or damaged."""
    try:
        arrays = read_arrays(path)
        keys, words, version = (arrays[name].tobytes().decode() for name in ("keys", "words", "version"))
        rows = np.asarray(arrays["rows"], dtype=np.uint16)
        codes = np.asarray(arrays["codes"], dtype=np.uint8)
    except (ModelUnavailable, ValueError, KeyError) as error:
        return _unusable(path, str(error))
    families, listed = tuple(keys.split("\n")), words.split("\n")
    if (
        not len(listed) == len(rows) == len(codes)
        or rows.shape != codes.shape
        or int(rows.max(initial=0)) >= len(families)
    ):
        return _unusable(path, "its parts do not belong together")
    return Neighbours(families, dict(zip(listed, range(len(listed)), strict=True)), rows, codes, version)


def _unusable(path: Path, reason: str) -> Neighbours:
    lacking = f"words find only themselves: {path.name} cannot be used ({reason})"
    logger.warning("%s; install toolcrib again", lacking)
    return Neighbours(lacking=lacking)
