"""The evaluation library: measures, clear errors, comparisons and gates."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.retrieval.documents import document

from toolcrib.evals.break_even import BreakEven
from toolcrib.evals.compare import changed_queries, compare
from toolcrib.evals.corpus import CorpusError, Query, read_queries, read_tools, unknown_answers, with_keys
from toolcrib.evals.generate import synthetic_queries
from toolcrib.evals.metrics import bootstrap_interval, ndcg, recall, reciprocal_rank
from toolcrib.evals.report import svg_chart, text_comparison, text_report
from toolcrib.evals.run import Evaluation, evaluate, unmet
from toolcrib.retrieval.base import Hit, Ranking
from toolcrib.retrieval.lexical import LexicalRetriever

TOOLS = (document("send_email", "Send an email"), document("read_email", "Read an email"), document("get_time"))


class Fixed:
    """Answers every query with the same keys."""

    def __init__(self, *keys: str, doubtful: bool = False) -> None:
        self._keys = keys
        self._doubtful = doubtful

    def index(self, documents: object) -> "Fixed":
        return self

    def __len__(self) -> int:
        return 3

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        hits = tuple(Hit(key=key, score=1.0) for key in self._keys)
        return Ranking(hits=hits, abstained=not hits, confidence=0.5, doubtful=self._doubtful)


def run(retriever: object, *queries: Query) -> Evaluation:
    ticks = itertools.count()
    return evaluate(retriever, TOOLS, queries, retrieval="lexical", clock=lambda: next(ticks) / 1000)


def query(id: str, *relevant: str, category: str = "") -> Query:
    return Query(id=id, text=id, relevant=frozenset(relevant), category=category)


def test_the_measures_are_what_they_say():
    found = ["a", "x", "b"]
    assert recall(found, {"a", "b"}, 1) == 0.5
    assert recall(found, {"a", "b"}, 5) == 1.0
    assert reciprocal_rank(found, {"b"}) == pytest.approx(1 / 3)
    assert reciprocal_rank(found, {"z"}) == 0.0
    assert ndcg(["a", "b"], {"a", "b"}, 10) == pytest.approx(1.0)
    assert ndcg(found, {"a", "b"}, 10) == pytest.approx(1.5 / (1 + 0.6309297535714575))


@pytest.mark.requirement("X25")
def test_a_summary_has_exactly_the_promised_keys():
    summary = run(Fixed("send_email"), query("q", "send_email", category="c"), query("absent")).summary()
    assert list(summary) == [
        "n_tools", "n_queries", "retrieval", "recall@1", "recall@5", "recall@10", "mrr", "ndcg@10",
        "abstention", "latency_ms", "build_ms", "by_category",
    ]  # fmt: skip
    assert summary["recall@1"] == 1.0
    undoubted = {"absent": 0, "missed": 0, "found": 0}
    assert summary["abstention"] == {"n": 1, "correct": 0, "answerable_emptied": 0, "doubtful": undoubted}
    assert summary["latency_ms"] == {"p50": 1.0, "p95": 1.0}
    assert json.loads(json.dumps(summary)) == summary


@pytest.mark.requirement("X25")
def test_a_summary_and_a_report_have_the_break_even_where_it_was_weighed():
    weighed = BreakEven(tools=3, direct=5_000, visible=1_000, answers=(100, 100))
    plain = run(Fixed("send_email"), query("q", "send_email"))
    assert "break-even" not in text_report(plain)
    evaluation = replace(plain, break_even=weighed)
    assert evaluation.summary() == {**plain.summary(), "break_even": weighed.summary()}
    lines = text_report(evaluation).splitlines()
    assert lines[-4:] == [
        "attached   5,000 tokens per turn",
        "bridge     1,000 tokens per turn with tool search",
        "a search   100 tokens of answer, 100 at p95 (n=2)",
        "break-even 39 searches in 20 turns (1.9 a turn), 39 at p95",
    ]
    assert max(map(len, lines)) <= 60


@pytest.mark.requirement("X25")
def test_a_report_says_that_tool_search_cannot_pay_and_of_how_many_tools_it_speaks():
    small = BreakEven(tools=2, direct=90, visible=400, answers=(100,))
    evaluation = replace(run(Fixed("send_email"), query("q", "send_email")), break_even=small)
    lines = text_report(evaluation).splitlines()
    assert lines[-4] == "attached   90 tokens per turn (2 tools)"
    assert lines[-1] == "break-even none: attaching every tool is cheaper"


@pytest.mark.requirement("X2", "X25")
def test_an_empty_answer_is_right_for_an_absent_ability_and_counted_for_an_answerable_one():
    summary = run(Fixed(), query("q", "send_email"), query("absent")).summary()
    abstention: Any = summary["abstention"]
    assert (abstention["n"], abstention["correct"], abstention["answerable_emptied"]) == (1, 1, 1)


@pytest.mark.requirement("X2", "X25")
def test_doubtful_answers_are_counted_by_whether_the_right_tool_was_there_missed_or_absent():
    asked = (query("q", "send_email"), query("r", "read_email"), query("absent"))
    evaluation = run(Fixed("send_email", doubtful=True), *asked)
    abstention: Any = evaluation.summary()["abstention"]
    assert abstention["doubtful"] == {"absent": 1, "missed": 1, "found": 1}
    assert "doubtful   1 of 1 other absent, 1 of 1 missed, 1 of 1 found" in text_report(evaluation)


@pytest.mark.requirement("X25")
def test_a_gate_names_what_was_not_reached():
    summary = run(Fixed("read_email"), query("q", "send_email")).summary()
    assert unmet(summary, {"recall@5": 0.0}) == []
    assert unmet(summary, {"recall@5": 0.8}) == ["recall@5 is 0.0000, at least 0.8 is asked for"]
    assert "not measured" in unmet(summary, {"abstention": 0.5})[0]
    absent = {**summary, "n_queries": 3, "abstention": {"n": 3, "correct": 3}}
    assert unmet(absent, {"abstention": 1.0, "recall@5": 0.0}) == ["recall@5 was not measured, at least 0 is asked for"]


@pytest.mark.requirement("X25")
def test_a_clear_difference_is_told_from_chance():
    queries = [query(f"q{n}", "send_email") for n in range(30)]
    bad, good = run(Fixed("read_email"), *queries), run(Fixed("send_email"), *queries)
    differences = {each.measure: each for each in compare(bad, good)}
    assert differences["recall@5"].clear
    assert not any(each.clear for each in compare(good, good))
    assert changed_queries(bad, good)[0] == ("q0", 1.0)
    assert "*" in text_comparison(compare(bad, good))
    with pytest.raises(ValueError, match="same queries"):
        compare(bad, run(Fixed()))


def test_an_interval_holds_the_mean_and_is_repeatable():
    values = [0.0, 1.0, 1.0, 0.0, 1.0] * 20
    low, high = bootstrap_interval(values)
    assert low < 0.6 < high
    assert (low, high) == bootstrap_interval(values)


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": "a", "name": "a"}\n{"id": "b"', ":2: is no valid JSON"),
        ('{"id": "a"}', ":1: `name` must be a text"),
        ("[1]", ": entry 1: a JSON object is expected"),
        ("7", ":1: a JSON object is expected"),
        ('[{"name": "a"}, {"name": "a"}]', ": entry 2: the id `a` is already in entry 1"),
        ('{"id": "a", "name": "a", "parameters": 7}', ":1: `parameters` must be"),
        ('{"id": "a", "name": "a"}\n\n{"id": "a", "name": "b"}', ":3: the id `a` is already on line 1"),
        ('[\n{"name": "a"},\n{"name" "b"}\n]', ": is no valid JSON: Expecting ':' delimiter: line 3"),
        ('[{"name": "a"},\n{"name": "b"]', ": is no valid JSON: Expecting ',' delimiter: line 2"),
        ('{\n"tools": [\n{"name": }]}', ": is no valid JSON: Expecting value: line 3"),
        ('[{"name": "a"}]\n[{"name"', ":2: is no valid JSON"),
        ("", ": holds no tools"),
        ("\ufeff", ": holds no tools"),
    ],
)
def test_a_wrong_line_is_named_with_its_place(tmp_path: Path, lines: str, message: str):
    path = tmp_path / "tools.jsonl"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(CorpusError) as error:
        read_tools(path)
    assert f"{path}{message}" in str(error.value)


def test_tools_and_queries_are_read_in_their_shapes(tmp_path: Path):
    tools, queries = tmp_path / "t.jsonl", tmp_path / "q.jsonl"
    schema = {"properties": {"to": {"description": "Whom to write"}}}
    rows = [
        {"id": "s::a", "name": "a", "parameters": schema, "server": "s"},
        {"id": "b", "name": "b", "parameters": ["x"]},
    ]
    tools.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    queries.write_text('{"id": 1, "query": "q", "relevant": ["s::a", "gone"]}\n', encoding="utf-8")
    first, second = read_tools(tools)
    assert (first.key, first.leaf, first.toolset, first.parameters) == ("s::a", "a", "s", ("to",))
    assert "Whom to write" in first.nested
    assert second.parameters == ("x",)
    (asked,) = read_queries(queries)
    assert asked.relevant == {"s::a", "gone"}
    assert unknown_answers([first, second], [asked]) == ["gone"]
    with pytest.raises(CorpusError, match="cannot be read"):
        read_queries(tmp_path / "none.jsonl")


def test_a_mark_of_the_byte_order_is_no_part_of_a_file(tmp_path: Path):
    path = tmp_path / "tools.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\r\n{"name": "a"}\r\n{"name": "b"}\r\n')
    assert [tool.key for tool in read_tools(path)] == ["a", "b"]


@pytest.mark.requirement("X25")
@pytest.mark.parametrize("as_list", [False, True])
def test_a_query_may_have_other_keys_even_that_of_a_list_of_tools(tmp_path: Path, as_list: bool):
    path = tmp_path / "q.jsonl"
    row = {"id": "1", "query": "q", "relevant": ["a"], "tools": ["a", "b"], "jsonrpc": "2.0", "result": {}}
    path.write_text(json.dumps([row] if as_list else row), encoding="utf-8")
    assert read_queries(path) == [Query(id="1", text="q", relevant=frozenset({"a"}))]


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(
    "definition",
    [
        {"name": "send", "description": "Send.", "inputSchema": {"properties": {"to": {"description": "Whom"}}}},
        {"name": "send", "description": "Send.", "input_schema": {"properties": {"to": {"description": "Whom"}}}},
        {"name": "send", "description": "Send.", "parameters": {"properties": {"to": {"description": "Whom"}}}},
        {
            "type": "function",
            "function": {
                "name": "send",
                "description": "Send.",
                "parameters": {"properties": {"to": {"description": "Whom"}}},
            },
        },
    ],
    ids=["mcp", "anthropic", "openai_responses", "openai_chat"],
)
@pytest.mark.parametrize("as_list", [False, True])
def test_tools_are_read_in_every_dialect_with_all_their_words(tmp_path: Path, definition: Any, as_list: bool):
    path = tmp_path / "tools.json"
    row = {**definition, "server": "mail"}
    path.write_text(json.dumps([row] if as_list else row, indent=2 if as_list else None), encoding="utf-8")
    (tool,) = read_tools(path)
    assert (tool.key, tool.leaf, tool.toolset, tool.parameters) == ("mail__send", "send", "mail", ("to",))
    assert (tool.description, tool.nested) == ("Send.", "Whom")


@pytest.mark.requirement("X25")
def test_a_right_answer_may_be_given_by_the_name_that_only_one_tool_has(tmp_path: Path):
    path = tmp_path / "tools.jsonl"
    rows = [("a", "send"), ("a", "find"), ("b", "find")]
    path.write_text("\n".join(json.dumps({"name": name, "server": server}) for server, name in rows))
    asked = Query(id="1", text="q", relevant=frozenset({"send", "find", "b__find"}))
    (meant,) = with_keys(read_tools(path), [asked])
    assert meant.relevant == {"a__send", "find", "b__find"}


@pytest.mark.requirement("X25")
def test_queries_are_made_from_a_catalog_and_say_that_they_are_synthetic():
    made = synthetic_queries(TOOLS)
    assert made == synthetic_queries(TOOLS[::-1])
    assert all(each.category.startswith("synthetic:") for each in made)
    summary = run(LexicalRetriever(), *made).summary()
    assert summary["recall@5"] == 1.0


@pytest.mark.requirement("X25")
def test_a_report_shows_figures_with_intervals_as_text_and_picture():
    evaluation = run(Fixed("send_email"), query("q", "send_email"), query("absent"))
    assert "recall@5" in text_report(evaluation)
    assert text_report(evaluation).startswith("3 tools, 1 answerable query, 1 absent; lexical\n")
    assert "[1.000, 1.000]" in text_report(evaluation)
    assert svg_chart(evaluation).startswith("<svg")
