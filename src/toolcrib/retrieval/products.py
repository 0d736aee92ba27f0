"""Products of whole numbers: of states with a matrix, and of one vector with many.

The weights and the vectors that ship are whole numbers with scales, so what meets them is made whole too: states as
bytes, one scale for each stretch of a row, and a vector as numbers of 15 bits. Sums of whole numbers are the same in
any order; they are below the size from which on a float would round them. So numpy multiplies them as floats, the
compiled kernel as bytes, and both give the same bits.

Invariant: a product depends on its own row and on the matrix or the vector alone, however many others are made with it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.retrieval.powers import bend
from toolcrib.retrieval.vectors import Codes, Floats

if TYPE_CHECKING:
    from toolcrib._kernel import Multiplier

_STRETCH = 384
"""Numbers of a row of states that have one scale."""
_BLOCK = 32
"""Columns of a block of weights. A product of 20 rows with one block has fewer multiplications than those from which on
a BLAS wakes threads, which cost ten times the CPU on a busy machine."""
_GROUP = 20
"""Rows that are multiplied at a time."""
_FEW = 131_072
"""Numbers of vectors that are multiplied at a time, for the same reason."""
_LEAST = np.float32(1e-30)
"""What is smaller counts as this: its inverse is finite."""
_MOST_BYTE = np.float32(127)
_DIGIT = np.float32(128)
_MOST_WHOLE = np.float32(127 * 128)
_KERNEL_DIMENSIONS = 32
"""The kernel takes vectors whose dimensions this divides."""

_ways = () if kernel is None else tuple(kernel.ways())
WAY = _ways[0] if _ways else None
"""How the kernel multiplies on this processor; nothing if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Whole numbers with a scale and a shift for each column."""

    columns: int
    compiled: "Multiplier | None"
    """The matrix as the kernel multiplies it; without it, what follows."""
    blocks: Floats
    """The whole numbers by stretch of the rows, then by stretch of the columns."""
    scales: Floats
    shift: Floats

    @classmethod
    def of(
        cls,
        codes: NDArray[np.generic],
        scales: NDArray[np.generic],
        shift: NDArray[np.generic],
        *,
        way: str | None = WAY,
    ) -> "Matrix":
        """The matrix of whole numbers from -127 to 127; as many rows as some stretches have.

        Raises:
            ValueError: the three do not belong together.
        """
        whole = np.ascontiguousarray(codes, dtype=np.int8)
        scales, shift = (np.ascontiguousarray(each, dtype=np.float32) for each in (scales, shift))
        rows, columns = whole.shape
        if rows % _STRETCH or not scales.shape == shift.shape == (columns,):
            raise ValueError("a matrix, its scales and its shift do not belong together")
        if kernel is not None and way is not None:
            made = kernel.matrix(way, _STRETCH, whole, scales, shift)
            none = np.empty((0, 0, 0, 0), dtype=np.float32)
            return cls(columns=columns, compiled=made, blocks=none, scales=scales, shift=shift)
        whole = np.pad(whole, ((0, 0), (0, -columns % _BLOCK)))
        blocks = whole.reshape(rows // _STRETCH, _STRETCH, -1, _BLOCK).transpose(0, 2, 1, 3)
        floats = blocks.astype(np.float32, order="C")
        return cls(columns=columns, compiled=None, blocks=floats, scales=scales, shift=shift)

    def __call__(self, states: Floats, *, bent: bool = False) -> Floats:
        """The product, row by row; `bent` if asked for (`powers.bend`)."""
        if not len(states):
            return np.empty((0, self.columns), dtype=np.float32)
        if kernel is None or self.compiled is None:
            product = self._product(states)
            return bend(product) if bent else product
        product = np.empty((len(states), self.columns), dtype=np.float32)
        kernel.multiplied(self.compiled, states, bent, product)
        return product

    def _product(self, states: Floats) -> Floats:
        rows, stretches = len(states), len(self.blocks)
        groups = -(-rows // _GROUP)
        each = -(-rows // groups)
        split = states.reshape(rows, stretches, _STRETCH)
        padded = np.zeros((groups * each, stretches, _STRETCH), dtype=np.float32)
        whole = padded[:rows]
        largest = np.maximum(np.abs(split, out=whole).max(axis=2, keepdims=True), _LEAST)
        np.rint(np.multiply(split, _MOST_BYTE / largest, out=whole), out=whole)
        worth = largest / _MOST_BYTE
        grouped = padded.reshape(groups, each, stretches, _STRETCH)
        sums = np.empty((groups * each, self.blocks.shape[1] * _BLOCK), dtype=np.float32)
        by_block = sums.reshape(groups, each, -1, _BLOCK).transpose(2, 0, 1, 3)
        product = sums[:rows, : self.columns]
        for stretch in range(stretches):
            before = product.copy() if stretch else None
            # Block by block, all groups of rows with each: a block is fetched from memory once.
            np.matmul(grouped[:, :, stretch], self.blocks[stretch][:, None], out=by_block)
            product *= worth[:, stretch]
            if before is not None:
                product += before
        product *= self.scales
        product += self.shift
        return product


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedVectors:
    """Vectors in whole numbers, each brought to length one where it is used."""

    codes: Codes
    """One row per vector, of no fixed scale."""
    worth: Floats
    """What one unit of each row is worth; 0 if the row is all zero."""

    @classmethod
    def of(cls, codes: Codes) -> "CodedVectors":
        """These vectors, brought to length one."""
        squares = np.einsum("ij,ij->i", codes, codes, dtype=np.int32)
        lengths = np.sqrt(squares).astype(np.float32)
        return cls(codes=codes, worth=np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0))

    def __len__(self) -> int:
        """How many there are."""
        return len(self.codes)

    def some(self, rows: NDArray[np.intp]) -> "CodedVectors":
        """Only these."""
        return CodedVectors(codes=self.codes[rows], worth=self.worth[rows])

    def leading(self, dimensions: int) -> "CodedVectors":
        """The leading dimensions of each, as long as they are in the whole."""
        return CodedVectors(codes=np.ascontiguousarray(self.codes[:, :dimensions]), worth=self.worth)

    def near(self, vector: Floats, *, way: str | None = WAY) -> Floats:
        """The product of each with a vector."""
        if kernel is None or way is None or len(vector) % _KERNEL_DIMENSIONS or not np.isfinite(vector).all():
            return self._near(vector)
        scores = np.empty(len(self.codes), dtype=np.float32)
        kernel.near(way, vector, self.codes, self.worth, scores)
        return scores

    def _near(self, vector: Floats) -> Floats:
        largest = np.maximum(np.abs(vector).max(initial=0.0), _LEAST)
        whole = np.rint(vector * (_MOST_WHOLE / largest))
        high = np.rint(whole / _DIGIT)
        digits = np.stack((high, whole - high * _DIGIT), axis=1)
        sums = np.empty((len(self.codes), 2), dtype=np.float32)
        few = max(1, _FEW // max(1, len(vector)))
        room = np.empty((few, len(vector)), dtype=np.float32)
        for start in range(0, len(sums), few):
            codes = self.codes[start : start + few]
            np.copyto(room[: len(codes)], codes)
            np.matmul(room[: len(codes)], digits, out=sums[start : start + few])
        scores = sums[:, 0] * _DIGIT
        scores += sums[:, 1]
        scores *= self.worth
        scores *= largest / _MOST_WHOLE
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchedVectors:
    """Vectors of which the few nearest are wanted: a first look is at the leading dimensions of all, as in a sketch."""

    sketches: CodedVectors
    rest: Codes

    @classmethod
    def of(cls, codes: Codes, *, dimensions: int) -> "SketchedVectors":
        """These vectors, brought to length one, with as many dimensions in a sketch."""
        sketches = CodedVectors.of(codes).leading(dimensions)
        return cls(sketches=sketches, rest=np.ascontiguousarray(codes[:, dimensions:]))

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rest)

    def some(self, rows: NDArray[np.intp]) -> CodedVectors:
        """Only these, whole."""
        sketches = self.sketches.some(rows)
        return CodedVectors(codes=np.concatenate((sketches.codes, self.rest[rows]), axis=1), worth=sketches.worth)

    def near(self, vector: Floats, *, of: int) -> Floats:
        """The product of a vector with each of so many that seem the nearest by their sketches."""
        seeming = self.sketches.near(vector[: self.sketches.codes.shape[1]])
        if of >= len(seeming):
            return self.some(np.arange(len(seeming))).near(vector)
        return self.some(np.argpartition(seeming, -of)[-of:]).near(vector)
