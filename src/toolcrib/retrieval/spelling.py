"""Finds the known words that one slip makes of an unknown one.

A slip in one place leaves the letters before and behind it. So known words leave marks of five letters, some from their
beginning and the rest from their end, and a place is tried with every letter only where the marks say that some word
may fit. Most unknown words are not misspelt: they have no mark at all, and cost next to nothing.

Invariant: marks only ever spare work; what is found does not depend on them.
"""

from collections.abc import Collection
from itertools import islice

from toolcrib.limits import SPELLING_MARKED_WORDS

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KEPT = 5
"""Letters of a mark."""
_MARKS = 1 << 20
"""Places for marks: 14 % of them are taken when all words have left theirs."""


class Spelling:
    """Knows a vocabulary that only ever grows."""

    __slots__ = ("_marks", "_read", "_vocabulary")

    def __init__(self, vocabulary: Collection[str]) -> None:
        """`vocabulary` is in the order in which words came, as a dictionary is."""
        self._vocabulary = vocabulary
        self._read = 0
        self._marks = bytearray()

    def near(self, word: str) -> set[str]:
        """Known words that a missing, extra, wrong or swapped letter after the first one makes of `word`."""
        known = self._vocabulary
        marked = self._marked() if len(word) > _KEPT else None
        found: list[str] = []
        fits = True
        for at in range(1, len(word) + 1):
            head, tail, rest = word[:at], word[at:], word[at + 1 :]
            if marked is not None and at <= _KEPT:
                fits = bool(marked[_mark(word, at)])
            if fits:
                found += [other for letter in _LETTERS if (other := f"{head}{letter}{tail}") in known]
            if tail:
                if fits:
                    found += [other for letter in _LETTERS if (other := f"{head}{letter}{rest}") in known]
                found += [other for other in (head + rest, f"{head}{rest[:1]}{tail[0]}{rest[1:]}") if other in known]
        return set(found) - {word}

    def _marked(self) -> bytearray | None:
        """The marks of all words; nothing if they are too many to be told apart."""
        words = self._vocabulary
        if len(words) > SPELLING_MARKED_WORDS:
            self._marks, self._read = bytearray(), 0
            return None
        marks = self._marks = self._marks or bytearray(_MARKS)
        for word in islice(words, self._read, None):
            if len(word) >= _KEPT:
                for at in range(1, _KEPT + 1):
                    marks[_mark(word, at)] = 1
        self._read = len(words)
        return marks


def _mark(word: str, at: int) -> int:
    """The place of a mark: so many letters from the beginning, and the rest of the five from the end."""
    behind = len(word) - _KEPT + at
    return hash(f"{word[:at]} {word[behind:]}") & (_MARKS - 1)
