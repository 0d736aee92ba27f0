"""Reads a query as a sentence and says where, in the space of the table, the tools for it lie.

Tools describe themselves in plain words, and the sum of their words places them well. People do not: "do I need an
umbrella" names neither weather nor forecast. So the query alone is read with attention, three layers over word pieces,
trained to point at the vectors that the table gives to the tools that help. Tools cost nothing by it: their vectors are
the table's. numpy is all it needs.

Invariant: the vector of a query depends on the query alone, has length one and is never NaN. A reader belongs to one
table: beside another it means nothing, and is not used.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_MAX_PIECES
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats, read_arrays, unit
from toolcrib.retrieval.wordpiece import WordPieces

Arrays: TypeAlias = dict[str, NDArray[np.generic]]

_FILE = "reader.npz"
_FORMAT = 1
_WIDTH = 384
_HEADS = 12
_LAYERS = 3
_SLIM = np.float32(1e-12)
_BLOCK = 32
"""Columns of a block of weights. A product of 20 pieces with one block has fewer multiplications than those from which
on a BLAS wakes threads: they cost ten times the CPU on a busy machine, and the sum would depend on their number."""
_GROUP = 20
"""Pieces that are multiplied at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """Brings every piece to mean 0 and deviation 1, then weighs and shifts."""

    weight: Floats
    shift: Floats

    def __call__(self, states: Floats) -> Floats:
        """The states, normalised."""
        away = states - states.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.einsum("ij,ij->i", away, away) / np.float32(_WIDTH) + _SLIM)
        return away / spread[:, None] * self.weight + self.shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A matrix in blocks of 384 × 32, and a shift."""

    blocks: Floats
    """By stretch of the input, then by stretch of the output."""
    shift: Floats

    @classmethod
    def of(cls, codes: NDArray[np.generic], scales: NDArray[np.generic], shift: NDArray[np.generic]) -> "Linear":
        """From whole numbers with one scale for each column."""
        weights = codes.astype(np.float32) * scales.astype(np.float32)
        rows, columns = weights.shape
        blocks = weights.reshape(rows // _WIDTH, _WIDTH, columns // _BLOCK, _BLOCK).transpose(0, 2, 1, 3)
        return cls(blocks=np.ascontiguousarray(blocks), shift=shift.astype(np.float32))

    def __call__(self, states: Floats) -> Floats:
        """The product, one row per piece."""
        pieces, width = states.shape
        groups = -(-pieces // _GROUP)
        each = -(-pieces // groups)
        if groups * each > pieces:
            states = np.concatenate((states, np.zeros((groups * each - pieces, width), dtype=np.float32)))
        grouped = states.reshape(groups, each, width)
        # Block by block, all groups of pieces with each: a block is fetched from memory once.
        summed = np.matmul(grouped[..., :_WIDTH], self.blocks[0][:, None])
        for stretch in range(1, len(self.blocks)):
            summed += np.matmul(grouped[..., stretch * _WIDTH : (stretch + 1) * _WIDTH], self.blocks[stretch][:, None])
        return summed.transpose(1, 2, 0, 3).reshape(groups * each, -1)[:pieces] + self.shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Every piece looks at all others, then thinks for itself."""

    looks: Linear
    seen: Linear
    after_looking: Norm
    widens: Linear
    narrows: Linear
    after_thinking: Norm

    def __call__(self, states: Floats) -> Floats:
        """The states after this layer."""
        pieces = len(states)
        asks, offers, holds = self.looks(states).reshape(pieces, 3, _HEADS, -1).transpose(1, 2, 0, 3)
        shares = np.matmul(asks, offers.transpose(0, 2, 1)) * np.float32((_WIDTH // _HEADS) ** -0.5)
        shares -= shares.max(axis=2, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=2, keepdims=True)
        looked = np.matmul(shares, holds).transpose(1, 0, 2).reshape(pieces, _WIDTH)
        states = self.after_looking(states + self.seen(looked))
        wide = self.widens(states)
        # x · sigmoid(1.702 x); held back so that the exponential stays finite.
        wide /= np.float32(1.0) + np.exp(np.minimum(np.float32(-1.702) * wide, np.float32(80.0)))
        return self.after_thinking(states + self.narrows(wide))


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
    points: Linear
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
                first=_norm(arrays, "first"),
                layers=tuple(_layer(arrays, f"{number}.") for number in range(_LAYERS)),
                points=_linear(arrays, "points"),
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
        return unit(self.points(states.mean(axis=0, keepdims=True))[0])


def _linear(arrays: Arrays, name: str) -> Linear:
    return Linear.of(*(arrays[f"{name}.{part}"] for part in ("codes", "scales", "shift")))


def _norm(arrays: Arrays, name: str) -> Norm:
    weight, shift = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "shift"))
    return Norm(weight=weight, shift=shift)


def _layer(arrays: Arrays, prefix: str) -> Layer:
    return Layer(
        looks=_linear(arrays, f"{prefix}looks"),
        seen=_linear(arrays, f"{prefix}seen"),
        after_looking=_norm(arrays, f"{prefix}after_looking"),
        widens=_linear(arrays, f"{prefix}widens"),
        narrows=_linear(arrays, f"{prefix}narrows"),
        after_thinking=_norm(arrays, f"{prefix}after_thinking"),
    )
