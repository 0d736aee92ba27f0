"""Turns a query into weighted term numbers of one index.

A word counts by how rare it is in this index and by how telling it is in queries at all (`salience`). The
exact written form counts most; other forms of the same word (its family) count less; a word that the index
does not know may be two words written together, or two words of the query may be one. No word is required: a
word that nothing in the index holds adds nothing and takes nothing away (X2: it never empties an answerable
query).

Invariant: weights depend on the query and on counts of living rows alone.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from toolcrib.limits import QUERY_MAX_TERMS
from toolcrib.retrieval.analysis import Analyser
from toolcrib.retrieval.postings import Postings
from toolcrib.retrieval.salience import salience_table
from toolcrib.retrieval.text import family, query_terms

_SPLIT_MIN_CHARS = 5
_SPLIT_PART_CHARS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWeights:
    """How the rules of this module count; a zero switches a rule off."""

    variant: float = 0.9
    """Another form of the same word, against the form that was written."""
    joined: float = 0.5
    """Two neighbouring words that the index knows as one ("app lens" for `applens`)."""
    parted: float = 1.0
    """Each half of an unknown word that the index knows as two ("cosmosdb" for "Cosmos DB")."""
    salience: Mapping[str, float] = field(default_factory=salience_table)
    """Word families that count less than in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a query."""

    text: str
    mass: float
    """What the word is worth if a document holds exactly it."""
    numbers: tuple[tuple[int, float], ...]
    """Term numbers that answer to the word, with their weights; empty if the index knows none."""


def weigh(query: str, *, analyser: Analyser, postings: Postings, weights: QueryWeights) -> list[Word]:
    """The words of a query with everything in the index that answers to them."""
    return list(_Weighing(analyser, postings, weights).words(query))


class _Weighing:
    __slots__ = ("_analyser", "_postings", "_weights")

    def __init__(self, analyser: Analyser, postings: Postings, weights: QueryWeights) -> None:
        self._analyser = analyser
        self._postings = postings
        self._weights = weights

    def words(self, query: str) -> Iterator[Word]:
        terms = query_terms(query)[:QUERY_MAX_TERMS]
        unique = dict.fromkeys(terms)
        for term in unique:
            numbers = self._forms(term, 1.0)
            if not numbers and self._weights.parted:
                numbers = self._parted(term)
            yield Word(text=term, mass=self._mass(term), numbers=numbers)
        if self._weights.joined:
            for first, second in pairwise(terms):
                whole = first + second
                if whole not in unique:
                    numbers = self._forms(whole, self._weights.joined)
                    if numbers:
                        yield Word(text=whole, mass=0.0, numbers=numbers)

    def _mass(self, term: str) -> float:
        own = self._analyser.vocabulary.get(term)
        return self._worth(term, 0 if own is None else self._postings.holding(own))

    def _worth(self, term: str, holding: int) -> float:
        rows = self._postings.living
        rarity = math.log(1.0 + (rows - holding + 0.5) / (holding + 0.5))
        return rarity * self._weights.salience.get(family(term), 1.0)

    def _forms(self, term: str, scale: float) -> tuple[tuple[int, float], ...]:
        own = self._analyser.vocabulary.get(term)
        known = [(n, c) for n in self._analyser.family_numbers(term) if (c := self._postings.holding(n))]
        if not known:
            return ()
        rows = self._postings.living
        together = self._worth(term, min(rows, sum(holding for _, holding in known)))
        found: list[tuple[int, float]] = []
        for number, holding in known:
            worth = self._worth(term, holding)
            weight = worth if number == own else self._weights.variant * min(together, worth)
            if weight > 0.0:
                found.append((number, weight * scale))
        return tuple(found)

    def _parted(self, term: str) -> tuple[tuple[int, float], ...]:
        if len(term) < _SPLIT_MIN_CHARS or not term.isascii():
            return ()
        middle = len(term) / 2
        places = range(_SPLIT_PART_CHARS, len(term) - _SPLIT_PART_CHARS + 1)
        for place in sorted(places, key=lambda at: (abs(at - middle), at)):
            first = self._forms(term[:place], self._weights.parted)
            if first:
                second = self._forms(term[place:], self._weights.parted)
                if second:
                    return first + second
        return ()
