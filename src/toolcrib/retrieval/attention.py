"""Layers of attention over the pieces of a text, as a model of this package has them.

Every piece is a row of 384 numbers, its state. A layer lets every piece look at all others (12 heads), then think for
itself (1,536 numbers wide). Matrices are of whole numbers (`products`), and so is whatever a sum is made of whose order
is left to the processor: a product, what a piece looks at. The other steps are taken one by one, in an order of ours.

Invariant: the states after a layer depend on the states before it alone, with the compiled kernel or without, on any
processor: the same bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.retrieval.powers import raise_two
from toolcrib.retrieval.products import WAY, Matrix
from toolcrib.retrieval.vectors import Floats

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]
"""The arrays of a file by name."""

WIDTH = 384
"""Numbers of a state."""
HEADS = 12
_ACROSS = 32
"""Numbers of a head."""
_SLIM = np.float32(1e-12)
_LEAST = np.float32(1e-30)
"""What is smaller counts as this: its inverse is finite."""
_TWOS = np.float32(1.44269504)
"""Powers of two that one power of e is worth."""
_ROOT = np.float32(1.44269504 * 0.17677669)
"""The same, by the root of the numbers of a head: what likeness is multiplied by."""
_NUANCES, _SHADES = np.float32(511), np.float32(1023)
"""What is asked and offered, and what is held, in whole numbers up to these."""
_LIKENESS, _SHARES = np.float32(65_536), np.float32(8_192)
"""The likeness of a piece to the likest one, and the shares of all that a piece looks at, in whole numbers."""
MOST_PIECES = 256
"""Pieces of a text: of more, sums of the whole numbers above would be rounded."""
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

    def __call__(self, states: Floats, beside: Floats | None = None) -> Floats:
        """The states, or the sums of them and others beside them, normalised."""
        if kernel is not None and WAY is not None:
            normed = np.empty_like(states)
            kernel.normed(states, beside, self.weight, self.shift, normed)
            return normed
        return self.plainly(states, beside)

    def plainly(self, states: Floats, beside: Floats | None = None) -> Floats:
        """The same, without the kernel."""
        both = states if beside is None else states + beside
        means = _folded(both)
        means /= np.float32(WIDTH)
        away = both - means[:, None]
        spread = _folded(np.square(away))
        spread /= np.float32(WIDTH)
        spread += _SLIM
        away /= np.sqrt(spread)[:, None]
        away *= self.weight
        away += self.shift
        return away


def _folded(states: Floats) -> Floats:
    """The sum of each row, half by half: the same order on every processor."""
    for half in (192, 96, 48):
        states = states[:, :half] + states[:, half:]
    states = states[:, :16] + states[:, 16:32] + states[:, 32:]
    for half in (8, 4, 2, 1):
        states = states[:, :half] + states[:, half:]
    return states[:, 0]


def read_matrix(arrays: Arrays, name: str) -> Matrix:
    """The matrix of that name."""
    return Matrix.of(*(arrays[f"{name}.{part}"] for part in ("codes", "scales", "shift")))


class Text(NamedTuple):
    """Pieces that look at each other: one text, or two."""

    rows: slice = slice(None)
    here: int = 0
    """How many of the pieces are of the first of two texts."""
    across: Floats | None = None
    """By head: how much more (or less) each piece looks at those of the other text."""


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
        states = self.after_looking(self.seen(self._look(states, texts)), states)
        return self.after_thinking(self.narrows(self.widens(states, bent=True)), states)

    def _look(self, states: Floats, texts: Sequence[Text]) -> Floats:
        mixed = self.looks(states)
        looked = np.empty((len(states), WIDTH), dtype=np.float32)
        for text in texts:
            _look_within(mixed[text.rows], text, looked[text.rows])
        return looked


def _look_within(mixed: Floats, text: Text, looked: Floats) -> None:
    if len(mixed) > MOST_PIECES:
        raise ValueError(f"a text of {len(mixed)} pieces is too long to be read, {MOST_PIECES} are the most")
    if kernel is not None and WAY is not None:
        kernel.looked(mixed, text.here, text.across, looked)
    else:
        look_plainly(mixed, text, looked)


def look_plainly(mixed: Floats, text: Text, looked: Floats) -> None:
    """What each piece sees, without the kernel."""
    pieces = len(mixed)
    parts = mixed.reshape(pieces, 3, HEADS, _ACROSS).transpose(1, 2, 0, 3)
    asks, asks_worth = _whole(parts[0], _NUANCES, axis=2)
    offers, offers_worth = _whole(parts[1], _NUANCES, axis=2)
    holds, holds_worth = _whole(parts[2], _SHADES, axis=1)
    asks_worth *= _ROOT
    holds_worth /= _SHARES
    offers, offers_worth = offers.transpose(0, 2, 1), offers_worth.transpose(0, 2, 1)
    by_head = looked.reshape(pieces, HEADS, _ACROSS).transpose(1, 0, 2)
    for start in range(0, pieces, _LOOK_AT_ONCE):
        some = slice(start, start + _LOOK_AT_ONCE)
        likeness = np.matmul(asks[:, some], offers)
        likeness *= asks_worth[:, some]
        likeness *= offers_worth
        if text.across is not None:
            first = max(0, text.here - start)
            across = (text.across * _TWOS)[:, None, None]
            likeness[:, :first, text.here :] += across
            likeness[:, first:, : text.here] += across
        likeness -= likeness.max(axis=2, keepdims=True)
        raise_two(likeness)
        likeness *= _LIKENESS
        np.rint(likeness, out=likeness)
        likeness *= _SHARES / likeness.sum(axis=2, keepdims=True)
        np.rint(likeness, out=likeness)
        np.multiply(np.matmul(likeness, holds), holds_worth, out=by_head[:, some])


def _whole(floats: Floats, most: np.float32, *, axis: int) -> tuple[Floats, Floats]:
    """Floats as whole numbers, and what one unit is worth along an axis."""
    largest = np.maximum(np.abs(floats).max(axis=axis, keepdims=True, initial=0.0), _LEAST)
    whole = floats * (most / largest)
    return np.rint(whole, out=whole), largest / most
