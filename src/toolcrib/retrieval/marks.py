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

    __slots__ = ("_asked", "_least", "_leave", "_made", "_vocabulary")

    def __init__(
        self, vocabulary: Words, leave: Callable[[list[str], bytearray], None], *, words_a_question: int
    ) -> None:
        """`leave` makes the marks of some words: of so many in the time that one question takes without marks."""
        self._vocabulary = vocabulary
        self._leave = leave
        self._least = words_a_question
        self._made = (bytearray(), 0)
        """The marks, and of how many words: together, because another thread may look while they are made."""
        self._asked = 0

    def current(self, questions: int = 1) -> bytearray | None:
        """The marks of all words, for so many questions; nothing while making them takes longer than it would spare."""
        places, read = self._made
        return (places or None) if read == len(self._vocabulary) else self._catch_up(questions)

    def _catch_up(self, questions: int) -> bytearray | None:
        places, read = self._made
        words = self._vocabulary
        size = len(words)
        self._asked += questions
        if self._asked * self._least < size - read:  # as nearly always, for the first search
            return None
        room = min(max(_LEAST_PLACES, 1 << (_PLACES_A_WORD * size).bit_length()), _MOST_PLACES)
        if len(places) < room:
            places, read = bytearray(), 0
        if self._asked * self._least < size - read:
            return None
        try:
            newest = list(islice(reversed(words), size - read))
        except RuntimeError:  # a dictionary that another thread adds words to right now
            return None
        if len(words) > size:  # the same, seen later: these may not be all
            return None
        places = places or bytearray(room)
        self._leave(newest, places)
        self._made, self._asked = (places, size), 0
        return places
