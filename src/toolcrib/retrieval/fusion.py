"""Decides how words and meaning add up to one score.

Words are worth their plain sum, in a small fixed unit; meaning is the cosine. So a long query, which tells much by
its words, leans on them, and a short one, whose single shared word may be a coincidence, leans on meaning. A share of
what the query could have been worth does the opposite, and the share of the best hit makes a poor match look perfect.
A query that states several needs is also looked up clause by clause (`clauses`), and the best few tools are compared
with the query piece by piece (`comparing`) or, in doubt, read together with it (`joint`): within bounds, since that
judges one need at a time.

Invariant: without meaning (no model, or no word that it knows) the order is that of words alone.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_SURE = np.float32(3.0)
"""Log odds from which on, up or down, a judgement counts no more."""


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
    compared: float = 0.04
    """One unit of the log odds that a document does what is asked."""
    together: float = 0.05
    """The same for a document that was read together with the query (`joint`)."""
    courtesies: bool = False
    """Whether courtesies around a query count (`courtesy`)."""

    def by_words(self) -> "FusionWeights":
        """The weights for a query that meets tools by its words alone."""
        return replace(self, words=self.words_alone)


def fuse(words: Floats, meaning: Floats, weights: FusionWeights) -> Floats:
    """One score per row from the scores of words and of meaning."""
    fused = words * np.float32(weights.words)
    fused += meaning * np.float32(weights.meaning)
    return fused


def compared_part(judged: Floats, weights: FusionWeights, needs: int) -> Floats:
    """What documents get for how well they do what is asked, laid beside the query."""
    return _judged_part(judged, weights.compared, needs)


def together_part(judged: Floats, weights: FusionWeights, needs: int) -> Floats:
    """What documents get for how well they do what is asked, read together with the query."""
    return _judged_part(judged, weights.together, needs)


def _judged_part(judged: Floats, weight: float, needs: int) -> Floats:
    """None loses against one that was not looked at.

    Of several needs a tool meets one, and is judged by all: the more there are, the less that says. Of a tool that is
    not read, for instance because it is in another language, nothing is known: it gets the mean.
    """
    part = (np.clip(judged, -_SURE, _SURE) + _SURE) * np.float32(weight / max(1, needs) ** 0.5)
    unread = np.isnan(part)
    if unread.any():
        part[unread] = part[~unread].mean()
    return part
