"""A query and a tool read together: where a search is in doubt, and only there."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.retrieval.documents import document

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import JOINT_CLAUSES
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.confidence import Calibration
from toolcrib.retrieval.fusion import FusionWeights, together_part
from toolcrib.retrieval.hybrid import HybridIndex, HybridRetriever
from toolcrib.retrieval.joint import JointReader
from toolcrib.retrieval.semantic import StaticModel, joint_text
from toolcrib.retrieval.vectors import MODEL_DIRECTORY

MODEL = StaticModel.load()
assert MODEL.reader is not None
JOINT = JointReader.load(MODEL.reader)
TOOLS = [
    document("create_playlist", "Create a new playlist."),
    document("delete_playlist", "Delete a playlist for good."),
    document("book_review", "Get reviews of a book."),
    document("book_flight", "Book a seat on a flight."),
    document("list_invoices", "List the invoices of a customer."),
]
ALWAYS = Calibration(
    hopeless=-math.inf, clear=math.inf, floor=-math.inf, floor_apart=-math.inf,
    floor_by_words=-math.inf, floor_uncompared=-math.inf,
)  # fmt: skip
"""Reads together whatever can be, and never abstains."""
NEVER = replace(ALWAYS, clear=-math.inf)


def indexed(
    calibration: Calibration, *, load: Any = lambda: MODEL, weights: FusionWeights | None = None
) -> HybridIndex:
    retriever = HybridRetriever(load=load, calibration=calibration, weights=weights)
    index = retriever.index(TOOLS)
    retriever.settle()
    assert isinstance(index, HybridIndex)
    return index


def best(query: str, tools: list[PlainDocument]) -> str:
    return tools[int(JOINT.judged(query, list(map(joint_text, tools))).argmax())].key


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("get rid of my road trip songs list", "delete_playlist"),
        ("start a fresh songs list for the road trip", "create_playlist"),
        ("reserve two seats to Lisbon", "book_flight"),
        ("what do readers think of Moby Dick", "book_review"),
    ],
)
def test_the_tool_that_does_it_is_judged_the_most_likely(query: str, right: str):
    assert best(query, TOOLS) == right


def test_a_judgement_depends_on_the_query_and_the_tool_alone():
    texts = list(map(joint_text, TOOLS))
    together = JOINT.judged("remove a songs list", texts)
    assert [float(JOINT.judged("remove a songs list", [text])[0]) for text in texts] == together.tolist()
    assert JOINT.judged("remove a songs list", texts[::-1]).tolist() == together[::-1].tolist()


@pytest.mark.parametrize("text", ["", " ", "?", "a " * 5_000, "x" * 5_000, "\u0000", "播放列表", "🎵"])
def test_any_text_is_judged_and_finite(text: str):
    assert np.isfinite(JOINT.judged(text, [text, "delete playlist: Delete a playlist."])).all()


def test_nothing_to_judge_is_judged_as_nothing():
    assert JOINT.judged("remove a songs list", []).tolist() == []


@pytest.mark.requirement("X2")
def test_only_what_is_not_settled_is_read_together():
    query = "water the plants on the balcony"
    assert indexed(NEVER).signals(query).together is None
    seen = indexed(ALWAYS).signals(query)
    assert seen.together is not None
    assert Calibration(hopeless=-math.inf, clear=seen_value(query) + 0.1).unsettled(indexed(NEVER).signals(query))
    assert not Calibration(hopeless=-math.inf, clear=seen_value(query)).unsettled(indexed(NEVER).signals(query))
    assert not Calibration(hopeless=seen_value(query) + 0.1, clear=math.inf).unsettled(indexed(NEVER).signals(query))


def seen_value(query: str) -> float:
    return NEVER.fits.value(indexed(NEVER).signals(query))


@pytest.mark.requirement("X2")
@pytest.mark.parametrize("query", ["delete_playlist", "eine Playlist löschen"])
def test_a_name_and_a_query_that_meets_tools_by_its_words_alone_are_not_read_together(query: str):
    assert indexed(ALWAYS).signals(query).together is None


@pytest.mark.requirement("X2")
def test_the_better_a_tool_does_it_when_read_with_the_query_the_less_readily_the_query_is_emptied():
    calibration = Calibration()
    odds = (-50.0, -5.0, 0.0, 5.0, 50.0)
    seen = indexed(ALWAYS).signals("water the plants on the balcony")
    values = [calibration.fits_together.value(replace(seen, together=odd)) for odd in odds]
    assert values[0] == values[1] < values[2] < values[3] == values[4]


@pytest.mark.requirement("X26")
def test_an_explanation_says_what_reading_together_gave():
    hits = indexed(ALWAYS).search("get rid of my road trip songs list", limit=3, explain=True).hits
    assert max(hits, key=lambda hit: hit.evidence.get("together", 0.0)).key == "delete_playlist"
    without = indexed(NEVER).search("get rid of my road trip songs list", limit=5, explain=True).hits
    before = {hit.key: hit for hit in without}
    for hit in hits:
        assert hit.evidence["meaning"] == pytest.approx(before[hit.key].evidence["meaning"], abs=1e-3)
        assert hit.score - before[hit.key].score == pytest.approx(hit.evidence.get("together", 0.0), abs=1e-3)
    assert all(
        "together" not in hit.evidence
        for hit in indexed(NEVER).search("get rid of my list", limit=3, explain=True).hits
    )


@pytest.mark.requirement("X2")
def test_a_tool_in_another_language_is_not_judged_and_gets_the_mean():
    foreign = document("eliminar_lista", "Elimina una lista de reproducción de la biblioteca del usuario.")
    alone = MODEL.together("get rid of a songs list", [foreign])
    assert alone is not None
    assert np.isnan(alone).tolist() == [True]
    judged = MODEL.together("get rid of a songs list", [TOOLS[0], foreign, TOOLS[1]])
    assert judged is not None
    assert np.isnan(judged).tolist() == [False, True, False]
    part = together_part(judged, FusionWeights(), 1)
    assert part[1] == pytest.approx((part[0] + part[2]) / 2)


@pytest.mark.requirement("X2")
def test_what_other_tools_were_judged_says_nothing_where_the_best_ones_are_in_another_language():
    foreign = [
        document(f"ticket_{city}", "查询指定日期的火车票余票信息，包括车次、出发时间和票价。")
        for city in ("beijing", "shanghai", "xian")
    ]
    retriever = HybridRetriever(load=lambda: MODEL, calibration=ALWAYS)
    index = retriever.index([*TOOLS, *foreign])
    retriever.settle()
    assert isinstance(index, HybridIndex)
    seen = index.signals("any ticket left for Beijing on Wednesday")
    assert (seen.compared, seen.together) == (None, None)
    assert index.signals("any songs list left on Wednesday").together is not None


@pytest.mark.requirement("X2", "X4")
@pytest.mark.parametrize(
    ("whole", "clause", "doubt", "seen"),
    [(-3.0, 2.0, math.inf, 2.0), (-3.0, -4.0, math.inf, -3.0), (-3.0, 2.0, -math.inf, -3.0)],
)
def test_a_request_for_several_things_that_is_in_doubt_is_as_good_as_its_best_clause(
    whole: float, clause: float, doubt: float, seen: float, monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []

    def together(_: StaticModel, text: str, tools: Sequence[PlainDocument]) -> NDArray[np.float32]:
        read.extend(f"{text} | {tool.key}" for tool in tools if text != query)
        return np.full(len(tools), whole if text == query else clause, dtype=np.float32)

    query = "Book a seat to Lisbon for Grandma, get rid of my road trip songs list"
    monkeypatch.setattr(StaticModel, "together", together)
    assert indexed(replace(ALWAYS, doubt=doubt)).signals(query).together == seen
    clauses = [
        "Book a seat to Lisbon for Grandma, | book_flight",
        "get rid of my road trip songs list | delete_playlist",
    ]
    assert read == (clauses if doubt > 0 else [])


@pytest.mark.requirement("X2")
def test_of_many_clauses_only_the_first_few_are_read(monkeypatch: pytest.MonkeyPatch):
    read: set[str] = set()

    def together(_: StaticModel, text: str, tools: Sequence[PlainDocument]) -> NDArray[np.float32]:
        read.add(text)
        return np.full(len(tools), -3.0, dtype=np.float32)

    monkeypatch.setattr(StaticModel, "together", together)
    clauses = [f"Delete the playlist of day {number}." for number in range(1, 8)]
    indexed(replace(ALWAYS, doubt=math.inf)).signals(" ".join(clauses))
    assert read == {" ".join(clauses), *clauses[:JOINT_CLAUSES]}


def test_of_several_needs_a_judgement_counts_less():
    judged = np.array([2.0, -2.0], dtype=np.float32)
    one, four = (together_part(judged, FusionWeights(), needs) for needs in (1, 4))
    assert four.tolist() == pytest.approx((one / 2).tolist())


@pytest.mark.requirement("X1")
def test_tools_that_came_later_are_read_together_as_if_they_had_been_there_from_the_start():
    retriever = HybridRetriever(load=lambda: MODEL, calibration=ALWAYS)
    retriever.index(TOOLS[:3])
    later = retriever.index(TOOLS)
    query = "get rid of my road trip songs list"
    whole = indexed(ALWAYS).search(query, limit=5)
    assert [(hit.key, hit.score) for hit in later.search(query, limit=5).hits] == [
        (hit.key, hit.score) for hit in whole.hits
    ]


@pytest.mark.requirement("X2")
def test_twins_beyond_number_are_not_read_together_one_by_one():
    twins = [document(f"twin_{number}", "Delete a playlist for good.") for number in range(40)]
    retriever = HybridRetriever(load=lambda: MODEL, calibration=ALWAYS)
    found = retriever.index(twins).search("get rid of my songs list", limit=5)
    assert len(found.hits) == 5


@pytest.mark.requirement("X2")
def test_among_very_many_tools_nothing_is_read_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.retrieval.hybrid.JOINT_MOST_DOCUMENTS", len(TOOLS))
    assert indexed(ALWAYS).signals("get rid of my list").together is not None
    monkeypatch.setattr("toolcrib.retrieval.hybrid.JOINT_MOST_DOCUMENTS", len(TOOLS) - 1)
    assert indexed(ALWAYS).signals("get rid of my list").together is None


@pytest.mark.requirement("X1")
def test_what_is_not_compared_is_not_read_together_either():
    assert indexed(ALWAYS, weights=FusionWeights(compared=0.0)).signals("get rid of my list").together is None


@pytest.mark.requirement("K14")
@pytest.mark.parametrize("harm", ["missing", "cut", "other", "shape"])
def test_a_file_that_cannot_be_used_costs_only_the_second_look_and_is_told(
    harm: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = copytree(MODEL_DIRECTORY, tmp_path / "model")
    path = folder / "joint.npz"
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if harm == "missing":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:-4_000])
    elif harm == "other":
        np.savez(path, **{**arrays, "meta": np.frombuffer(b'{"format": 1, "reader": "another"}', dtype=np.uint8)})
    else:
        np.savez(path, **{**arrays, "side": arrays["side"][:-1]})
    model = StaticModel.load(folder)
    assert model.reader is not None
    with pytest.raises(ModelUnavailable):
        JointReader.load(model.reader, folder)
    index = indexed(ALWAYS, load=lambda: model)
    assert index.search("get rid of my road trip songs list", limit=2).hits
    assert index.signals("get rid of my road trip songs list").together is None
    assert "not read together" in (model.lacking or "")
    assert caplog.text.count("not read together") == 1
