"""Decides what the clauses of a query add to its documents: several needs in one sentence, each looked up for itself.

The sum of all words of a long request is near to none of its needs, and the tools of one need can fill the answer. So
each clause is also asked alone. A document gains a share of what its best clause finds nearer than the whole does,
and loses the more, the further it stands behind the best document of every clause: whoever is first for one clause
keeps all it has.

Invariant: a query of one clause is left as it is. Only the best documents of the whole query are looked at, so that a
clause costs little in a large index.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import CLAUSE_MAX_ROWS, QUERY_MAX_CHARS, QUERY_MAX_CLAUSES
from toolcrib.retrieval.fusion import Floats, FusionWeights
from toolcrib.retrieval.selection import best_rows

_ENDS = re.compile(r"(?<=[.!?;,])\s+|\n+|[。！？；，、]|\s(?:and|then|also)\s")
_MIN_WORDS = 3


def clauses(query: str) -> tuple[str, ...]:
    """The clauses of a query that has several, long enough to say something; none for a simple query."""
    parts = [part for part in _ENDS.split(query[:QUERY_MAX_CHARS]) if part and _says_something(part)]
    return tuple(parts[:QUERY_MAX_CLAUSES]) if len(parts) > 1 else ()


def looked_at(fused: Floats, gone: NDArray[np.int32]) -> NDArray[np.intp]:
    """The living rows whose clauses are looked at: the best, ties at the edge included."""
    rows = np.arange(len(fused))
    if len(fused) > CLAUSE_MAX_ROWS:
        rows = best_rows(fused, CLAUSE_MAX_ROWS)
        if len(rows) < CLAUSE_MAX_ROWS:  # so few are above 0 that others are looked at, too
            place = len(fused) - CLAUSE_MAX_ROWS
            rows = np.flatnonzero(fused >= np.partition(fused, place)[place])
    return np.setdiff1d(rows, gone, assume_unique=True) if len(gone) else rows


def clause_part(words: Sequence[Floats], near: Sequence[Floats], whole: Floats, weights: FusionWeights) -> Floats:
    """What the clauses add to some rows: by clause what words and meaning give, and the nearness of the whole query."""
    nearest = np.maximum.reduce(near)
    gain = np.maximum(nearest - whole, np.float32(0.0)) * np.float32(weights.clauses)
    if weights.standing:
        standings = [_behind(word * np.float32(weights.words) + mean) for word, mean in zip(words, near, strict=True)]
        gain += np.maximum.reduce(standings) * np.float32(weights.standing)
    return gain


def _behind(scores: Floats) -> Floats:
    """How far each is behind the best, 0 or less."""
    return scores - scores.max(initial=-np.inf)


def _says_something(part: str) -> bool:
    return len(part.split()) >= _MIN_WORDS or not part.isascii()
