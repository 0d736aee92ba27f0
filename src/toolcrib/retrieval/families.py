"""The terms of a vocabulary by word family, as queries look them up.

A query asks for many families that no tool knows: any two neighbouring words may be one, and an unknown word may be
two. So known terms leave marks by family, and one look at them answers for most.
"""

from collections.abc import Iterable
from itertools import pairwise

from toolcrib.kernel import kernel
from toolcrib.retrieval.marks import Marks
from toolcrib.retrieval.text import LAST_OF_ENDINGS, family, possible_forms

_TERMS_A_QUESTION = 50


class Families:
    """Knows a vocabulary that only ever grows."""

    __slots__ = ("_marks", "_vocabulary")

    def __init__(self, vocabulary: dict[str, int]) -> None:
        """`vocabulary` has the number of every term, in the order in which they came."""
        self._vocabulary = vocabulary
        self._marks = Marks(vocabulary, _leave_marks, words_a_question=_TERMS_A_QUESTION)

    def numbers(self, key: str) -> tuple[int, ...]:
        """The numbers of all terms of a family, its key first: in the order of `possible_forms`, whatever came first.

        What they give is added up in this order, and sums of floats depend on it.
        """
        return () if self.lack(key) else self._look_up(key)

    def several(self, keys: list[str]) -> list[tuple[int, ...]]:
        """`numbers` of each of several keys, at one look for the marks."""
        marks = self._marks.current(len(keys))
        if marks is None:
            return [self._look_up(key) for key in keys]
        last = len(marks) - 1
        return [self._look_up(key) if marks[hash(key) & last] else () for key in keys]

    def _look_up(self, key: str) -> tuple[int, ...]:
        known = self._vocabulary
        numbers = kernel.forms(known, key) if kernel is not None else None
        if numbers is None:
            forms = [form for form in possible_forms(key) if form in known]
            numbers = [known[form] for form in dict.fromkeys(forms) if family(form) == key]
        return tuple(numbers)

    def possible(self, terms: list[str]) -> list[tuple[str, str]]:
        """Each two neighbours as one word, with its family, without those that certainly have no term in theirs."""
        marks = self._marks.current(len(terms) - 1)
        found = kernel.possible(terms, marks) if kernel is not None else None
        if found is not None:
            return found
        words = [first + second for first, second in pairwise(terms)]
        keyed = [(word, word if word[-1] not in LAST_OF_ENDINGS else family(word)) for word in words]
        return keyed if marks is None else [pair for pair in keyed if marks[hash(pair[1]) & (len(marks) - 1)]]

    def halves(self, word: str, places: tuple[int, ...]) -> Iterable[tuple[int, str, str]]:
        """Places where a word may come apart, with the families of both parts, but where one certainly has no term."""
        found = kernel.halves(word, places, self._marks.current(len(places))) if kernel is not None else None
        if found is not None:
            return found
        keyed = ((place, family(word[:place]), family(word[place:])) for place in places)
        return (each for each in keyed if not self.lack(each[1]) and not self.lack(each[2]))

    def lack(self, key: str) -> bool:
        """Whether it is certain, at one look, that no term is of this family."""
        marks = self._marks.current()
        return marks is not None and not marks[hash(key) & (len(marks) - 1)]


def _leave_marks(terms: list[str], marks: bytearray) -> None:
    for term in terms:
        # Most terms end in another letter than any ending does: each is the key of its family.
        key = term if term[-1] not in LAST_OF_ENDINGS else family(term)
        marks[hash(key) & (len(marks) - 1)] = 1
