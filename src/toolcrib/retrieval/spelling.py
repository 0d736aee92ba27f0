"""Finds the known words that one slip makes of an unknown one.

A slip in one place leaves the letters before and behind it. So known words leave marks of five letters, some from their
beginning and the rest from their end, and a place is tried with every letter only where the marks say that some word
may fit. Most unknown words are not misspelt: they have no mark at all, and cost next to nothing.
"""

from toolcrib.kernel import kernel
from toolcrib.limits import SPELLING_MARKED_WORDS
from toolcrib.retrieval.marks import PLACES, Marks, Words

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KEPT = 5
"""Letters of a mark."""
_PARTED = range(1, _KEPT)
_WORDS_A_QUESTION = 128


class Spelling:
    """Knows a vocabulary that only ever grows."""

    __slots__ = ("_marks", "_vocabulary")

    def __init__(self, vocabulary: Words) -> None:
        self._vocabulary = vocabulary
        self._marks = Marks(vocabulary, _leave_marks, words_a_question=_WORDS_A_QUESTION)

    def near(self, word: str) -> set[str]:
        """Known words that a missing, extra, wrong or swapped letter after the first one makes of `word`."""
        known = self._vocabulary
        # Marks of too many words tell nothing apart.
        marked = self._marks.current() if len(word) > _KEPT and len(known) <= SPELLING_MARKED_WORDS else None
        if kernel is not None and (compiled := kernel.respelt(word, known, marked)) is not None:
            return compiled
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


def _leave_marks(words: list[str], marks: bytearray) -> None:
    for word in words:
        if len(word) >= _KEPT:
            for at in _PARTED:
                marks[hash(f"{word[:at]} {word[at - _KEPT :]}") & (PLACES - 1)] = 1
            marks[hash(f"{word[:_KEPT]} ") & (PLACES - 1)] = 1


def _mark(word: str, at: int) -> int:
    """The place of a mark: so many letters from the beginning, and the rest of the five from the end."""
    behind = len(word) - _KEPT + at
    return hash(f"{word[:at]} {word[behind:]}") & (PLACES - 1)
