"""Ranks documents by the words that they share with a query: weighted fields, BM25, and name.

A query that is a tool's name (exposed name, leaf, or toolset and leaf) puts that tool first, whatever else
scores. Otherwise the sum over the query's terms decides: how rare a term is in this index times its impact
in the document. If no term matches at all, a literal substring of a name still finds (S23).

Invariant: the ranking is a pure function of the set of documents and the query; equal scores are ordered by
key.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import RESULTS_MAX_HITS
from toolcrib.retrieval.analysis import Analyser, FieldWeights, name_hash
from toolcrib.retrieval.base import Document, Hit, Ranking
from toolcrib.retrieval.postings import Segment, build_segment
from toolcrib.retrieval.text import normal_name, query_terms

_NAME_BONUSES = (3.0, 2.0, 2.5)
_SUBSTRING_ANYWHERE_CHARS = 5


class LexicalRetriever:
    """Builds lexical indexes and keeps analysed documents by content."""

    __slots__ = ("_analyser", "_weights")

    def __init__(self, weights: FieldWeights | None = None) -> None:
        self._weights = weights if weights is not None else FieldWeights()
        self._analyser = Analyser(self._weights)

    def index(self, documents: Sequence[Document]) -> "LexicalIndex":
        """The index of exactly these documents; their order does not matter."""
        if self._analyser.full:
            self._analyser = Analyser(self._weights)
        analyser = self._analyser
        segment = build_segment([analyser.analyse(document) for document in documents])
        return LexicalIndex(documents=tuple(documents), segment=segment, analyser=analyser)


class LexicalIndex:
    """Searchable documents; immutable."""

    __slots__ = ("_analyser", "_documents", "_segment")

    def __init__(self, *, documents: tuple[Document, ...], segment: Segment, analyser: Analyser) -> None:
        self._documents = documents
        self._segment = segment
        self._analyser = analyser

    def __len__(self) -> int:
        return len(self._documents)

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """Ranks the documents for `query`. Never raises, whatever the string."""
        limit = min(limit, RESULTS_MAX_HITS, len(self))
        if limit <= 0:
            return Ranking(hits=(), abstained=False, confidence=0.0)
        scores = self.scores(query)
        rows = _best_rows(scores, limit)
        documents = self._documents
        ranked = sorted((-float(scores[row]), documents[row].key) for row in map(int, rows))[:limit]
        hits = tuple(Hit(key=key, score=-score) for score, key in ranked)
        if not hits:
            hits = self._by_substring(query, limit)
        return Ranking(hits=hits, abstained=not hits, confidence=1.0 if hits else 0.0)

    def scores(self, query: str) -> NDArray[np.float32]:
        """The score of every document, in the order in which they were given."""
        segment = self._segment
        total = np.zeros(segment.rows, dtype=np.float32)
        vocabulary = self._analyser.vocabulary
        for term in dict.fromkeys(query_terms(query)):
            number = vocabulary.get(term)
            if number is None:
                continue
            rows, impacts = segment.postings(number)
            if len(rows):
                np.add.at(total, rows, impacts * np.float32(_rarity(segment.rows, len(rows))))
        wanted = name_hash(query)
        if wanted:
            top = float(total.max())
            for column, bonus in enumerate(_NAME_BONUSES):
                total[segment.names[:, column] == wanted] += top + bonus
        return total

    def _by_substring(self, query: str, limit: int) -> tuple[Hit, ...]:
        part = normal_name(query)
        if not part:
            return ()
        found: list[str] = []
        for document in self._documents:
            at = normal_name(document.key).find(part)
            if at == 0 or (at > 0 and len(part) >= _SUBSTRING_ANYWHERE_CHARS):
                found.append(document.key)
        return tuple(Hit(key=key, score=0.0) for key in sorted(found)[:limit])


def _rarity(documents: int, holding: int) -> float:
    return math.log(1.0 + (documents - holding + 0.5) / (holding + 0.5))


def _best_rows(scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Rows of at least the `limit` best positive scores, ties at the edge included."""
    top = float(scores.max())
    if top <= 0.0:
        return np.empty(0, dtype=np.intp)
    for share in (0.5, 0.2):
        rows = np.flatnonzero(scores >= np.float32(top * share))
        if len(rows) >= limit:
            break
    else:
        rows = np.flatnonzero(scores > 0.0)
    if len(rows) > limit:
        values = scores[rows]
        edge = np.partition(values, len(values) - limit)[len(values) - limit]
        rows = rows[values >= edge]
    return rows
