"""A request of several needs is looked up need by need."""

import numpy as np
import pytest

from toolcrib.limits import CLAUSE_MAX_ROWS, QUERY_MAX_CLAUSES
from toolcrib.retrieval.clauses import clause_part, clauses, looked_at
from toolcrib.retrieval.fusion import FusionWeights

NONE_GONE = np.empty(0, dtype=np.intp)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_a_query_of_several_needs_has_clauses_and_a_simple_one_has_none():
    assert clauses("Send a message to Bob, then create an invoice for him") == (
        "Send a message to Bob,",
        "then create an invoice for him",
    )
    assert clauses("send a message") == ()


def test_a_long_text_has_no_more_clauses_than_the_bound():
    assert len(clauses("Send a short message. " * 40)) == QUERY_MAX_CLAUSES


def test_who_is_best_for_one_clause_loses_nothing_and_the_others_by_how_far_they_are_behind():
    near = [floats(0.9, 0.5, 0.1), floats(0.1, 0.5, 0.9)]
    nothing = [floats(0.0, 0.0, 0.0)] * 2
    part = clause_part(nothing, near, floats(0.9, 0.9, 0.9), FusionWeights(clauses=0.0, standing=0.5))
    assert part.tolist() == pytest.approx([0.0, -0.2, 0.0])


def test_words_of_a_clause_count_for_the_standing_in_it():
    near = [floats(0.5, 0.5), floats(0.5, 0.5)]
    words = [floats(10.0, 0.0), floats(10.0, 5.0)]
    part = clause_part(words, near, floats(0.5, 0.5), FusionWeights(words=0.04, standing=1.0))
    assert part.tolist() == pytest.approx([0.0, -0.2])


def test_a_document_gains_a_share_of_what_its_best_clause_finds_nearer():
    near = [floats(0.8, 0.1), floats(0.2, 0.1)]
    nothing = [floats(0.0, 0.0)] * 2
    part = clause_part(nothing, near, floats(0.4, 0.4), FusionWeights(clauses=0.5, standing=0.0))
    assert part.tolist() == pytest.approx([0.2, 0.0])


def test_only_the_best_living_rows_of_a_large_index_are_looked_at():
    fused = np.arange(CLAUSE_MAX_ROWS + 50, dtype=np.float32)
    gone = np.array([len(fused) - 1], dtype=np.intp)
    rows = looked_at(fused, gone)
    assert rows.tolist() == list(range(50, len(fused) - 1))
    assert looked_at(fused[:9], NONE_GONE).tolist() == list(range(9))
