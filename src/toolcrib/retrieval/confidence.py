"""Turns the signals of one search into the probability that its best hit is meant, and decides to abstain.

Lines over the same signals, all fitted on the development sets by `python -m bench.calibration`: how likely the first
hit is right, and whether anything fits. What counts for the second is how near this index is against how near tools
elsewhere are; how much of a difference is needed depends on both, on how much the query says, since a query of two
words is near or far by chance, and on how many tools there are. How well the best tool does what is asked, laid side by
side with the query, counts, too. What that leaves open is decided by a line of its own, with what was read together.

Invariant: no single word decides. A word that the index does not know lowers what words can say, never what meaning
says; so a filler or unknown word cannot empty an answerable query (X2).
"""

import math
from dataclasses import dataclass, replace

SURE = 5.0
"""Log odds beyond which a comparison says no more: no single stage decides alone."""
_FEW_TOOLS, _MANY_TOOLS = 40, 22_000


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
    length: float
    """How much the query says: the logarithm of one more than its words that are not grammar."""
    by_words: bool = False
    """Whether the query met tools by its words alone: it is in another language, or half of its words are unknown."""
    told: bool = False
    """Whether it was asked in another language, and read in English word by word."""
    compared: float | None = None
    """The best log odds that a tool does what is asked (`comparing`); nothing if none was compared."""
    together: float | None = None
    """The best log odds that a tool does what is asked, read together with the query (`joint`); nothing if none was."""
    tools: int = 0
    """How many tools there are: the nearest of many is near by chance."""

    @property
    def size(self) -> float:
        """The logarithm of that, within what the sets had that the lines were fitted on."""
        return math.log(max(_FEW_TOOLS, min(_MANY_TOOLS, self.tools)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A weighted sum of the signals."""

    nearest: float
    elsewhere: float
    words: float
    lead: float
    offset: float
    both: float = 0.0
    """Of `nearest` times `elsewhere`."""
    length: float = 0.0
    length_nearest: float = 0.0
    """Of `length` times `nearest`."""
    length_elsewhere: float = 0.0
    compared: float = 0.0
    size: float = 0.0
    together: float = 0.0

    def value(self, signals: Signals) -> float:
        """The sum."""
        return (
            self.offset
            + (self.nearest + self.length_nearest * signals.length) * signals.nearest
            + (self.elsewhere + self.length_elsewhere * signals.length) * signals.elsewhere
            + self.both * signals.nearest * signals.elsewhere
            + self.length * signals.length
            + self.words * signals.words
            + self.lead * signals.lead
            + self.compared * max(-SURE, min(SURE, signals.compared or 0.0))
            + self.size * signals.size
            + self.together * max(-SURE, min(SURE, signals.together or 0.0))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How signals become decisions."""

    first_right: Line = Line(nearest=10.1, elsewhere=-9.9, words=0.83, lead=5.22, offset=-1.84)
    """Log odds that the first hit is right."""
    fits: Line = Line(
        nearest=6.06, elsewhere=-10.55, words=0.0, lead=0.0, offset=6.71,
        both=4.05, length=-1.29, length_nearest=6.25, length_elsewhere=-3.36, compared=0.24, size=-0.51,
    )  # fmt: skip
    """The greater, the more likely that something fits."""
    fits_together: Line = Line(
        nearest=5.92, elsewhere=-13.71, words=0.0, lead=0.0, offset=10.3,
        length=-2.64, length_nearest=6.66, length_elsewhere=-1.99, size=-0.6, together=0.8,
    )  # fmt: skip
    """The same where the best tools were read together with the query."""
    hopeless: float = -2.6
    """Below this value of `fits` nothing fits, without further reading."""
    clear: float = 1.2
    """From this value of `fits` on something fits, without further reading."""
    fits_by_words: Line = Line(
        nearest=3.26, elsewhere=-10.4, words=0.0, lead=0.0, offset=2.66,
        both=7.8, length=-1.55, length_nearest=5.2, length_elsewhere=-1.8,
    )  # fmt: skip
    """The same where no tool was compared with the query."""
    floor: float = -0.64
    """Below this value of `fits_together` the search abstains."""
    steep: float = 1.5
    """How much lower that floor is for each unit of length that a query says less than `short`."""
    floor_apart: float = -0.45
    """Below this value of `fits` the search abstains if nothing can be read together."""
    steep_apart: float = 0.9
    """The same for that floor."""
    floor_by_words: float = -0.9
    """The floor for a query that met tools by its words alone, which is less sure; no set to choose on has such."""
    floor_uncompared: float = -0.3
    """The floor for any other query that no tool was compared with: none of the tools is in English, for instance."""
    lower_told: float = 0.8
    """How much lower every floor is for a query of another language that was read in English word by word: what its
    words lose looks like absence."""
    doubt_uncompared: float = 1.5
    """The level of doubt where no tool was compared with the query."""
    doubt_apart: float = 0.9
    """The level of doubt if nothing can be read together."""
    doubt: float = 0.2
    """Below this value it is likely that nothing fits, and not sure enough to hold the hits back."""
    short: float = math.log1p(9.5)
    """Length below which a query says little: nine words without the grammatical ones."""
    sure_words: float = 0.5
    """Share of what the query's words are worth that one tool holds from which on something fits."""

    def lowered(self, by: float) -> "Calibration":
        """With every floor lower by so much: it abstains less readily, and doubts as before."""
        return replace(
            self,
            floor=self.floor - by,
            floor_apart=self.floor_apart - by,
            floor_by_words=self.floor_by_words - by,
            floor_uncompared=self.floor_uncompared - by,
        )

    def confidence(self, signals: Signals) -> float:
        """How likely the best hit is what was meant, 0 to 1."""
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.first_right.value(signals)))))

    def unsettled(self, signals: Signals) -> bool:
        """Whether it is not clear yet whether anything fits, so that the best tools are worth another look."""
        if signals.by_words or signals.compared is None or signals.words >= self.sure_words:
            return False
        return self.hopeless <= self.fits.value(signals) < self.clear

    def abstains(self, signals: Signals) -> bool:
        """Whether nothing fits."""
        return self._below(signals, self._floor(signals) - (self.lower_told if signals.told else 0.0))

    def _floor(self, signals: Signals) -> float:
        if signals.by_words:
            return self.floor_by_words
        if signals.compared is None:
            return self.floor_uncompared
        unsaid = max(0.0, self.short - signals.length)
        if signals.together is None:
            return self.floor_apart - self.steep_apart * unsaid
        return self.floor - self.steep * unsaid

    def doubts(self, signals: Signals) -> bool:
        """Whether perhaps nothing fits; so it is wherever it abstains."""
        if signals.compared is None:
            return self._below(signals, self.doubt_uncompared)
        return self._below(signals, self.doubt_apart if signals.together is None else self.doubt)

    def _below(self, signals: Signals, floor: float) -> bool:
        line = self.fits if signals.together is None else self.fits_together
        if signals.compared is None:
            line = self.fits_by_words
        return signals.words < self.sure_words and line.value(signals) < floor
