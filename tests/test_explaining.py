"""Reasons of an answer: each belongs to the tool and to the need that it is of."""

import pytest
from tests.factories import TEXT, Recorder, core, crib, definition, settings

from toolcrib.explaining import explain_search


@pytest.mark.requirement("X26")
def test_a_score_belongs_to_the_tool_that_it_is_shown_with_also_where_twins_are_left_out() -> None:
    same = [
        Recorder(f"mcp-{name}", [definition("open_door", "Open the door.", key=TEXT)], prefix=name) for name in "ab"
    ]
    other = Recorder("mcp-z", [definition("paint_door", "Paint it.")], prefix="z")
    shared = crib(core(), *same, other)
    found = explain_search(shared, shared.session(), "open door", limit=5)
    ranking = shared.discovery.rank(shared.session().catalog, "open door", limit=5)
    scores = {hit.key: round(hit.score, 4) for hit in ranking.hits}
    assert [match["name"] for match in found.matches] == ["a__open_door", "z__paint_door"]
    for match in found.matches:
        assert match["score"] == scores[str(match["name"])]
        evidence = match["evidence"]
        assert isinstance(evidence, dict)
        assert sum(map(float, map(str, evidence.values()))) == pytest.approx(match["score"], abs=0.01)


@pytest.mark.requirement("X26", "X4")
def test_of_several_needs_the_evidence_is_that_of_the_need_that_found_the_tool() -> None:
    shared = crib()
    found = explain_search(shared, shared.session(), "weather forecast\ncreate issue", limit=1)
    catalog = shared.session().catalog
    for match, need in zip(found.matches, ("weather forecast", "create issue"), strict=True):
        (hit,) = shared.discovery.rank(catalog, need, limit=1, explain=True).hits
        assert (match["name"], match["evidence"]) == (hit.key, dict(hit.evidence))
    assert found.confidence == shared.discovery.rank(catalog, "weather forecast", limit=1).confidence


@pytest.mark.requirement("X26", "X4")
def test_of_several_needs_each_is_shown_as_it_was_read_and_those_without_a_tool_are_named() -> None:
    shared = crib()
    session = shared.session()
    found = explain_search(shared, session, "weather forcast\nzxqv wlrk", limit=2)
    assert found.read_as.splitlines() == ["weather forecast", "zxqv wlrk"]
    assert found.as_json()["nothing_for"] == ["zxqv wlrk"]
    for match in found.matches:
        evidence = match["evidence"]
        assert isinstance(evidence, dict)
        assert sum(map(float, map(str, evidence.values()))) == pytest.approx(match["score"], abs=0.01)


@pytest.mark.requirement("X26")
def test_hits_that_the_budget_left_out_take_no_evidence_from_those_that_are_shown() -> None:
    many = {f"parameter_{n}": TEXT for n in range(20)}
    sources = [
        Recorder(f"mcp-{name}", [definition(f"open_{n}", f"Open it, {name}.", **many) for n in range(3)], prefix=name)
        for name in "ab"
    ]
    shared = crib(core(), *sources, settings=settings(enabled="on", search_result_max_tokens=600))
    found = explain_search(shared, shared.session(), "open", limit=6)
    assert found.answer.body["more"]
    assert len(found.matches) > 1
    assert all("evidence" in match for match in found.matches)
