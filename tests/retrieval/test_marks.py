"""Marks are made when they are worth it, for every word that came since the last time."""

from collections.abc import Callable

from toolcrib.retrieval.marks import Marks


def first_letters(words: list[str], places: bytearray) -> None:
    for word in words:
        places[ord(word[0])] += 1


def test_words_are_marked_once_as_many_questions_were_asked_as_marking_costs() -> None:
    known = dict.fromkeys(["ant", "bee", "bear", "cat", "cow", "crow"])
    marks = Marks(known, first_letters, words_a_question=2)
    assert [marks.current(), marks.current()] == [None, None]
    places = marks.current()
    assert places is not None and [places[ord(letter)] for letter in "abcd"] == [1, 2, 3, 0]


def test_words_that_come_later_are_marked_and_no_other_word_twice() -> None:
    known = dict.fromkeys(["ant", "bee"])
    marks = Marks(known, first_letters, words_a_question=9)
    assert marks.current() is marks.current()
    known["boar"] = None
    places = marks.current()
    assert places is not None and [places[ord(letter)] for letter in "abcd"] == [1, 2, 0, 0]


def test_words_that_outgrow_the_places_are_all_marked_anew_in_more_of_them() -> None:
    known = dict.fromkeys(["ant", "bee"])
    marks = Marks(known, first_letters, words_a_question=1_000)
    few = marks.current()
    known.update(dict.fromkeys(f"cow{number}" for number in range(200)))
    many = marks.current()
    assert few is not None and many is not None and len(few) < len(many)
    assert [many[ord(letter)] for letter in "abcd"] == [1, 1, 200, 0]
    assert marks.current() is many


class Busy(dict[str, int]):
    """Words to which somebody else adds, and whom the marks answer, right after they were counted."""

    counted: int = 0
    meanwhile: Callable[[], None] | None = None

    def __len__(self) -> int:
        size = super().__len__()
        self.counted += 1
        if self.meanwhile is not None and self.counted == 2:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return size


def test_whoever_is_overtaken_while_words_are_marked_goes_without_marks() -> None:
    known = Busy(dict.fromkeys(("apple", "pear"), 0))
    marks = Marks(known, first_letters, words_a_question=9)
    assert marks.current() is not None
    known["plum"] = 0

    def meanwhile() -> None:
        known.update(dict.fromkeys(("fig", "quince", "cherry"), 0))
        assert marks.current() is not None

    known.counted, known.meanwhile = 0, meanwhile
    assert marks.current() is None
    found = marks.current()
    assert found is not None
    assert all(found[ord(word[0])] for word in known)
