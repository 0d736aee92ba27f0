"""Layers of attention over the pieces of a text, as a model of this package has them.

Every piece is a row of 384 numbers, its state. A layer lets every piece look at all others (12 heads), then think for
itself (1,536 numbers wide). Matrices are of whole numbers (`products`); what lies between them is numpy.

Invariant: the states after a layer depend on the states before it alone, with the compiled kernel or without: the same
bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.products import Matrix
from toolcrib.retrieval.vectors import Floats

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]
"""The arrays of a file by name."""

WIDTH = 384
"""Numbers of a state."""
HEADS = 12
_ACROSS = 32
"""Numbers of a head."""
_SLIM = np.float32(1e-12)
_MOST_POWER = np.float32(60.0)
"""Powers of e beyond this are held back: everything stays finite. The sentence reader that ships reaches 27 (1,000 real
queries), the joint one 45 (1,002 real queries with a tool)."""
_LOOK_AT_ONCE = 64
"""Pieces that look at all others at a time: up to 128 pieces, no product is so large that a BLAS wakes threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """Brings every piece to mean 0 and deviation 1, then weighs and shifts."""

    weight: Floats
    shift: Floats

    @classmethod
    def read(cls, arrays: Arrays, name: str) -> "Norm":
        """The norm of that name."""
        weight, shift = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "shift"))
        return cls(weight=weight, shift=shift)

    def __call__(self, states: Floats) -> Floats:
        """The states, normalised."""
        means = np.einsum("ij->i", states)
        means /= np.float32(WIDTH)
        away = states - means[:, None]
        spread = np.einsum("ij,ij->i", away, away)
        spread /= np.float32(WIDTH)
        spread += _SLIM
        away /= np.sqrt(spread)[:, None]
        away *= self.weight
        away += self.shift
        return away


def read_matrix(arrays: Arrays, name: str) -> Matrix:
    """The matrix of that name."""
    return Matrix.of(*(arrays[f"{name}.{part}"] for part in ("codes", "scales", "shift")))


class Text(NamedTuple):
    """Pieces that look at each other."""

    rows: slice = slice(None)
    bias: Floats | None = None
    """By head: how much more (or less) each piece looks at each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Every piece looks at all others, then thinks for itself."""

    looks: Matrix
    seen: Matrix
    after_looking: Norm
    widens: Matrix
    narrows: Matrix
    after_thinking: Norm

    @classmethod
    def read(cls, arrays: Arrays, prefix: str) -> "Layer":
        """The layer whose arrays have names with that prefix."""
        return cls(
            looks=read_matrix(arrays, f"{prefix}looks"),
            seen=read_matrix(arrays, f"{prefix}seen"),
            after_looking=Norm.read(arrays, f"{prefix}after_looking"),
            widens=read_matrix(arrays, f"{prefix}widens"),
            narrows=read_matrix(arrays, f"{prefix}narrows"),
            after_thinking=Norm.read(arrays, f"{prefix}after_thinking"),
        )

    def __call__(self, states: Floats, texts: Sequence[Text] = (Text(),)) -> Floats:
        """The states after this layer, of one text or of several that do not look at each other."""
        looked = self.seen(self._look(states, texts))
        looked += states
        states = self.after_looking(looked)
        thought = self.narrows(_bend(self.widens(states)))
        thought += states
        return self.after_thinking(thought)

    def _look(self, states: Floats, texts: Sequence[Text]) -> Floats:
        mixed = self.looks(states)
        looked = np.empty((len(states), WIDTH), dtype=np.float32)
        for text in texts:
            _look_within(mixed[text.rows], text.bias, looked[text.rows])
        return looked


def _look_within(mixed: Floats, bias: Floats | None, looked: Floats) -> None:
    pieces = len(mixed)
    asks, offers, holds = mixed.reshape(pieces, 3, HEADS, _ACROSS).transpose(1, 2, 0, 3)
    offers = offers.transpose(0, 2, 1)
    by_head = looked.reshape(pieces, HEADS, _ACROSS).transpose(1, 0, 2)
    ones = np.ones((pieces, 1), dtype=np.float32)
    for start in range(0, pieces, _LOOK_AT_ONCE):
        some = slice(start, start + _LOOK_AT_ONCE)
        weights = np.matmul(asks[:, some], offers)
        weights *= np.float32(_ACROSS**-0.5)
        if bias is not None:
            weights += bias[:, some]
        np.exp(np.clip(weights, -_MOST_POWER, _MOST_POWER, out=weights), out=weights)
        # A product with ones is the sum, and takes a fourth of its time.
        weights /= np.matmul(weights, ones)
        np.matmul(weights, holds, out=by_head[:, some])


def _bend(wide: Floats) -> Floats:
    """Each number times the sigmoid of 1.702 times it, in place."""
    powers = np.multiply(wide, np.float32(-1.702))
    np.exp(np.clip(powers, -_MOST_POWER, _MOST_POWER, out=powers), out=powers)
    powers += np.float32(1.0)
    wide /= powers
    return wide
