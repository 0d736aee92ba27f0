"""Queries and tools side by side: what is asked and what is merely near, any string at all, and files that do not fit."""

import json
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.documents import document

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import COMPARED_ROWS, READER_TOOL_PIECES
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.comparing import Comparer
from toolcrib.retrieval.fusion import FusionWeights, compared_part
from toolcrib.retrieval.hybrid import HybridIndex, HybridRetriever
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Floats


@cache
def shipped() -> StaticModel:
    return StaticModel.load()


@cache
def comparer() -> Comparer:
    found = shipped().comparer
    assert found is not None
    return found


def record(text: str) -> bytes:
    reader = shipped().reader
    assert reader is not None
    return comparer().record(reader.read(text, at_most=READER_TOOL_PIECES).states)


def asked(query: str) -> Floats:
    pieces = shipped().pieces(query)
    assert pieces is not None
    return pieces


def judged(query: str, *tools: str) -> list[float]:
    return comparer().judged(asked(query), b"".join(map(record, tools))).tolist()


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("query", "right", "near"),
    [
        ("delete a playlist", "delete playlist: Deletes a playlist.", "create playlist: Creates a playlist."),
        (
            "who am I logged in as",
            "get me: Returns the authenticated user.",
            "list users: Lists all users of the team.",
        ),
        ("when does the bus leave", "get departures: Next departures from a stop.", "create map: Draws a map."),
        ("undo the last commit", "revert commit: Reverts a commit.", "list commits: Lists the commits of a branch."),
    ],
)
def test_the_tool_that_does_it_is_told_from_the_one_that_is_about_it(query: str, right: str, near: str) -> None:
    first, second = judged(query, right, near)
    assert first > second + 0.5


def test_a_judgement_depends_on_the_query_and_the_tool_alone() -> None:
    tools = ["send message: Sends a message.", "delete file: Deletes a file.", "x: "]
    together = judged("tell the team I am late", *tools)
    assert together == [judged("tell the team I am late", tool)[0] for tool in tools]
    assert judged("tell the team I am late", *tools[::-1]) == together[::-1]


@pytest.mark.parametrize("count", range(2, 25))
def test_twins_are_judged_alike_wherever_they_stand(count: int) -> None:
    assert len(set(judged("remove a playlist now", *["delete playlist: Deletes a playlist."] * count))) == 1


@pytest.mark.requirement("X11")
def test_twins_are_ordered_by_name_in_whatever_order_they_came() -> None:
    twins = [document(f"{letter}_tool", "Deletes a playlist.", leaf="delete_playlist") for letter in "abcde"]
    for tools in (twins, twins[::-1], [*TOOLS, *twins]):
        hits = index(tools).search("remove a playlist now", limit=9).hits
        assert [hit.key for hit in hits if hit.key.endswith("_tool")] == [twin.key for twin in twins]


@given(query=st.text(min_size=1, max_size=120), tool=st.text(max_size=120))
def test_any_two_strings_are_judged_and_the_judgement_is_a_number(query: str, tool: str) -> None:
    reader = shipped().reader
    assert reader is not None
    pieces = comparer().asked.pieces(reader.read(query).states)
    assert np.isfinite(comparer().judged(pieces, record(tool))).all()


def test_of_a_tool_that_was_not_read_nothing_is_known() -> None:
    known = [record("send message: Sends a message."), record("delete file: Deletes a file.")]
    unread = bytes(comparer().record_bytes)
    found = comparer().judged(asked("delete a file"), b"".join([known[0], unread, known[1]]))
    assert np.isnan(found).tolist() == [False, True, False]


def test_a_record_has_one_length_however_long_the_tool_is() -> None:
    assert {len(record(text)) for text in ("", "a", "word " * 500)} == {comparer().record_bytes}


TOOLS = [
    document("create_playlist", "Creates a playlist."),
    document("delete_playlist", "Deletes a playlist for good."),
    document("list_songs", "Lists the songs of an album."),
    document("send_message", "Sends a message to a channel."),
]


def index(tools: list[PlainDocument], weights: FusionWeights | None = None) -> HybridIndex:
    retriever = HybridRetriever(load=shipped, weights=weights)
    made = retriever.index(tools)
    retriever.settle()
    assert isinstance(made, HybridIndex)
    return made


@pytest.mark.requirement("X26")
def test_explanations_show_what_the_pieces_gave() -> None:
    hits = index(TOOLS).search("get rid of a list of songs", limit=2, explain=True).hits
    assert hits[0].key.endswith("delete_playlist")
    assert hits[0].evidence["pieces"] > 0
    assert sum(hits[0].evidence.values()) == pytest.approx(hits[0].score, abs=1e-3)
    without = index(TOOLS, FusionWeights(compared=0.0)).search("get rid of a list of songs", limit=2, explain=True)
    assert "pieces" not in without.hits[0].evidence


