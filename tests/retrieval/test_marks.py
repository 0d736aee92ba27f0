"""Marks are made when they are worth it, for every word that came since the last time."""

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
