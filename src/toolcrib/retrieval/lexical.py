"""Ranks documents by the words that they share with a query: weighted fields, BM25 impacts, and names.

A query that is a tool's name (exposed name, leaf, or toolset and leaf) puts that tool first, whatever else
scores. Otherwise the sum over the query's words decides. If no word matches at all, a literal part of a name
still finds (S23).

Invariant: the ranking is a pure function of the set of documents and the query; equal scores are ordered by
key. Prevents that an answer depends on what was indexed before, or on the order in which sources answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import DELTA_MAX_SHARE, DELTA_MIN_DOCUMENTS, RESULTS_MAX_HITS
from toolcrib.retrieval.analysis import Analyser, FieldWeights, default_weights, name_hash, names_of
from toolcrib.retrieval.base import Document, Hit, Ranking
from toolcrib.retrieval.postings import Floats, Postings, Segment, amended, build_segment
from toolcrib.retrieval.query import QueryWeights, Word, weigh
from toolcrib.retrieval.text import normal_name

# Exposed name, leaf, toolset with leaf: each must outrank whatever words can score, and in this order.
_NAME_BONUSES = (3.0, 1.0, 2.0)
_SUBSTRING_ANYWHERE_CHARS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The last whole build: what the next index may be an amendment of."""

    documents: tuple[Document, ...]
    segment: Segment
    analyser: Analyser


class LexicalRetriever:
    """Builds lexical indexes; keeps analysed documents by content, and the last whole build."""

    __slots__ = ("_analyser", "_base", "_lock", "_query", "_weights")

    def __init__(self, weights: FieldWeights | None = None, *, query: QueryWeights | None = None) -> None:
        self._weights = weights if weights is not None else default_weights()
        self._query = query if query is not None else QueryWeights()
        self._analyser = Analyser(self._weights)
        self._base: _Base | None = None
        self._lock = Lock()

    def index(self, documents: Sequence[Document]) -> "LexicalIndex":
        """The index of exactly these documents; their order does not matter."""
        with self._lock:
            if self._analyser.full:
                self._analyser, self._base = Analyser(self._weights), None
            given = tuple(documents)
            amendment = self._amend(given)
            if amendment is None:
                amendment = self._build(given)
            rows, postings, by_row = amendment
            return LexicalIndex(
                rows=rows, postings=postings, documents=by_row, analyser=self._analyser, query=self._query
            )

    def _build(self, given: tuple[Document, ...]) -> "_Parts":
        segment = build_segment(self._analyser.analyse(given))
        self._base = _Base(documents=given, segment=segment, analyser=self._analyser)
        postings = amended(segment, gone=(), gone_analysed=(), added=build_segment(()))
        return None, postings, _ByRow(given, ())

    def _amend(self, given: tuple[Document, ...]) -> "_Parts | None":
        base = self._base
        if base is None:
            return None
        old = base.documents
        head = _common(old, given)
        if head == len(old) == len(given):
            return (
                None,
                amended(base.segment, gone=(), gone_analysed=(), added=build_segment(())),
                _ByRow(old, ()),
            )
        tail = min(_common(old[::-1], given[::-1]), min(len(old), len(given)) - head)
        before, after = range(head, len(old) - tail), given[head : len(given) - tail]
        if max(len(before), len(after)) > max(DELTA_MIN_DOCUMENTS, DELTA_MAX_SHARE * len(old)):
            return None
        kept = {old[row].digest: row for row in before}
        added: list[Document] = []
        window: list[int] = []
        for document in after:
            row = kept.pop(document.digest, None)
            if row is None:
                row = len(old) + len(added)
                added.append(document)
            window.append(row)
        gone = sorted(kept.values())
        analyse = self._analyser.analyse
        postings = amended(
            base.segment,
            gone=gone,
            gone_analysed=analyse(old[row] for row in gone),
            added=build_segment(analyse(added)),
        )
        ends = np.arange(head), np.array(window, dtype=np.int64), np.arange(len(old) - tail, len(old))
        return np.concatenate(ends), postings, _ByRow(old, tuple(added))


