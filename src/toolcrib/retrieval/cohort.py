"""What tools elsewhere can do: the yardstick of abstention.

A nearness of 0.4 may be a perfect paraphrase or a coincidence; it depends on the query. So the best nearness in this
index is compared with that of abilities at large (real tools and abilities that were written down for this, vectors
only, no text). A query that is much nearer to some ability elsewhere than to anything here asks for what is not here.

Invariant: here and elsewhere are measured alike: a query that meets the tools here by their words alone meets typical
abilities (centres) so, too. The vectors belong to one table of word vectors. Beside another table they mean nothing,
and are not used.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolcrib.errors import ModelUnavailable
from toolcrib.retrieval.products import CodedVectors, SketchedVectors
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats, read_arrays

logger = logging.getLogger("toolcrib")

_FILE = "cohort.npz"
_NEAREST, _NEAREST_CENTRES = 3, 10
"""How many of the nearest count: the single nearest of many is near by chance."""
_SKETCHED, _SEEMING = 96, 400
"""Dimensions by which abilities are looked through, and how many of them are then measured: the nearest three of 47,000
are among them for 998 of 1,000 queries, and the others are measured 0.006 too far at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Abilities at large."""

    model: StaticModel
    read: SketchedVectors
    """Of abilities as they were read: no two of them nearly alike."""
    words: CodedVectors
    """Of typical tools by their words alone: centres."""

    @classmethod
    def load(cls, model: StaticModel, directory: Path = MODEL_DIRECTORY) -> "Cohort | None":
        """The abilities that belong to the model; `None` if there are none, and abstention is then weaker."""
        found = _read_vectors(directory / _FILE, model.mark, model.dimensions)
        return None if found is None else cls(model=model, read=found[0], words=found[1])

    def nearness(self, query: str, *, by_words: bool) -> float:
        """How near the query is to the few abilities at large that are nearest to it; by words, to the few centres."""
        vector = self.model.point(query)
        if by_words:
            return _mean_of_nearest(self.words.near(vector), _NEAREST_CENTRES)
        return _mean_of_nearest(self.read.near(vector, of=_SEEMING), _NEAREST)


def _read_vectors(path: Path, mark: str, dimensions: int) -> tuple[SketchedVectors, CodedVectors] | None:
    """The vectors of a file, `read` and `words`, if they belong to the model of that mark; if not, the log says so."""
    try:
        arrays = read_arrays(path)
        version = arrays["version"].tobytes().decode()
        read, words = (np.asarray(arrays[name], dtype=np.int8) for name in ("read", "words"))
    except (ModelUnavailable, ValueError, KeyError):
        version, read, words = "", *[np.zeros((0, 0), dtype=np.int8)] * 2
    if version != mark or not all(codes.ndim == 2 and codes.shape[1] == dimensions for codes in (read, words)):
        logger.warning("%s cannot be used, search abstains less often: install toolcrib again", path.name)
        return None
    sketched = SketchedVectors.of(read, dimensions=_SKETCHED)
    return sketched, CodedVectors.of(np.ascontiguousarray(words))


def _mean_of_nearest(scores: Floats, count: int) -> float:
    few = min(count, len(scores))
    return float(np.partition(scores, -few)[-few:].sum(dtype=np.float64)) / few if few else 0.0
