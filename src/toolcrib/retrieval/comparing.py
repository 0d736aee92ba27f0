"""Judges whether a tool does what a query asks: the two are laid side by side, word piece by word piece.

The nearness of two sentences says what they are about; of "delete a playlist" and a tool that makes playlists it says
"playlists". So the best few tools of a query are looked at again. Each piece of the query seeks its counterpart among
the pieces of the tool, each piece of the tool seeks its own in the query, and a small network judges what they find.
The pieces of a tool are taken once, when it is read.

Invariant: the judgement depends on the query and the tool alone, however many others are judged with it, and is NaN
for a tool that was not read and for no other. A comparer belongs to one reader: beside another it means nothing, and
is not used.
"""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_TOOL_PIECES
from toolcrib.retrieval.attention import Arrays, read_matrix
from toolcrib.retrieval.products import Matrix
from toolcrib.retrieval.sentences import STATE_WIDTH
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Codes, Floats, read_arrays, unit, whole

_FILE = "comparer.npz"
_FORMAT = 1
_FAR = np.float32(-1e4)
"""How near a piece is to one that is not there: its share of anything is nothing."""
_TIMES = np.float32(8.0)
"""What the products of two pieces are multiplied by: numbers of a vector of length one are small."""
_PER_PIECE = np.float32(8.0)
"""What one unit of the mean nearness of the query's pieces is worth in the judgement, before the network speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """How the pieces of one text are seen beside those of the other."""

    takes: Matrix
    """From a state of the reader to a piece."""
    gate: Floats
    """What makes a piece matter."""
    weights: Floats
    """Of a piece times its counterpart, the piece, the counterpart, how near they are, and of nothing."""

    @classmethod
    def read(cls, arrays: Arrays, name: str) -> "Side":
        """The side of that name."""
        takes = read_matrix(arrays, f"{name}.takes")
        weight = arrays[f"{name}.compares.weight"].astype(np.float32)
        shift = arrays[f"{name}.compares.shift"].astype(np.float32)
        wide = takes.columns
        if weight.shape[0] != 3 * wide + 1:
            raise ValueError(f"{name} has weights of another shape")
        if arrays[f"{name}.takes.codes"].shape[0] != STATE_WIDTH:
            raise ValueError(f"{name} takes states of another width")
        return cls(
            takes=takes,
            gate=arrays[f"{name}.gate"].astype(np.float32).reshape(wide),
            weights=np.vstack((weight[2 * wide : 3 * wide] * _TIMES, weight[: 2 * wide], weight[3 * wide], shift)),
        )

    def pieces(self, states: Floats) -> Floats:
        """The pieces of a text, each of length one."""
        return unit(self.takes(states))

    def compared(self, own: Floats, other: Floats, nearest: Floats) -> Floats:
        """What the network makes of pieces, their counterparts, and how near the nearest of these is."""
        wide = own.shape[-1]
        seen = np.empty((*other.shape[:-1], 3 * wide + 2), dtype=np.float32)
        np.multiply(own, other, out=seen[..., :wide])
        seen[..., wide : 2 * wide] = own
        seen[..., 2 * wide : 3 * wide] = other
        seen[..., 3 * wide] = nearest
        seen[..., 3 * wide + 1] = 1.0
        found = np.matmul(seen, self.weights)
        return np.maximum(found, np.float32(0.0), out=found)

    def shares(self, pieces: Floats) -> Floats:
        """How much each piece matters, before it is brought to a share."""
        return np.exp(np.matmul(pieces, self.gate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparer:
    """The small network. Safe to use from several threads."""

    asked: Side
    offered: Side
    sharpness: np.float32
    """How sharply a piece tells its counterparts apart."""
    first: Floats
    first_shift: Floats
    last: Floats
    last_shift: np.float32
    mark: str
    """What tells its records from those of another comparer."""

    @classmethod
    def load(cls, mark: str, directory: Path = MODEL_DIRECTORY) -> "Comparer":
        """Reads the comparer that belongs to the reader of this mark.

        Raises:
            ModelUnavailable: the file is missing, damaged or belongs to another reader.
        """
        arrays = read_arrays(directory / _FILE)
        try:
            meta = json.loads(bytes(arrays["meta"]))
            if meta["format"] != _FORMAT or meta["reader"] != mark:
                raise ModelUnavailable(f"{_FILE} does not belong to the sentence reader")
            made = cls(
                asked=Side.read(arrays, "asked"),
                offered=Side.read(arrays, "offered"),
                sharpness=np.float32(np.exp(arrays["sharpness"].astype(np.float32)).item()),
                first=arrays["first.weight"].astype(np.float32),
                first_shift=arrays["first.shift"].astype(np.float32),
                last=arrays["last.weight"].astype(np.float32).reshape(-1),
                last_shift=np.float32(arrays["last.shift"].astype(np.float32).item()),
                mark=f"pieces-1-{zlib.crc32(b''.join(arrays[name].tobytes() for name in sorted(arrays))):08x}",
            )
            # Whatever does not fit together fails here, and never in a search.
            empty = np.zeros((1, STATE_WIDTH), dtype=np.float32)
            made.judged(made.asked.pieces(empty), made.record(empty))
            return made
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ModelUnavailable(f"{_FILE} is damaged: {error}") from error

    @property
    def record_bytes(self) -> int:
        """Bytes of a tool's pieces: how many there are, then their numbers, zero where there is none."""
        return 1 + READER_TOOL_PIECES * self.offered.takes.columns

    def record(self, states: Floats) -> bytes:
        """What is kept of a tool, from what was read of it."""
        pieces = whole(self.offered.pieces(states[:READER_TOOL_PIECES])).tobytes()
        return (bytes([min(len(states), READER_TOOL_PIECES)]) + pieces).ljust(self.record_bytes, b"\0")

    def judged(self, asked: Floats, records: bytes) -> Floats:
        """The log odds that each of some tools, record after record, does what is asked; NaN for an unread one."""
        kept = np.frombuffer(records, dtype=np.int8).reshape(-1, self.record_bytes)
        sizes = kept[:, 0]
        if not sizes.any():
            return np.full(len(kept), np.nan, dtype=np.float32)
        wide = self.offered.takes.columns
        codes: Codes = kept[:, 1:].reshape(len(kept), READER_TOOL_PIECES, wide)
        judged = self._judge(asked, unit(codes), np.arange(READER_TOOL_PIECES) < sizes[:, None])
        judged[sizes == 0] = np.nan
        return judged

    def _judge(self, asked: Floats, offered: Floats, there: NDArray[np.bool_]) -> Floats:
        near = np.matmul(offered, asked.T)
        near[~there] = _FAR
        pull = np.exp(near * self.sharpness)
        to_offered = pull / np.maximum(pull.sum(axis=1, keepdims=True), np.float32(1e-30))
        to_asked = pull / np.maximum(pull.sum(axis=2, keepdims=True), np.float32(1e-30))
        near_offered = near.max(axis=1)
        near_asked = near.max(axis=2)
        found = np.matmul(to_offered.transpose(0, 2, 1), offered)
        from_asked = self.asked.compared(asked, found, near_offered)
        from_offered = self.offered.compared(offered, np.matmul(to_asked, asked), near_asked)
        from_offered *= there[..., None]
        weight_asked = self.asked.shares(asked)
        weight_asked /= weight_asked.sum()
        weight_offered = self.offered.shares(offered) * there
        weight_offered /= np.maximum(weight_offered.sum(axis=1, keepdims=True), np.float32(1e-30))
        # Row by row, here and below: a BLAS rounds the last rows of a product otherwise than the others.
        of_asked = np.einsum("ij,j->i", near_offered, weight_asked)
        seen = np.concatenate(
            (
                np.matmul(weight_asked, from_asked),
                np.matmul(weight_offered[:, None], from_offered)[:, 0],
                from_asked.max(axis=1),
                from_offered.max(axis=1),
                of_asked[:, None],
                np.einsum("ij,ij->i", near_asked, weight_offered)[:, None],
            ),
            axis=1,
        )
        thought = np.maximum(np.matmul(seen[:, None], self.first)[:, 0] + self.first_shift, np.float32(0.0))
        return np.einsum("ij,j->i", thought, self.last) + self.last_shift + _PER_PIECE * (of_asked - np.float32(0.5))