class _ByRow:
    """The document of a row: first those of the base, then the added ones."""

    __slots__ = ("_added", "_base")

    def __init__(self, base: tuple[Document, ...], added: tuple[Document, ...]) -> None:
        self._base = base
        self._added = added

    def __getitem__(self, row: int) -> Document:
        size = len(self._base)
        return self._base[row] if row < size else self._added[row - size]


_Parts = tuple[NDArray[np.int64] | None, Postings, _ByRow]


class LexicalIndex:
    """Searchable documents; immutable."""

    __slots__ = ("_analyser", "_documents", "_postings", "_query", "_rows")

    def __init__(
        self,
        *,
        rows: NDArray[np.int64] | None,
        postings: Postings,
        documents: _ByRow,
        analyser: Analyser,
        query: QueryWeights,
    ) -> None:
        self._rows = rows
        self._postings = postings
        self._documents = documents
        self._analyser = analyser
        self._query = query

    def __len__(self) -> int:
        return self._postings.living

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """Ranks the documents for `query`. Never raises, whatever the string."""
        limit = min(limit, RESULTS_MAX_HITS, len(self))
        if limit <= 0:
            return Ranking(hits=(), abstained=False, confidence=0.0)
        words = self.words(query)
        scores = self._row_scores(query, words)
        documents = self._documents
        ranked = sorted((-float(scores[row]), documents[row].key) for row in best_rows(scores, limit))
        hits = tuple(Hit(key=key, score=-score) for score, key in ranked[:limit])
        if not hits:
            hits = self._by_substring(query, limit)
        return Ranking(hits=hits, abstained=not hits, confidence=1.0 if hits else 0.0)

    def words(self, query: str) -> list[Word]:
        """The words of a query as this index weighs them."""
        return weigh(query, analyser=self._analyser, postings=self._postings, weights=self._query)

    def scores(self, query: str) -> Floats:
        """The score of every document, in the order in which they were given."""
        scores = self._row_scores(query, self.words(query))
        return scores if self._rows is None else scores[self._rows]

    def _row_scores(self, query: str, words: Sequence[Word]) -> Floats:
        total = self._postings.accumulate([pair for word in words for pair in word.numbers])
        wanted = name_hash(query)
        if wanted:
            top = float(total.max(initial=0.0))
            normal = normal_name(query)
            for kind, bonus in enumerate(_NAME_BONUSES):
                for row in self._postings.named(wanted, kind):
                    if normal_name(names_of(self._documents[row])[kind]) == normal:
                        total[row] += np.float32(top + bonus)
        return total

    def _by_substring(self, query: str, limit: int) -> tuple[Hit, ...]:
        part = normal_name(query)
        if not part:
            return ()
        found: list[str] = []
        rows = range(self._postings.rows) if self._rows is None else map(int, self._rows)
        for row in rows:
            key = self._documents[row].key
            at = normal_name(key).find(part)
            if at == 0 or (at > 0 and len(part) >= _SUBSTRING_ANYWHERE_CHARS):
                found.append(key)
        return tuple(Hit(key=key, score=0.0) for key in sorted(found)[:limit])


def _common(first: tuple[Document, ...], second: tuple[Document, ...]) -> int:
    """How many documents at the start are the same objects."""
    same = list(map(is_, first, second))
    return same.index(False) if False in same else len(same)


def best_rows(scores: Floats, limit: int) -> list[int]:
    """Rows of at least the `limit` best positive scores, ties at the edge included."""
    top = float(scores.max(initial=0.0))
    if top <= 0.0:
        return []
    rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    for share in (0.5, 0.2, 0.0):
        rows = np.flatnonzero(scores > np.float32(top * share))
        if len(rows) >= limit:
            break
    if len(rows) > limit:
        values = scores[rows]
        edge = np.partition(values, len(values) - limit)[len(values) - limit]
        rows = rows[values >= edge]
    return rows.tolist()
