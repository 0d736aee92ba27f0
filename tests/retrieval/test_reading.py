"""Reading postings: the same sums by every way, and a bounded number of them kept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.postings import Segment
from toolcrib.retrieval.reading import SegmentReader

IMPACTS = np.linspace(0.0, 1.5, 256, dtype=np.float32)
ROWS = 40


def segment(terms: list[list[int]]) -> Segment:
    """Term i is held by the rows of the i-th list, with codes that depend on both."""
    lists = [sorted(set(rows)) for rows in terms]
    starts = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    documents = np.array([row for rows in lists for row in rows], dtype=np.int32)
    codes = np.array([(7 * row + 31 * term) % 255 + 1 for term, rows in enumerate(lists) for row in rows], np.uint8)
    names = np.arange(1, 3 * ROWS + 1, dtype=np.uint32).reshape(3, ROWS) % np.uint32(50)
    return Segment(rows=ROWS, starts=starts, documents=documents, codes=codes, names=names)


def plain_sum(built: Segment, weighted: list[tuple[int, float]]) -> np.ndarray:
    total = np.zeros(ROWS, dtype=np.float32)
    for number, weight in weighted:
        span = built.span(number)
        for row, code in zip(built.documents[span], built.codes[span], strict=True):
            total[row] += IMPACTS[code] * np.float32(weight)
    return total


TERMS = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=ROWS), min_size=1, max_size=5)
WEIGHTED = st.lists(st.tuples(st.integers(0, 6), st.floats(0.001, 9.0)), max_size=8)


@given(TERMS, WEIGHTED)
def test_common_and_rare_terms_add_up_to_the_same_bits_however_often_they_are_asked(
    terms: list[list[int]], weighted: list[tuple[int, float]]
) -> None:
    built = segment(terms)
    reader = SegmentReader(built, IMPACTS)
    for _ in range(2):
        total = np.zeros(ROWS, dtype=np.float32)
        reader.add(total, weighted)
        assert total.tobytes() == plain_sum(built, weighted).tobytes()


def test_every_row_of_a_name_is_found_with_its_kind_and_no_other() -> None:
    built = segment([[0]])
    reader = SegmentReader(built, IMPACTS)
    for wanted in range(60):
        expected = [(int(kind), int(row)) for kind, row in zip(*np.nonzero(built.names == wanted), strict=True)]
        assert sorted(reader.named(wanted)) == expected


def test_what_is_kept_has_a_bound_and_dropping_it_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.retrieval.reading.WEIGHTED_MAX_BYTES", 2_000)
    built = segment([list(range(ROWS)), [1, 2], [3]])
    reader = SegmentReader(built, IMPACTS)
    for step in range(50):
        weighted = [(step % 3, 1.0 + step)]
        total = np.zeros(ROWS, dtype=np.float32)
        reader.add(total, weighted)
        assert total.tobytes() == plain_sum(built, weighted).tobytes()
        assert len(reader._kept) <= 5


def test_a_hash_whose_bytes_stand_across_two_names_is_nobodys() -> None:
    built = segment([[0]])
    names = np.zeros((3, ROWS), dtype=np.uint32)
    names[0, :2] = np.frombuffer(bytes(range(1, 9)), dtype=np.uint32)
    reader = SegmentReader(replace(built, names=names), IMPACTS)
    across, own = (int(np.frombuffer(bytes(range(start, start + 4)), dtype=np.uint32)[0]) for start in (3, 5))
    assert reader.named(across) == []
    assert reader.named(own) == [(0, 1)]