def test_the_best_judgement_is_a_signal_unless_the_query_meets_tools_by_words_alone() -> None:
    made = index(TOOLS)
    near, far = (made.signals(query).compared for query in ("remove a playlist", "repair my bicycle"))
    assert near is not None
    assert far is not None
    assert near > far
    assert made.signals("διαγραφή λίστας τώρα playlist").compared is None


def test_a_changed_tool_is_compared_like_the_others() -> None:
    retriever = HybridRetriever(load=shipped)
    retriever.index(TOOLS)
    changed = [*TOOLS[1:], document("create_playlist", "Makes a new playlist.")]
    made = retriever.index(changed)
    retriever.settle()
    assert isinstance(made, HybridIndex)
    query = "start a list of songs for the party"
    assert made.signals(query).compared == pytest.approx(index(changed).signals(query).compared, abs=1e-4)


FOREIGN = [
    document("borrar", "Borra una lista de canciones.", leaf="borrar_lista"),
    document("crear", "Crea una lista de canciones.", leaf="crear_lista"),
]


def test_a_tool_in_another_language_gets_the_mean_of_the_others_however_the_index_came_to_be() -> None:
    retriever = HybridRetriever(load=shipped)
    retriever.index(TOOLS)
    amended = retriever.index([*TOOLS, FOREIGN[0]])
    assert isinstance(amended, HybridIndex)
    assert amended._added is not None
    whole = index([*TOOLS, FOREIGN[0]])
    query = "remove a list of songs"
    found, fresh = (
        {hit.key: hit.evidence.get("pieces", 0.0) for hit in made.search(query, limit=9, explain=True).hits}
        for made in (amended, whole)
    )
    assert found == pytest.approx(fresh, abs=1e-3)
    others = [part for key, part in found.items() if key != "borrar"]
    assert min(others) <= found["borrar"] < max(others)


def test_among_tools_in_another_language_alone_nothing_is_compared() -> None:
    made = index(FOREIGN)
    assert made.signals("remove a list of songs").compared is None
    assert made.search("remove a list of songs", limit=2).mode == "hybrid"


def test_tools_that_the_fill_has_let_go_are_still_compared() -> None:
    made = index(TOOLS)
    fill = shipped().readings
    assert fill is not None
    before = made.signals("remove a playlist").compared
    kept = dict(fill._vectors)
    fill._vectors.clear()
    try:
        assert made.signals("remove a playlist").compared == before
    finally:
        fill._vectors.update(kept)


def test_hundreds_of_tools_that_are_alike_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    made = index([document(f"{number}", "Does the same.", leaf="same") for number in range(3 * COMPARED_ROWS)])
    counts: list[int] = []
    monkeypatch.setattr(Comparer, "judged", lambda self, asked, records: counts.append(len(records)) or np.zeros(1))
    assert len(made.search("what these all do", limit=5).hits) == 5
    assert not counts


def test_the_more_needs_a_query_has_the_less_the_judgement_of_the_whole_counts() -> None:
    found = np.array([-9.0, 0.0, 9.0], dtype=np.float32)
    one, four = (compared_part(found, FusionWeights(), needs) for needs in (1, 4))
    assert one.tolist() == sorted(one.tolist())
    assert one[0] == 0.0
    assert four == pytest.approx(one / 2)
    assert compared_part(found, FusionWeights(), 0).tolist() == one.tolist()


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays.__delitem__(name)


def _of_another_reader(arrays: dict[str, Any]) -> None:
    meta = json.loads(bytes(arrays["meta"])) | {"reader": "another"}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)


def _cut(name: str, size: int) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays.__setitem__(name, arrays[name][:size])


def _of_no_shape(arrays: dict[str, Any]) -> None:
    arrays["asked.compares.weight"] = np.float32(1.0)


@pytest.mark.parametrize(
    "change",
    [
        _without("meta"), _without("last.weight"), _of_another_reader, _of_no_shape, _cut("asked.compares.weight", 10),
        _cut("first.weight", 10), _cut("last.weight", 3), _cut("asked.takes.codes", 384), _cut("offered.takes.codes", 384),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_leaves_search_without_comparing_and_the_log_says_so(
    change: Callable[[dict[str, Any]], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copytree(MODEL_DIRECTORY, tmp_path / "model")
    with np.load(MODEL_DIRECTORY / "comparer.npz") as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    change(arrays)
    np.savez(tmp_path / "model" / "comparer.npz", **arrays)
    reader = shipped().reader
    assert reader is not None
    with pytest.raises(ModelUnavailable):
        Comparer.load(reader.mark, tmp_path / "model")
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        model = StaticModel.load(tmp_path / "model")
    assert "not compared" in caplog.text
    retriever = HybridRetriever(load=lambda: model)
    made = retriever.index(TOOLS)
    assert made.search("remove a playlist", limit=1).hits[0].key.endswith("delete_playlist")
    assert "not compared" in (retriever.lacking or "")
