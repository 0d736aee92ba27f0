"""Words one slip away: the same ones whether or not anything was sifted before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.spelling import Spelling

WORDS = st.text("abc", min_size=1, max_size=9)


def one_slip(word: str) -> set[str]:
    """Every string that one slip after the first letter makes of a word, the slow way."""
    found: set[str] = set()
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        found.update(head + letter + tail for letter in "abc")
        if tail:
            found.add(head + tail[1:])
            found.update(head + letter + tail[1:] for letter in "abc")
        if len(tail) > 1:
            found.add(head + tail[1] + tail[0] + tail[2:])
    return found - {word}


@given(st.lists(WORDS, max_size=60), st.lists(WORDS, max_size=60), WORDS)
def test_every_known_word_one_slip_away_is_found_also_those_that_came_later(
    first: list[str], later: list[str], asked: str
) -> None:
    vocabulary = dict.fromkeys(first)
    spelling = Spelling(vocabulary)
    assert spelling.near(asked) == one_slip(asked) & vocabulary.keys()
    vocabulary.update(dict.fromkeys(later))
    assert spelling.near(asked) == one_slip(asked) & vocabulary.keys()


def test_a_vocabulary_too_large_for_marks_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = dict.fromkeys(["repository", "calendar", "repositories"])
    spelling = Spelling(vocabulary)
    assert spelling.near("repositry") == {"repository"}
    monkeypatch.setattr("toolcrib.retrieval.spelling.SPELLING_MARKED_WORDS", 2)
    assert spelling.near("repositry") == {"repository"}
    monkeypatch.setattr("toolcrib.retrieval.spelling.SPELLING_MARKED_WORDS", 9)
    assert spelling.near("calender") == {"calendar"}
