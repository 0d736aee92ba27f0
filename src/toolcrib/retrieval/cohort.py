"""What tools elsewhere can do: the yardstick of abstention.

A nearness of 0.4 may be a perfect paraphrase or a coincidence; it depends on the query. So the best nearness in this
index is compared with that of abilities at large (real tools and abilities that were written down for this, vectors
only, no text). A query that is much nearer to some ability elsewhere than to anything here asks for what is not here.

Invariant: here and elsewhere are measured alike: a query that meets the tools here by their words alone meets typical
abilities (centres) so, too. The vectors belong to one table of word vectors. Beside another table they mean nothing,
and are not used.
"""

import logging
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolcrib.retrieval.products import CodedVectors
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats

logger = logging.getLogger("toolcrib")

_FILE = "cohort.npz"
_NEAREST, _NEAREST_CENTRES = 3, 10
"""How many of the nearest count: the single nearest of many is near by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Abilities at large."""

    model: StaticModel
    read: CodedVectors
    """Of abilities as they were read: no two of them nearly alike."""
    words: CodedVectors
    """Of typical tools by their words alone: centres."""

    @classmethod
    def load(cls, model: StaticModel, directory: Path = MODEL_DIRECTORY) -> "Cohort | None":
        """The abilities that belong to the model; `None` if there are none, and abstention is then weaker."""
        read = read_vectors(directory / _FILE, model.mark, model.dimensions, name="read")
        words = read_vectors(directory / _FILE, model.mark, model.dimensions, name="words")
        return None if read is None or words is None else cls(model=model, read=read, words=words)

    def nearness(self, query: str, *, by_words: bool) -> float:
        """How near the query is to the few abilities at large that are nearest to it; by words, to the few centres."""
        vector = self.model.point(query)
        if by_words:
            return nearness_to(self.words, vector, _NEAREST_CENTRES)
        return nearness_to(self.read, vector, _NEAREST)


def read_vectors(path: Path, mark: str, dimensions: int, *, name: str) -> CodedVectors | None:
    """The vectors of a file, if they belong to the model of that mark; if not, the log says so."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            version = bytes(archive["version"]).decode()
            codes = np.asarray(archive[name], dtype=np.int8)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        version, codes = "", np.zeros((0, 0), dtype=np.int8)
    if version != mark or codes.ndim != 2 or codes.shape[1] != dimensions:
        logger.warning("%s cannot be used, search abstains less often: install toolcrib again", path.name)
        return None
    return CodedVectors.of(np.ascontiguousarray(codes))


def nearness_to(others: CodedVectors, vector: Floats, count: int) -> float:
    """How near a vector is to those few of others that are nearest to it."""
    scores = others.near(vector)
    few = min(count, len(scores))
    return float(np.partition(scores, len(scores) - few)[len(scores) - few :].mean()) if few else 0.0
