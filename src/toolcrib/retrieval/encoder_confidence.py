"""Confidence and abstention where the sentence encoder takes part.

The signals are those of `confidence`; what differs is what they are made of: nearness is that of both models, here and
elsewhere. `python -m bench.calibration … --encoder` fits and judges the lines on such signals.

Invariant: here and elsewhere are measured by the same models. A query that the encoder does not answer (it is foreign,
or the model is not read yet) is measured by the table on both sides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.cohort import Cohort, nearness_to, read_centres
from toolcrib.retrieval.confidence import Calibration, Line
from toolcrib.retrieval.encoder import DIMENSIONS, MARK
from toolcrib.retrieval.products import CodedVectors
from toolcrib.retrieval.vectors import MODEL_DIRECTORY

Floats = NDArray[np.float32]
_FILE = "encoder_cohort.npz"

ENCODER_CALIBRATION = Calibration(
    first_right=Line(nearest=11.36, elsewhere=-8.45, words=0.88, lead=5.58, offset=-3.98),
    floor=-1.15,
    floor_short=-1.1,
    floor_by_words=-1.1,
    doubt=0.5,
)
"""The chance of the first hit is fitted anew. Whether anything fits is judged by the line of the static tier with lower
floors: one that was fitted on these signals caught no more (47 % of foreign queries, against 48 %) and emptied half as
many answerable queries of `corpus/` again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderCohort:
    """How near abilities at large are, by both models."""

    static: Cohort
    ask: Callable[[str], Floats | None]
    """The encoder's vector of a query; `None` if it does not answer it."""
    share: float
    """The encoder's part, the same as in an index."""
    centres: CodedVectors

    @classmethod
    def load(
        cls,
        static: Cohort,
        ask: Callable[[str], Floats | None],
        share: float,
        directory: Path = MODEL_DIRECTORY,
    ) -> "EncoderCohort | None":
        """The centres that belong to the encoder; `None` if there are none, and abstention is then weaker."""
        centres = read_centres(directory / _FILE, MARK, DIMENSIONS)
        return None if centres is None else cls(static=static, ask=ask, share=share, centres=centres)

    def nearness(self, query: str, *, by_words: bool) -> float:
        """How near the query is to the few abilities at large that are nearest to it."""
        table = self.static.nearness(query, by_words=by_words)
        vector = self.ask(query)
        if vector is None:
            return table
        return (1.0 - self.share) * table + self.share * nearness_to(self.centres, vector)
