"""Turns the signals of one search into the probability that its best hit is meant, and decides to abstain.

Two lines over the same signals: how likely the first hit is right (fitted on the development sets by
`python -m bench.calibration`), and whether anything fits. The second is kept plain, nearness here against nearness
elsewhere: a fitted line did better on the sets it was fitted on, and worse on the project's own corpus.

Invariant: no single word decides. A word that the index does not know lowers what words can say, never what meaning
says; so a filler or unknown word cannot empty an answerable query (X2).
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a search saw."""

    nearest: float
    """The greatest nearness in meaning of any row."""
    elsewhere: float
    """How near abilities at large are; the same as `nearest` where that is not known."""
    words: float
    """The best word score, as a share of what the query could have been worth."""
    lead: float
    """How far the best fused score is ahead of the fifth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A weighted sum of the signals."""

    nearest: float
    elsewhere: float
    words: float
    lead: float
    offset: float

    def value(self, signals: Signals) -> float:
        """The sum."""
        return (
            self.offset
            + self.nearest * signals.nearest
            + self.elsewhere * signals.elsewhere
            + self.words * signals.words
            + self.lead * signals.lead
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How signals become decisions."""

    first_right: Line = Line(nearest=4.9, elsewhere=-2.75, words=0.25, lead=3.1, offset=-2.9)
    """Log odds that the first hit is right."""
    fits: Line = Line(nearest=1.0, elsewhere=-1.0, words=0.1, lead=0.0, offset=0.0)
    """The greater, the more likely that something fits: how much nearer this index is than tools at large."""
    floor: float = -0.16
    """Below this value of `fits` the search abstains, unless it is sure for one of the two reasons below."""
    sure_meaning: float = 0.35
    """Nearness here from which on something fits, however much better tools elsewhere would."""
    sure_words: float = 0.3
    """Share of the query's words that one tool holds from which on something fits."""

    def confidence(self, signals: Signals) -> float:
        """How likely the best hit is what was meant, 0 to 1."""
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.first_right.value(signals)))))

    def abstains(self, signals: Signals) -> bool:
        """Whether nothing fits."""
        sure = signals.nearest >= self.sure_meaning or signals.words >= self.sure_words
        return not sure and self.fits.value(signals) < self.floor
