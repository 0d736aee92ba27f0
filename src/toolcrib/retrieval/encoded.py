"""Meaning from two models at once: the static table for every tool, the sentence encoder where its vector is there.

The two err in different ways: a table of words is right where the words are, an encoder where the sentence is. Their
mean ranks better than either. A tool whose vector is still being made is ranked by the table alone, on the same scale,
so an index answers from the first moment and gets better while it is used; `applied` says how far it is.

Invariant: with the same vectors the same scores; a vector arrives once and never changes.
"""

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import SEMANTIC_EXACT_DOCUMENTS, SEMANTIC_REFINED_DOCUMENTS
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.cohort import Cohort
from toolcrib.retrieval.encoder import DIMENSIONS, document_text, query_text
from toolcrib.retrieval.encoder_confidence import ENCODER_CALIBRATION, EncoderCohort
from toolcrib.retrieval.encoder_fill import VectorFill
from toolcrib.retrieval.fusion import FusionWeights
from toolcrib.retrieval.hybrid import HybridRetriever, SemanticModel, Yardstick
from toolcrib.retrieval.semantic import FOREIGN_SHARE, Places, StaticModel
from toolcrib.retrieval.vectors import unit

Floats = NDArray[np.float32]

ENCODER_SHARE = 0.4
"""What the encoder says of a nearness, the rest being the table's; chosen on the macro mean of the development sets."""
ENCODER_WEIGHTS = FusionWeights(words=0.02, words_alone=0.02)
"""With two models, words count for less."""


class EncodedRetriever(HybridRetriever):
    """Builds indexes of words, the table and the encoder."""

    __slots__ = ("fill",)

    def __init__(self, fill: VectorFill, *, load: Callable[[], StaticModel] = StaticModel.load) -> None:
        super().__init__(
            load=lambda: EncodedModel(load(), fill),
            weights=ENCODER_WEIGHTS,
            calibration=ENCODER_CALIBRATION,
            yardstick=_yardstick,
        )
        self.fill = fill
        """The encoder's vectors: how far they are, and why there are none if it cannot be used."""

    @property
    def fills(self) -> Sequence[VectorFill]:
        """Vectors that are made in the background: what the reader reads, and what the encoder does."""
        readings = self._model.static.readings if isinstance(self._model, EncodedModel) else None
        return (self.fill,) if readings is None else (readings, self.fill)


class EncodedModel:
    """Makes vectors of documents with both models."""

    __slots__ = ("fill", "static")

    def __init__(self, static: StaticModel, fill: VectorFill) -> None:
        self.static = static
        self.fill = fill

    def index(self, documents: Sequence[Document]) -> "EncodedVectors":
        """The documents by meaning, in this order; the encoder's part comes in the background."""
        return EncodedVectors(self, documents)

    def english(self, text: str) -> Sequence[str]:
        """English words for a query in another language."""
        return self.static.vocabulary.english(text)

    def is_foreign(self, query: str) -> bool:
        """Whether the query is left to the table, which has a bridge to other languages."""
        return self.static.vocabulary.foreign_share(query) >= FOREIGN_SHARE

    def ask(self, query: str) -> Floats | None:
        """The encoder's vector of a query; `None` if it is not the encoder's to answer, or not ready."""
        return None if self.is_foreign(query) else self.fill.query(query_text(query))


class EncodedVectors:
    """Documents by meaning."""

    __slots__ = ("_digests", "_lock", "_model", "_rows", "_seen", "_static", "_there")

    def __init__(self, model: EncodedModel, documents: Sequence[Document]) -> None:
        self._model = model
        self._static = model.static.index(documents)
        self._digests = model.fill.want([document_text(document) for document in documents])
        exact = len(documents) <= SEMANTIC_EXACT_DOCUMENTS
        self._rows: NDArray[np.float32] | NDArray[np.int8] = (
            np.zeros((len(documents), DIMENSIONS), dtype=np.float32)
            if exact
            else np.zeros((len(documents), DIMENSIONS), dtype=np.int8)
        )
        """Of length one; of a large index in whole numbers, a quarter of the memory."""
        self._there = np.zeros(len(documents), dtype=np.bool_)
        self._seen = -1
        self._lock = Lock()

    def applied(self, query: str) -> tuple[int, int]:
        """How many of the documents the encoder answers for, and how many it should; none for a foreign query."""
        if self._model.is_foreign(query):
            return 0, 0
        if self._model.ask(query) is None:
            return 0, len(self._there)
        self._refresh()
        return int(self._there.sum()), len(self._there)

    @property
    def unread(self) -> int:
        """Documents that the shipped reader is still to read."""
        return self._static.unread

    def by_words(self, query: str) -> bool:
        """Whether this query meets the documents by their words alone, as far as the table is concerned."""
        return self._static.by_words(query)

    def scores(self, query: str) -> Floats:
        """Nearness of each document to the query, in the order in which they were given."""
        scores = self._static.scores(query)
        rows, near = self._encoded(query, scores)
        scores[rows] += np.float32(ENCODER_SHARE) * (near - scores[rows])
        return scores

    def some(self, texts: Sequence[str], rows: Places) -> list[Floats]:
        """Nearness by the table alone: for the clauses of a query, where the encoder gains nothing for its time."""
        return self._static.some(texts, rows)

    def encoded(self, query: str) -> Floats:
        """The encoder's own part in each score; 0 where it has none."""
        part = np.zeros(len(self._there), dtype=np.float32)
        rows, near = self._encoded(query, self._static.scores(query))
        part[rows] = np.float32(ENCODER_SHARE) * near
        return part

    def _encoded(self, query: str, static: Floats) -> tuple[NDArray[np.intp] | slice, Floats]:
        """Rows that the encoder answers for, and how near it finds them."""
        vector = self._model.ask(query)
        if vector is None:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
        self._refresh()
        if len(static) > SEMANTIC_EXACT_DOCUMENTS:
            # Of a large index only those that the table finds near.
            nearest = np.argpartition(static, -SEMANTIC_REFINED_DOCUMENTS)[-SEMANTIC_REFINED_DOCUMENTS:]
            rows = nearest[self._there[nearest]]
            return rows, np.einsum("ij,j->i", unit(self._rows[rows]), vector)
        if self._there.all():
            return slice(None), np.einsum("ij,j->i", self._rows, vector)
        rows = np.flatnonzero(self._there)
        return rows, np.einsum("ij,j->i", self._rows[rows], vector)

    def _refresh(self) -> None:
        """Takes over the vectors that came since the last look."""
        fill = self._model.fill
        version = fill.version
        if self._seen == version:
            return
        with self._lock:
            for row in np.flatnonzero(~self._there):
                kept = fill.vector(self._digests[row])
                if kept is not None:
                    codes = np.frombuffer(kept, dtype=np.int8)
                    self._rows[row] = codes if self._rows.dtype == np.int8 else unit(codes)
                    self._there[row] = True
            self._seen = version


def _yardstick(model: SemanticModel) -> Yardstick | None:
    if not isinstance(model, EncodedModel):
        return None
    static = Cohort.load(model.static)
    return None if static is None else EncoderCohort.load(static, model.ask, ENCODER_SHARE)
