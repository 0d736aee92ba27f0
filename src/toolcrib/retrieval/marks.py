"""Marks that the words of a growing vocabulary leave in a table of bits, to say of most unknown words that they are.

Marking every word takes as long as many look-ups do without marks. So it waits until that many were made: whoever
searches once does not pay for those who search a thousand times.

Invariant: marks only ever spare work; nothing that is found depends on them.
"""

from collections.abc import Callable, Collection, Reversible
from itertools import islice
from typing import Protocol

_LEAST_PLACES, _MOST_PLACES = 1 << 12, 1 << 20
_PLACES_A_WORD = 32
"""Places for marks, a byte each: few words do not take the memory that many need."""


class Words(Collection[str], Reversible[str], Protocol):
    """Words in the order in which they came; more may come."""


class Marks:
    """The marks of one vocabulary, made when they are worth it."""

    __slots__ = ("_asked", "_least", "_leave", "_places", "_read", "_vocabulary")

    def __init__(
        self, vocabulary: Words, leave: Callable[[list[str], bytearray], None], *, words_a_question: int
    ) -> None:
        """`leave` makes the marks of some words: of so many in the time that one question takes without marks."""
        self._vocabulary = vocabulary
        self._leave = leave
        self._least = words_a_question
        self._places = bytearray()
        self._read = 0
        self._asked = 0

    def current(self, questions: int = 1) -> bytearray | None:
        """The marks of all words, for so many questions; nothing while making them takes longer than it would spare."""
        return (self._places or None) if self._read == len(self._vocabulary) else self._catch_up(questions)

    def _catch_up(self, questions: int) -> bytearray | None:
        words = self._vocabulary
        size = len(words)
        self._asked += questions
        room = min(max(_LEAST_PLACES, 1 << (_PLACES_A_WORD * size).bit_length()), _MOST_PLACES)
        fits = len(self._places) >= room
        left = size - self._read if fits else size
        if self._asked * self._least < left:
            return None
        newest = list(islice(reversed(words), left))
        if len(words) > size:  # another thread adds words right now: these may not be all
            return None
        places = self._places if fits else bytearray(room)
        self._leave(newest, places)
        self._places = places
        self._read, self._asked = size, 0
        return places
