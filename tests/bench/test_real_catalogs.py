"""What is asked of real catalogs, and how it is counted."""

import json

from bench.real_catalogs import ABSENT, KINDS, QUERIES, Asked, RealCatalog, Tally, read_catalogs, report, tools_of
from tests.retrieval.documents import document

from toolcrib.retrieval.base import Hit, Ranking


def found(*keys: str, nearest: tuple[str, ...] = (), doubtful: bool = False) -> Ranking:
    hits = tuple(Hit(key=key, score=1.0, evidence={}) for key in keys)
    return Ranking(hits=hits, abstained=not hits, confidence=0.5, nearest=nearest, doubtful=doubtful)


def test_every_catalog_is_asked_in_all_four_ways_for_tools_of_its_own_servers_or_for_none():
    catalogs = read_catalogs(QUERIES.read_text("utf-8").splitlines())
    assert len(catalogs) == 8
    for catalog in catalogs:
        assert {asked.kind for asked in catalog.queries} == set(KINDS)
        for asked in catalog.queries:
            assert bool(asked.relevant) is (asked.kind not in ABSENT), asked.text
            assert {key.split("/")[0] for key in asked.relevant} <= catalog.servers, asked.text


def test_a_query_belongs_to_the_catalog_above_it():
    rows = [
        {"catalog": "one", "servers": ["a"]},
        {"query": "x", "relevant": ["a/t"], "category": "asked"},
        {"catalog": "two", "servers": ["b", "c"]},
        {"query": "y", "relevant": [], "category": "absent_far"},
    ]
    first, second = read_catalogs(map(json.dumps, rows))
    assert [asked.text for asked in first.queries] == ["x"]
    assert (second.servers, second.queries[0].relevant) == ({"b", "c"}, frozenset())


def test_a_catalog_has_the_tools_of_its_servers_alone():
    tools = [document("1", leaf="t", toolset="a"), document("2", leaf="t", toolset="b")]
    catalog = RealCatalog(servers=frozenset({"b"}), queries=())
    assert [tool.key for tool in tools_of(catalog, tools)] == ["b/t"]


def test_an_emptied_answer_that_names_a_right_tool_is_told_from_one_that_does_not():
    asked, tally = Asked(text="x", kind="asked", relevant=frozenset({"a/t", "a/u"})), Tally()
    for ranking in (found("a/t", doubtful=True), found(nearest=("a/v", "a/u")), found(nearest=("a/v",))):
        tally.add(asked, ranking)
    assert tally == Tally(queries=3, emptied=2, named=1, doubtful=1, recall=0.5)
    assert report({"asked": tally}).endswith("| asked | 3 | 2 (66.7%) | 1 | 1 | 0.167 |")
