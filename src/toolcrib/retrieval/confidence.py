"""Turns the signals of one search into the probability that its best hit is meant, and decides to abstain.

Invariant: no single word decides. A word that the index does not know lowers what words can say, never to
zero what meaning says; so a filler or unknown word cannot empty an answerable query (X2).
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a search saw of its best row."""

    nearest: float
    """The greatest nearness in meaning of any row."""
    meaning: float
    """Nearness in meaning of the best row."""
    words: float
    """The best word score, as a share of what the query could have been worth."""
    fused: float
    """The best fused score."""
    known: float
    """Share of the query's worth in words that the index knows."""
    mass: float
    """What the query could have been worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A logistic curve over the signals, and the confidence below which nothing fits."""

    nearest: float = 4.0
    meaning: float = 1.0
    words: float = 3.0
    fused: float = 2.0
    known: float = 0.5
    mass: float = 0.0
    offset: float = -3.0
    floor: float = 0.02

    def confidence(self, signals: Signals) -> float:
        """How likely the best hit is what was meant, 0 to 1."""
        value = (
            self.offset
            + self.nearest * signals.nearest
            + self.meaning * signals.meaning
            + self.words * signals.words
            + self.fused * signals.fused
            + self.known * signals.known
            + self.mass * math.log1p(max(0.0, signals.mass))
        )
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, value))))

    def abstains(self, confidence: float) -> bool:
        """Whether nothing fits."""
        return confidence < self.floor
