"""The project's own corpus keeps its promises: shape, size, and gold that means what its category says.

The floors in CI are read off this corpus. A semantic query that shares a word with its tool, or an absent
ability with a tool that has it, would make those floors say something else than they claim.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

LEAST_QUERIES = {
    "lexical": 60,
    "semantic": 200,
    "oblique": 150,
    "ambiguous": 35,
    "exact_name": 20,
    "typo": 20,
    "multi_need": 20,
    "multilingual": 48,
    "absent": 60,
    "confusable": 30,
}

# Words that carry no ability of their own: sharing one of them tells a ranker nothing about the right tool.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    a about above after again against all also am an and any anybody anyone are around as at away be
    because been before being below between both but by can cannot could did do does doing done down
    during each few for from further get gets give gives go goes got had has have having he her here
    hers him his how i if in into is it its itself just keep let lets like make makes may me might
    more most much must my need needs no nor not now of off on once one only or other our ours out
    over own please put s same see she should show so some something such t take takes tell than
    that the their theirs them then there these they thing things this those through to too under
    unless until up us use used very via want was we were what when where which while who whom whose
    why will with without would yes you your yours re d ll
        """,
    )
)

Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def tools() -> list[Row]:
    return rows("tools.jsonl")


@pytest.fixture(scope="module")
def queries() -> list[Row]:
    return rows("queries.jsonl")


def root(word: str) -> str:
    """Fold plural and verb endings; too eager rather than too lazy, since it guards against shared words."""
    for ending, kept in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + kept
            break
    doubled = len(word) > 3 and word[-1] == word[-2]
    return word[:-1] if doubled else word.removesuffix("e")


