"""Decides how words and meaning add up to one score.

Words are worth their plain sum, in a small fixed unit; meaning is the cosine. So a long query, which tells much by
its words, leans on them, and a short one, whose single shared word may be a coincidence, leans on meaning. A share of
what the query could have been worth does the opposite, and the share of the best hit makes a poor match look perfect.
A query that states several needs is also looked up clause by clause, and a document may take part of the clause that
suits it best.

Invariant: without meaning (no model, or no word that it knows) the order is that of words alone.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import QUERY_MAX_CHARS, QUERY_MAX_CLAUSES

Floats = NDArray[np.float32]

_CLAUSE_ENDS = re.compile(r"(?<=[.!?;,])\s+|\n+|[。！？；，、]|\s(?:and|then|also)\s")
_CLAUSE_MIN_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionWeights:
    """How the parts count; a zero switches a part off."""

    words: float = 0.04
    """One unit of the word score (BM25), against a cosine of 1."""
    meaning: float = 1.0
    clauses: float = 0.4
    """How much of what its best clause adds a document takes."""


def clauses(query: str) -> tuple[str, ...]:
    """The clauses of a query that has several, long enough to say something; none for a simple query."""
    parts = [part for part in _CLAUSE_ENDS.split(query[:QUERY_MAX_CHARS]) if part and _says_something(part)]
    return tuple(parts[:QUERY_MAX_CLAUSES]) if len(parts) > 1 else ()


def fuse(words: Floats, meaning: Floats, best_clause: Floats | None, weights: FusionWeights) -> Floats:
    """One score per row from the scores of words and of meaning."""
    fused = words * np.float32(weights.words)
    fused += meaning * np.float32(weights.meaning)
    if best_clause is not None:
        fused += np.maximum(best_clause - meaning, np.float32(0.0)) * np.float32(weights.clauses)
    return fused


def _says_something(part: str) -> bool:
    return len(part.split()) >= _CLAUSE_MIN_WORDS or not part.isascii()
