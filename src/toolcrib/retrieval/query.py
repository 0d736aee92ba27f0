"""Turns a query into weighted term numbers of one index.

A word counts by how rare it is in this index and by how telling it is in queries at all (`salience`). The
exact written form counts most; other forms of the same word (its family) count less; a word that the index
does not know may be two words written together, or two words of the query may be one. Words that mean nearly the
same (`neighbours`) count for a part of it. No word is required: a word that nothing in the index holds adds nothing
and takes nothing away (X2: it never empties an answerable query).

Invariant: weights depend on the query and on counts of living rows alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct

from toolcrib.limits import QUERY_MAX_TERMS, QUERY_WORDS_CACHED, TERM_MAX_CHARS
from toolcrib.retrieval.analysis import Analyser
from toolcrib.retrieval.neighbours import Neighbours, shipped_neighbours
from toolcrib.retrieval.reading import Numbers, Postings
from toolcrib.retrieval.salience import GRAMMATICAL, salience_table
from toolcrib.retrieval.spelling import Spelling
from toolcrib.retrieval.text import family, query_terms

_MISSPELT_MIN_CHARS = 5
_MISSPELT_MAX_CHARS = 20
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
    misspelt: float = 0.5
    """The commonest word one slip away from an unknown one, which must start with the same letter."""
    nearby: float = 0.7
    """A word of the very same meaning, against the word that was written; less, the less near it is."""
    salience: Mapping[str, float] = field(default_factory=salience_table)
    """Word families that count less than in full."""
    neighbours: Callable[[], Neighbours] = shipped_neighbours
    """Words that mean nearly the same; read when the first word is weighed."""


class Word(Struct, frozen=True, kw_only=True):
    """One word of a query."""

    text: str
    mass: float
    """What the word is worth if a document holds exactly it."""
    numbers: Numbers
    """Term numbers that answer to the word, with their weights; empty if the index knows none."""
    nearby: Numbers = ()
    """Term numbers of words that mean nearly the same."""
    misspelt: bool = False
    """Whether these are those of another word, one slip away."""
    telling: bool = True
    """Whether the word says anything by itself; grammatical words do not, nor do two words put together."""


class Weigher:
    """Weighs queries for one index, and remembers the words that it has weighed."""

    __slots__ = ("_families", "_near", "_postings", "_rows", "_seen", "_spelling", "_vocabulary", "_weights")

    def __init__(self, *, analyser: Analyser, spelling: Spelling, postings: Postings, weights: QueryWeights) -> None:
        self._vocabulary = analyser.vocabulary
        self._spelling = spelling
        self._postings = postings
        self._weights = weights
        self._rows = postings.living
        self._families = analyser.families
        self._seen: dict[str, Word] = {}
        self._near: dict[str, Numbers] = {}
        """Families that were looked up as neighbours: those of one meaning have each other."""

    def words(self, query: str) -> list[Word]:
        """The words of a query with everything in the index that answers to them."""
        terms = query_terms(query)[:QUERY_MAX_TERMS]
        unique = dict.fromkeys(terms)
        seen, scale = self._seen, self._weights.joined
        found = [seen.get(term) or self._remember(term) for term in unique]
        if scale and len(terms) > 1:
            for whole, key in self._families.possible(terms):
                numbers = self._forms(whole, key, scale)
                if numbers and whole not in unique:
                    found.append(Word(text=whole, mass=0.0, numbers=numbers, telling=False))
        return found

    def _remember(self, term: str) -> Word:
        if len(self._seen) >= QUERY_WORDS_CACHED:
            self._seen.clear()
            self._near.clear()
        word = self._seen[term] = self._weigh(term)
        return word

    def _weigh(self, term: str) -> Word:
        key = family(term)
        numbers = self._forms(term, key, 1.0)
        if not numbers and self._weights.parted:
            numbers = self._parted(term)
        misspelt = not numbers and bool(self._weights.misspelt)
        if misspelt:
            numbers = self._misspelt(term)
        own = self._vocabulary.get(term)
        mass = self._worth(key, 0 if own is None else self._postings.holding(own))
        telling = self._weights.salience.get(key, 1.0) > GRAMMATICAL
        nearby = self._nearby(term, key, mass) if telling and self._weights.nearby else ()
        is_misspelt = misspelt and bool(numbers)
        return Word(text=term, mass=mass, numbers=numbers, nearby=nearby, misspelt=is_misspelt, telling=telling)

    def _nearby(self, term: str, key: str, mass: float) -> Numbers:
        """However rare it is, a neighbour is worth no more than the word itself."""
        neighbours = self._weights.neighbours().of(term)
        if not neighbours:
            return ()
        # In a place of its own: another thread may empty what is remembered.
        near = {other: known for other, _ in neighbours if (known := self._near.get(other)) is not None}
        unknown = [other for other, _ in neighbours if other not in near]
        for other, numbers in zip(unknown, self._families.several(unknown), strict=True):
            near[other] = self._near[other] = self._weighed(other, other, numbers, 1.0)
        most, salience = self._weights.nearby, self._weights.salience.get(key, 1.0)
        return tuple(
            [
                (number, most * nearness * min(weight * salience, mass))
                for other, nearness in neighbours
                for number, weight in near[other]
            ]
        )

    def _worth(self, key: str, holding: int) -> float:
        rarity = math.log(1.0 + (self._rows - holding + 0.5) / (holding + 0.5))
        return rarity * self._weights.salience.get(key, 1.0)

    def _forms(self, term: str, key: str, scale: float) -> Numbers:
        return self._weighed(term, key, self._families.numbers(key), scale)

    def _weighed(self, term: str, key: str, numbers: tuple[int, ...], scale: float) -> Numbers:
        """The terms of a family as they count for one of its words."""
        if not numbers:
            return ()
        own, counts = self._vocabulary.get(term), list(map(self._postings.holding, numbers))
        together = min(self._rows, sum(counts))
        found: list[tuple[int, float]] = []
        for number, count in zip(numbers, counts, strict=True):
            if not count:
                continue
            weight = self._worth(key, count) if number == own else self._weights.variant * self._worth(key, together)
            if weight > 0.0:
                found.append((number, weight * scale))
        return tuple(found)

    def _parted(self, term: str) -> Numbers:
        if len(term) < _SPLIT_MIN_CHARS or not term.isascii():
            return ()
        scale = self._weights.parted
        for place, one, other in self._families.halves(term, _split_places(len(term))):
            first = self._forms(term[:place], one, scale)
            second = self._forms(term[place:], other, scale) if first else ()
            if second:
                return first + second
        return ()

    def respelt(self, term: str) -> str | None:
        """The word that a misspelt one, in lower case, stands for; nothing if it is known, or no word is near."""
        own = self._vocabulary.get(term)
        if not self._weights.misspelt or (own is not None and self._postings.holding(own)):
            return None
        # First, since most unknown words are near to none, and that is soon told.
        meant = self._meant(term)
        return None if meant is None or self._forms(term, family(term), 1.0) or self._parted(term) else meant

    def _misspelt(self, term: str) -> Numbers:
        word = self._meant(term)
        return self._forms(word, family(word), self._weights.misspelt) if word else ()

    def _meant(self, term: str) -> str | None:
        """The commonest word of this index that is one slip away."""
        if not (_MISSPELT_MIN_CHARS <= len(term) <= _MISSPELT_MAX_CHARS and term.isascii() and term.isalpha()):
            return None
        vocabulary, holding = self._vocabulary, self._postings.holding
        known = [(holding(vocabulary[word]), word) for word in self._spelling.near(term)]
        count, word = max(known, default=(0, ""))
        return word if count else None


@lru_cache(TERM_MAX_CHARS)
def _split_places(length: int) -> tuple[int, ...]:
    """Where a word of this length may come apart, from its middle outwards."""
    places = range(_SPLIT_PART_CHARS, length - _SPLIT_PART_CHARS + 1)
    return tuple(sorted(places, key=lambda at: (abs(at - length / 2), at)))


# Loops: a query has three to five words, and a comprehension takes longer to set up than these take to be read.


def all_numbers(words: Sequence[Word]) -> list[tuple[int, float]]:
    """What answers to any of the words, with its weight."""
    numbers: list[tuple[int, float]] = []
    for word in words:
        numbers += word.numbers
    return numbers


def mass_of(words: Sequence[Word]) -> float:
    """What a document that held every word could be worth, roughly."""
    mass = 0.0
    for word in words:
        mass += word.mass
    return mass


def standing_in(words: Sequence[Word]) -> list[tuple[Numbers, Numbers]]:
    """For each word the terms near to it that answer to no word themselves, and those that answer to it.

    A document is worth what the word gives it or what the best one of them does, whichever is more, so that listing
    everything that means the same gains nothing (D1).
    """
    found: list[tuple[Numbers, Numbers]] = []
    held: dict[int, float] = {}
    for word in words:
        if near := word.nearby:
            held = held or dict(all_numbers(words))
            if not held.keys().isdisjoint(dict(near)):
                near = tuple([pair for pair in near if pair[0] not in held])
            if near:
                found.append((near, word.numbers))
    return found
