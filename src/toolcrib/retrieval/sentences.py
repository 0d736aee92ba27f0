"""Reads a query or a tool as a sentence and says where, in the space of the table, it lies.

The sum of their words places most tools well. People ask in other words: "do I need an umbrella" names neither weather
nor forecast. So a query is read with attention, six layers over word pieces, trained to point at the tools that help;
so is a tool, whose words alone do not say what acts on what. numpy is all it needs; the compiled kernel reads five
times as fast.

Invariant: the vector of a text depends on the text alone, has length one and is never NaN. A reader belongs to one
table: beside another it means nothing, and is not used.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_MAX_PIECES
from toolcrib.retrieval.attention import WIDTH, Layer, Norm, read_matrix
from toolcrib.retrieval.products import Matrix
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats, read_arrays, unit
from toolcrib.retrieval.wordpiece import WordPieces

_FILE = "reader.npz"
_FORMAT = 1
_LAYERS = 6
_TAKEN = (4, 2)
"""Layers after which the states of pieces are taken: later on they say more of the sentence than of their words."""
STATE_WIDTH = WIDTH * len(_TAKEN)
"""Numbers of what is taken of a piece."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the reader makes of a text."""

    vector: Floats
    """Where the tools for it lie; of length one."""
    states: Floats
    """Of each word piece, its states after some of the layers, side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceReader:
    """The layers and the vectors of the pieces. Safe to use from several threads."""

    pieces: WordPieces
    numbering: NDArray[np.intp]
    """The row of each word piece; pieces that no text had share the row of the unknown one."""
    codes: NDArray[np.int8]
    scales: Floats
    places: Floats
    """What is added for the place of a piece in the sentence."""
    first: Norm
    layers: Sequence[Layer]
    points: Matrix
    """From the sentence into the space of the table."""
    mark: str
    """What tells its vectors from those of another reader, or of another way of writing a tool down."""

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
                mark=f"reader-1-{zlib.crc32(arrays['points.codes'].tobytes()):08x}",
            )
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ModelUnavailable(f"{_FILE} is damaged: {error}") from error

    def read(self, text: str, *, at_most: int = READER_MAX_PIECES) -> "Sentence":
        """Reads a text."""
        states = self.first(self.begun(text, at_most=at_most))
        taken: dict[int, Floats] = {}
        for number, layer in enumerate(self.layers, 1):
            states = layer(states)
            if number in _TAKEN:
                taken[number] = states
        vector = unit(self.points(states).mean(axis=0))
        return Sentence(vector=vector, states=np.concatenate([taken[number] for number in _TAKEN], axis=1))

    def begun(self, text: str, *, at_most: int) -> Floats:
        """The vectors of the pieces of a text, each in its place: where any reading of it begins."""
        numbers = self.numbering[self.pieces.numbers(text, at_most=at_most)]
        return self.codes[numbers].astype(np.float32) * self.scales[numbers, None] + self.places[: len(numbers)]
