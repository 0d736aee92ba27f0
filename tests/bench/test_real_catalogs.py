"""What is asked of real catalogs, and how it is counted."""

import json

from bench.real_catalogs import (
    ABSENT,
    KINDS,
    LANGUAGES,
    QUERIES,
    Asked,
    RealCatalog,
    Tally,
    in_other_languages,
    read_catalogs,
    report,
    report_languages,
    tools_of,
)
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


def test_a_ninth_of_the_queries_is_asked_in_each_of_eighteen_languages():
    catalogs = read_catalogs(QUERIES.read_text("utf-8").splitlines())
    asked = in_other_languages(catalogs, LANGUAGES.read_text("utf-8").splitlines())
    queries = sum(len(catalog.queries) for catalog in catalogs)
    assert len(asked) == 18
    for each in asked.values():
        found = sum(len(catalog.queries) for catalog in each)
        assert queries / 9 - 1 <= found <= queries / 9 + 5


def test_a_language_is_reported_with_what_is_found_or_named_and_the_mean_of_all():
    met, near, far = Tally(queries=2, emptied=1, named=1, recall=1.0), Tally(queries=2, emptied=1), Tally(queries=1)
    kinds = {"asked": met, "told": Tally(queries=2), "absent_near": near, "absent_far": far}
    assert report_languages({"de": kinds}).splitlines()[2:] == [
        "| de | 4 | 25.0% | 50.0% | 50.0% | 0.0% |",
        "| mean | | 25.0% | 50.0% | 50.0% | 0.0% |",
    ]