def content_words(text: str) -> set[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    plain = "".join(c for c in unicodedata.normalize("NFKD", apart.casefold()) if not unicodedata.combining(c))
    return {root(word) for word in re.findall(r"[^\W_]+", plain) if word not in FUNCTION_WORDS}


def words_of_tool(tool: Row) -> set[str]:
    return content_words(f"{tool['server']} {tool['name']} {tool['description']}")


def words_of_parameters(schema: Row) -> set[str]:
    words = content_words(str(schema.get("description", "")))
    for value in schema.get("enum", []):
        words |= content_words(str(value))
    for name, inner in schema.get("properties", {}).items():
        words |= content_words(name) | words_of_parameters(inner)
    return words | words_of_parameters(schema["items"]) if "items" in schema else words


def separators_folded(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def short_name(tool: Row) -> str:
    """The name without the toolset that some servers put in front of it."""
    return separators_folded(tool["name"]).removeprefix(separators_folded(tool["server"]))


def test_every_tool_has_the_shape_that_eval_reads(tools: list[Row]) -> None:
    for tool in tools:
        assert set(tool) == {"id", "name", "description", "parameters", "server"}
        assert tool["id"] == f"{tool['server']}__{tool['name']}"
        assert isinstance(tool["description"], str)
        assert tool["parameters"]["type"] == "object"
        assert set(tool["parameters"].get("required", [])) <= set(tool["parameters"]["properties"])


def test_tool_ids_are_unique_and_the_catalog_is_large_enough(tools: list[Row]) -> None:
    assert len({tool["id"] for tool in tools}) == len(tools) >= 240
    assert len({tool["server"] for tool in tools}) >= 14


def test_the_catalog_is_as_uneven_as_real_ones(tools: list[Row]) -> None:
    names = Counter(separators_folded(tool["name"]) for tool in tools)
    assert sum(1 for tool in tools if not tool["description"]) >= 5
    assert sum(1 for count in names.values() if count > 1) >= 3
    assert any("-" in tool["name"] for tool in tools)
    assert any("_" in tool["name"] for tool in tools)
    assert any(re.search(r"[a-z][A-Z]", tool["name"]) for tool in tools)


def test_every_query_has_the_shape_that_eval_reads(queries: list[Row]) -> None:
    allowed = {"id", "query", "relevant", "category", "lang", "kind"}
    for query in queries:
        assert {"id", "query", "relevant", "category"} <= set(query) <= allowed
        assert query["query"] == query["query"].strip() != ""
        assert len(set(query["relevant"])) == len(query["relevant"])


def test_query_ids_and_texts_are_unique(queries: list[Row]) -> None:
    assert len({query["id"] for query in queries}) == len(queries) >= 340
    assert len({query["query"].casefold() for query in queries}) == len(queries)


def test_every_category_has_its_share(queries: list[Row]) -> None:
    counts = Counter(query["category"] for query in queries)
    assert set(counts) == set(LEAST_QUERIES)
    assert {name: counts[name] for name in LEAST_QUERIES if counts[name] < LEAST_QUERIES[name]} == {}


def test_every_relevant_tool_exists(tools: list[Row], queries: list[Row]) -> None:
    known = {tool["id"] for tool in tools}
    assert {gold for query in queries for gold in query["relevant"]} - known == set()


def test_lexical_queries_share_a_word_with_each_of_their_tools(tools: list[Row], queries: list[Row]) -> None:
    words = {tool["id"]: words_of_tool(tool) for tool in tools}
    for query in queries:
        if query["category"] == "lexical":
            assert all(words[gold] & content_words(query["query"]) for gold in query["relevant"]), query["id"]


def test_semantic_and_oblique_queries_share_no_word_with_their_tools(tools: list[Row], queries: list[Row]) -> None:
    words = {tool["id"]: words_of_tool(tool) | words_of_parameters(tool["parameters"]) for tool in tools}
    shared = {
        (query["id"], gold): words[gold] & content_words(query["query"])
        for query in queries
        if query["category"] in {"semantic", "oblique"}
        for gold in query["relevant"]
    }
    assert {place: common for place, common in shared.items() if common} == {}


def test_oblique_queries_say_how_far_they_are_from_the_tool(queries: list[Row]) -> None:
    kinds = Counter(query.get("kind") for query in queries if query["category"] == "oblique")
    assert set(kinds) == {"paraphrase", "situation"}
    assert min(kinds.values()) >= 35


def test_ambiguous_queries_have_two_to_four_right_tools(queries: list[Row]) -> None:
    for query in queries:
        if query["category"] == "ambiguous":
            assert 2 <= len(query["relevant"]) <= 4, query["id"]


def test_queries_of_several_needs_name_a_tool_for_each(queries: list[Row]) -> None:
    for query in queries:
        if query["category"] == "multi_need":
            assert len(query["relevant"]) >= 2, query["id"]


def test_exact_names_are_names_up_to_case_and_separators(tools: list[Row], queries: list[Row]) -> None:
    by_id = {tool["id"]: tool for tool in tools}
    for query in queries:
        if query["category"] == "exact_name":
            asked = separators_folded(query["query"])
            assert all(separators_folded(gold).endswith(asked) for gold in query["relevant"]), query["id"]
            names = {i: {separators_folded(tool["name"]), short_name(tool)} for i, tool in by_id.items()}
            same = {i for i, known in names.items() if asked in known}
            assert same <= set(query["relevant"]), query["id"]


def test_confusable_queries_mean_one_tool(queries: list[Row]) -> None:
    for query in queries:
        if query["category"] == "confusable":
            assert len(query["relevant"]) == 1, query["id"]


def test_typo_queries_hold_a_word_that_no_tool_has(tools: list[Row], queries: list[Row]) -> None:
    vocabulary = set[str]().union(*(words_of_tool(tool) for tool in tools))
    for query in queries:
        if query["category"] == "typo":
            assert content_words(query["query"]) - vocabulary, query["id"]


def test_eight_languages_have_six_queries_each(queries: list[Row]) -> None:
    languages = Counter(query["lang"] for query in queries if query["category"] == "multilingual")
    assert len(languages) >= 8
    assert min(languages.values()) >= 6
    assert not any("lang" in query for query in queries if query["category"] != "multilingual")


def test_every_language_asks_for_twenty_tools_and_eight_absent_abilities(tools: list[Row]) -> None:
    keys = {tool["id"] for tool in tools}
    asked: dict[str, list[Row]] = {}
    for query in rows("languages.jsonl"):
        asked.setdefault(query["category"], []).append(query)
    assert len({query["id"] for each in asked.values() for query in each}) == sum(map(len, asked.values()))
    for each in asked.values():
        assert (len(each), sum(not query["relevant"] for query in each)) == (28, 8)
        assert all(keys.issuperset(query["relevant"]) for query in each)


def test_only_absent_abilities_have_no_right_tool(queries: list[Row]) -> None:
    for query in queries:
        assert (query["relevant"] == []) == (query["category"] == "absent"), query["id"]


def test_absent_abilities_tempt_with_words_of_real_tools(tools: list[Row], queries: list[Row]) -> None:
    vocabulary = set[str]().union(*(words_of_tool(tool) for tool in tools))
    absent = [query for query in queries if query["category"] == "absent"]
    assert {query["kind"] for query in absent} == {"near", "shared", "foreign"}
    for query in absent:
        tempts = bool(content_words(query["query"]) & vocabulary)
        assert tempts == (query["kind"] != "foreign"), query["id"]
    assert sum(1 for query in absent if query["kind"] != "foreign") >= 40


def test_keyword_queries_and_sentences_are_both_well_represented(queries: list[Row]) -> None:
    written = [
        query["query"]
        for query in queries
        if query["category"] in {"lexical", "semantic", "oblique", "absent", "confusable"}
    ]
    short = sum(1 for text in written if len(text.split()) <= 5)
    assert 0.3 <= short / len(written) <= 0.7
