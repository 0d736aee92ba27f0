"""Texts become term numbers many at a time, and the same ones as one at a time."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.limits import FIELD_MAX_RUNS, TERM_MAX_CHARS
from toolcrib.retrieval import numbering as numbering_module
from toolcrib.retrieval.forward import NAMES, Stretch
from toolcrib.retrieval.numbering import Numbering
from toolcrib.retrieval.postings import build_segment, read_rows
from toolcrib.retrieval.text import terms

ODD = st.text(alphabet="aBc1é日-—’\x1e_ \t\ud800Ab", max_size=40)


def words_of(numbering: Numbering, texts: list[tuple[str, ...]]) -> list[list[str]]:
    """The terms of each text, sorted."""
    numbers, places = numbering.numbers(texts)
    words = list(numbering.vocabulary)
    found: list[list[str]] = [[] for text in texts for _ in text]
    for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
        found[place].append(words[number])
    return [sorted(each) for each in found]


@given(st.lists(st.tuples(ODD, ODD), max_size=6))
def test_many_texts_at_once_have_the_terms_that_each_has_alone(texts: list[tuple[str, ...]]) -> None:
    assert words_of(Numbering(), texts) == [sorted(terms(text)) for pair in texts for text in pair]


def test_only_the_first_runs_of_a_text_count_and_its_neighbours_keep_theirs() -> None:
    stuffed = " ".join(f"w{'x' * (n % 7)}" for n in range(FIELD_MAX_RUNS)) + " beyond theEnd"
    before, long, after = words_of(Numbering(), [("first readFile", stuffed, "last")])
    assert before == sorted(["first", "read", "file", "readfile"])
    assert len(long) == FIELD_MAX_RUNS
    assert "beyond" not in long
    assert "end" not in long
    assert after == ["last"]


def test_a_run_that_is_too_long_for_a_word_is_cut() -> None:
    assert words_of(Numbering(), [("x" * 100,)]) == [["x" * TERM_MAX_CHARS]]


def test_postings_give_back_what_went_into_them_for_any_rows_in_any_order() -> None:
    rng = random.Random(3)
    batch = [sorted(rng.sample(range(50), rng.randrange(9))) for _ in range(40)]
    flat = np.array([term for terms in batch for term in terms], dtype=np.int32)
    names = np.arange(len(batch) * NAMES, dtype=np.uint32).reshape(-1, NAMES)
    sizes = np.array([len(terms) for terms in batch])
    held = Stretch(sizes=sizes, terms=flat, codes=(flat * 5).astype(np.uint8), names=names)
    for order in (list(range(len(batch))), rng.sample(range(len(batch)), len(batch))):
        segment = build_segment(held, np.array(order))
        for rows in ([4, 2, 9], list(range(3, 20)), [39]):
            taken = read_rows(segment, np.array(rows))
            given = [order.index(row) for row in rows]
            assert taken.sizes.tolist() == [len(batch[place]) for place in given]
            assert taken.terms.tolist() == [term for place in given for term in batch[place]]
            assert taken.codes.tolist() == [term * 5 for place in given for term in batch[place]]
            assert taken.names.tolist() == [names[place].tolist() for place in given]


def test_written_forms_are_forgotten_when_they_have_become_many_and_terms_keep_their_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbering_module, "RUN_MEMO_MAX_RUNS", 50)
    held = Numbering()
    first = words_of(held, [("alpha readFile",)])
    words_of(held, [(" ".join(f"word{number} {'x' * number}" for number in range(1, 60)),)])
    assert held.held > 50
    held.rest()
    assert held.held < 5
    known = list(held.vocabulary)
    assert words_of(held, [("alpha readFile",)]) == first
    assert list(held.vocabulary) == known
