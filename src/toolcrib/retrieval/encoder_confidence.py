"""Confidence and abstention where the sentence encoder takes part.

The signals and the two lines are those of `confidence`; what differs is what they are made of. Nearness is that of both
models, here and elsewhere, and the lines are fitted on such signals (`python -m bench.calibration … --encoder`).

Invariant: here and elsewhere are measured by the same models. A query that the encoder does not answer (it is foreign,
or the model is not read yet) is measured by the table on both sides.
"""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.cohort import Cohort
from toolcrib.retrieval.confidence import Calibration
from toolcrib.retrieval.encoder import DIMENSIONS, MARK
from toolcrib.retrieval.semantic import MODEL_DIRECTORY, unit

Floats = NDArray[np.float32]
_FILE = "encoder_cohort.npz"
_NEAREST = 3

ENCODER_CALIBRATION = Calibration()
"""How signals of both models become decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderCohort:
    """How near abilities at large are, by both models."""

    static: Cohort
    ask: Callable[[str], Floats | None]
    """The encoder's vector of a query; `None` if it does not answer it."""
    share: float
    """The encoder's part, the same as in an index."""
    centres: Floats

    @classmethod
    def load(
        cls,
        static: Cohort,
        ask: Callable[[str], Floats | None],
        share: float,
        directory: Path = MODEL_DIRECTORY,
    ) -> "EncoderCohort | None":
        """The centres that belong to the encoder; `None` if there are none, and abstention is then weaker."""
        try:
            with np.load(directory / _FILE, allow_pickle=False) as archive:
                mark = bytes(archive["version"]).decode()
                codes = np.asarray(archive["codes"], dtype=np.int8)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        if mark != MARK or codes.ndim != 2 or codes.shape[1] != DIMENSIONS:
            return None
        return cls(static=static, ask=ask, share=share, centres=unit(codes))

    def nearness(self, query: str) -> float:
        """How near the query is to the few abilities at large that are nearest to it."""
        table = self.static.nearness(query)
        vector = self.ask(query)
        if vector is None:
            return table
        scores = np.einsum("ij,j->i", self.centres, vector)
        few = min(_NEAREST, len(scores))
        encoder = float(np.partition(scores, len(scores) - few)[len(scores) - few :].mean()) if few else table
        return (1.0 - self.share) * table + self.share * encoder
