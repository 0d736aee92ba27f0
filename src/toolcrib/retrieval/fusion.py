"""Decides how words and meaning add up to one score.

Words are worth their plain sum, in a small fixed unit; meaning is the cosine. So a long query, which tells much by
its words, leans on them, and a short one, whose single shared word may be a coincidence, leans on meaning. A share of
what the query could have been worth does the opposite, and the share of the best hit makes a poor match look perfect.
A query that states several needs is also looked up clause by clause (`clauses`).

Invariant: without meaning (no model, or no word that it knows) the order is that of words alone.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionWeights:
    """How the parts count; a zero switches a part off."""

    words: float = 0.03
    """One unit of the word score (BM25), against a cosine of 1."""
    words_alone: float = 0.035
    """The same for a query that meets tools by its words alone, whose cosines are others."""
    meaning: float = 1.0
    clauses: float = 0.4
    """How much of what its best clause adds a document takes."""
    standing: float = 0.3
    """What it costs to stand behind the best document of every clause, per unit of score."""

    def by_words(self) -> "FusionWeights":
        """The weights for a query that meets tools by its words alone."""
        return replace(self, words=self.words_alone)


def fuse(words: Floats, meaning: Floats, weights: FusionWeights) -> Floats:
    """One score per row from the scores of words and of meaning."""
    fused = words * np.float32(weights.words)
    fused += meaning * np.float32(weights.meaning)
    return fused
