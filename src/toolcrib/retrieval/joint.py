"""Reads a query and a tool together, where it is not clear whether anything fits.

Two texts that were read apart can be laid side by side (`comparing`), but neither was read with the other in mind. So
where a search is in doubt, the query is read once more with each of the best few tools. Two layers read them apart, in
four more each piece looks at the pieces of both, and what comes out are the log odds that the tool does what is asked.
It takes some milliseconds, so it is not done for queries that are clear.

Invariant: the judgement depends on the query and the tool alone, however many others are judged with it. A joint reader
belongs to one sentence reader, whose word pieces it shares: beside another it means nothing, and is not used.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_MAX_PIECES
from toolcrib.retrieval.attention import HEADS, WIDTH, Arrays, Layer, Norm, Text
from toolcrib.retrieval.sentences import SentenceReader
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats, read_arrays, unit

_FILE = "joint.npz"
_FORMAT = 1
_LAYERS, _APART = 6, 2
_TIMES, _AWAY, _EACH = np.float32(20.0), np.float32(10.0), np.float32(5.0)
"""What products, differences and the numbers of a mean state of length one are multiplied by: they are small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointReader:
    """The layers, and what judges their outcome. Safe to use from several threads."""

    reader: SentenceReader
    first: Norm
    layers: Sequence[Layer]
    across: Floats
    """By layer and head: how much less a piece looks at those of the other text."""
    side: Floats
    """What is added to the pieces of a tool, so that they can be told from those of the query."""
    thinks: Floats
    thinks_shift: Floats
    last: Floats
    last_shift: np.float32
    worth: np.float32
    """What one unit of the cosine of both is worth."""
    usual: np.float32
    """The cosine that says nothing."""

    @classmethod
    def check(cls, reader: SentenceReader, directory: Path = MODEL_DIRECTORY) -> None:
        """Looks whether there is a joint reader that belongs to a sentence reader, without reading the whole of it.

        Raises:
            ModelUnavailable: the file is missing, cannot be opened or belongs to another reader.
        """
        meta = read_arrays(directory / _FILE, only="meta")
        try:
            _check_meta(meta, reader)
        except (KeyError, ValueError, TypeError) as error:
            raise ModelUnavailable(f"{_FILE} is damaged: {error}") from error

    @classmethod
    def load(cls, reader: SentenceReader, directory: Path = MODEL_DIRECTORY) -> "JointReader":
        """Reads the joint reader that belongs to a sentence reader.

        Raises:
            ModelUnavailable: the file is missing, damaged or belongs to another reader.
        """
        arrays = read_arrays(directory / _FILE)
        try:
            _check_meta(arrays, reader)
            made = cls(
                reader=reader,
                first=Norm.read(arrays, "first"),
                layers=tuple(Layer.read(arrays, f"{number}.") for number in range(_LAYERS)),
                across=arrays["across"].astype(np.float32).reshape(_LAYERS - _APART, HEADS),
                side=arrays["side"].astype(np.float32).reshape(WIDTH),
                thinks=arrays["thinks.weight"].astype(np.float32).reshape(4 * WIDTH, -1),
                thinks_shift=arrays["thinks.shift"].astype(np.float32),
                last=arrays["last.weight"].astype(np.float32).reshape(-1),
                last_shift=np.float32(arrays["last.shift"].astype(np.float32).item()),
                worth=np.float32(arrays["worth"].astype(np.float32).item()),
                usual=np.float32(arrays["usual"].astype(np.float32).item()),
            )
            # Whatever does not fit together fails here, and never in a search.
            made.judged("a", ("b",))
            return made
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ModelUnavailable(f"{_FILE} is damaged: {error}") from error

    def judged(self, query: str, tools: Sequence[str]) -> Floats:
        """The log odds that each of some tools, given as they are read (`joint_text`), does what is asked."""
        if not tools:
            return np.empty(0, dtype=np.float32)
        begun = [self.reader.begun(text, at_most=READER_MAX_PIECES) for text in (query, *tools)]
        asked, *offered = _parted(self._read(begun, self.layers[:_APART]), begun)
        here = len(asked)
        pairs = [np.concatenate((asked, each + self.side)) for each in offered]
        states = np.concatenate(pairs)
        for layer, across in zip(self.layers[_APART:], self.across, strict=True):
            states = layer(states, [Text(rows, here, across) for rows, _ in _rows(pairs)])
        return np.array([self._judge(each[:here], each[here:]) for each in _parted(states, pairs)], dtype=np.float32)

    def _read(self, begun: Sequence[Floats], layers: Sequence[Layer]) -> Floats:
        """The states of texts that are read apart."""
        states = self.first(np.concatenate(begun))
        texts = [Text(rows) for rows, _ in _rows(begun)]
        for layer in layers:
            states = layer(states, texts)
        return states

    def _judge(self, asked: Floats, offered: Floats) -> np.float32:
        one, other = unit(asked.mean(axis=0)), unit(offered.mean(axis=0))
        seen = np.concatenate((one * other * _TIMES, np.abs(one - other) * _AWAY, one * _EACH, other * _EACH))
        thought = np.maximum(np.einsum("i,ij->j", seen, self.thinks) + self.thinks_shift, np.float32(0.0))
        cosine = np.einsum("i,i->", one, other)
        return np.einsum("i,i->", thought, self.last) + self.last_shift + self.worth * (cosine - self.usual)


def _check_meta(arrays: Arrays, reader: SentenceReader) -> None:
    meta = json.loads(bytes(arrays["meta"]))
    if meta["format"] != _FORMAT or meta["reader"] != reader.mark:
        raise ModelUnavailable(f"{_FILE} does not belong to the sentence reader")


def _rows(texts: Sequence[Floats]) -> list[tuple[slice, Floats]]:
    """Where each text stands if they stand one after the other."""
    ends = np.cumsum([len(text) for text in texts]).tolist()
    return [(slice(end - len(text), end), text) for end, text in zip(ends, texts, strict=True)]


def _parted(states: Floats, texts: Sequence[Floats]) -> list[Floats]:
    return [states[rows] for rows, _ in _rows(texts)]
