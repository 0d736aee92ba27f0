"""Words that mean nearly the same find, at a lower weight, with and without the table of vectors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.retrieval.documents import document

from toolcrib.limits import NEIGHBOURS_PER_WORD
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.neighbours import NEIGHBOURS_FILE, read_neighbours, shipped_neighbours
from toolcrib.retrieval.query import QueryWeights
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.text import family

TOOLS = (
    document("remove_record", "Takes it away"),
    document("send_parcel", "Ships it"),
    document("paint_wall", "Colours it"),
)


def test_the_neighbours_that_ship_belong_to_the_table_that_ships():
    assert shipped_neighbours().version == StaticModel.load().mark, "make it anew: training/neighbours.py"
    assert NEIGHBOURS_FILE.stat().st_size < 1_000_000


def test_a_word_has_few_neighbours_the_nearest_first_and_none_of_its_own_family():
    near = shipped_neighbours().of("delete")
    assert 1 <= len(near) <= NEIGHBOURS_PER_WORD
    assert [nearness for _, nearness in near] == sorted((nearness for _, nearness in near), reverse=True)
    assert family("delete") not in dict(near)
    assert family("remove") in dict(near)
    assert shipped_neighbours().of("zzyzxq") == []


@pytest.mark.requirement("S23")
def test_words_alone_find_a_tool_that_says_it_in_another_word():
    index = LexicalRetriever().index(TOOLS)
    assert index.search("delete an entry", limit=1).hits[0].key == "remove_record"
    without = LexicalRetriever(query=replace(QueryWeights(), nearby=0.0)).index(TOOLS)
    assert not without.search("delete", limit=1).hits


def test_the_word_that_was_written_counts_more_than_its_neighbours():
    tools = [*TOOLS, document("delete_record", "Takes it away")]
    found = LexicalRetriever().index(tools).search("delete", limit=2).hits
    assert [hit.key for hit in found] == ["delete_record", "remove_record"]


def test_a_neighbour_that_is_in_the_query_itself_is_not_counted_twice():
    index = LexicalRetriever().index(TOOLS)
    alone = index.search("remove", limit=1, explain=True).hits[0]
    both = index.search("remove delete", limit=1, explain=True).hits[0]
    assert both.score == pytest.approx(alone.score)
    assert "neighbours" not in both.evidence


@pytest.mark.requirement("D1")
def test_a_tool_that_says_the_same_in_every_word_gains_little_by_it():
    plain = document("delete_entry", "Delete it")
    wordy = document("delete_item", "Delete remove erase eliminate destroy uninstall it")
    hits = LexicalRetriever().index([plain, wordy, *TOOLS]).search("delete", limit=2, explain=True).hits
    assert {hit.key for hit in hits} == {"delete_entry", "delete_item"}
    assert all(hit.evidence.get("neighbours", 0.0) < 0.25 * hit.score for hit in hits)


@pytest.mark.requirement("X26")
def test_an_explanation_shows_what_neighbours_gave():
    hit = LexicalRetriever().index(TOOLS).search("delete", limit=1, explain=True).hits[0]
    assert hit.evidence["neighbours"] == pytest.approx(hit.score, abs=0.02)


def test_grammar_has_no_neighbours():
    assert shipped_neighbours().of("the") == []
    assert shipped_neighbours().of("without") == []


@pytest.mark.parametrize("content", [None, b"", b"no archive"])
def test_without_a_readable_file_words_are_answered_by_themselves_and_the_log_says_so(
    tmp_path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "neighbours.npz"
    if content is not None:
        path.write_bytes(content)
    assert read_neighbours(path).of("delete") == []
    assert "neighbours.npz cannot be used" in caplog.text


def test_a_file_that_is_packed_in_no_known_way_is_not_used(tmp_path: Path):
    path = tmp_path / "neighbours.npz"
    packed = bytearray(NEIGHBOURS_FILE.read_bytes())
    packed[packed.index(b"PK\x01\x02") + 10] = 99
    path.write_bytes(packed)
    found = read_neighbours(path)
    assert found.of("delete") == []
    assert "words find only themselves" in (found.lacking or "")
    assert shipped_neighbours().lacking is None


def test_a_file_whose_parts_do_not_fit_together_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    texts = {name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in
             {"keys": "remov", "words": "delete\nerase", "version": "1"}.items()}  # fmt: skip
    rows = np.array([[7], [0]], dtype=np.uint16)
    np.savez(tmp_path / "n.npz", rows=rows, codes=np.ones((2, 1), dtype=np.uint8), **texts)
    assert read_neighbours(tmp_path / "n.npz").places == {}
    assert "do not belong together" in caplog.text
