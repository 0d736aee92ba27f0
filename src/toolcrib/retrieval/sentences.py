"""Reads a query as a sentence and says where, in the space of the table, the tools for it lie.

Tools describe themselves in plain words, and the sum of their words places them well. People do not: "do I need an
umbrella" names neither weather nor forecast. So the query alone is read with attention, three layers over word pieces,
trained to point at the vectors that the table gives to the tools that help. Tools cost nothing by it: their vectors are
the table's. numpy is all it needs; the compiled kernel reads three times as fast.

Invariant: the vector of a query depends on the query alone, has length one and is never NaN. A reader belongs to one
table: beside another it means nothing, and is not used.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_MAX_PIECES
from toolcrib.retrieval.attention import Layer, Norm, read_matrix
from toolcrib.retrieval.products import Matrix
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats, read_arrays, unit
from toolcrib.retrieval.wordpiece import WordPieces

_FILE = "reader.npz"
_FORMAT = 1
_LAYERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceReader:
    """The layers and the vectors of the pieces. Safe to use from several threads."""

    pieces: WordPieces
    numbering: NDArray[np.intp]
    """The row of each word piece; pieces that no query has share the row of the unknown one."""
    codes: NDArray[np.int8]
    scales: Floats
    places: Floats
    """What is added for the place of a piece in the sentence."""
    first: Norm
    layers: Sequence[Layer]
    points: Matrix
    """From the sentence into the space of the table."""

    @classmethod
    def load(cls, mark: str, directory: Path = MODEL_DIRECTORY) -> "SentenceReader":
        """Reads the reader that belongs to the table of this mark.

        Raises:
            ModelUnavailable: the file is missing, damaged or belongs to another table.
        """
        arrays = read_arrays(directory / _FILE)
        try:
            meta = json.loads(bytes(arrays["meta"]))
            if meta["format"] != _FORMAT or meta["table"] != mark:
                raise ModelUnavailable(f"{_FILE} does not belong to the embedding table")
            return cls(
                pieces=WordPieces.load(directory / "wordpieces.txt.gz"),
                numbering=arrays["numbering"].astype(np.intp),
                codes=np.ascontiguousarray(arrays["codes"], dtype=np.int8),
                scales=arrays["scales"].astype(np.float32),
                places=arrays["places"].astype(np.float32),
                first=Norm.read(arrays, "first"),
                layers=tuple(Layer.read(arrays, f"{number}.") for number in range(_LAYERS)),
                points=read_matrix(arrays, "points"),
            )
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ModelUnavailable(f"{_FILE} is damaged: {error}") from error

    def embed(self, text: str) -> Floats:
        """Where the tools for this text lie: a vector of length one."""
        numbers = self.numbering[self.pieces.numbers(text, at_most=READER_MAX_PIECES)]
        states = self.codes[numbers].astype(np.float32) * self.scales[numbers, None]
        states = self.first(states + self.places[: len(states)])
        for layer in self.layers:
            states = layer(states)
        return unit(self.points(states).mean(axis=0))
