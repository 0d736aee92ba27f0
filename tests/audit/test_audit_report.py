"""The figures of an audit: the same as elsewhere, honest in both directions."""

import json
from pathlib import Path

import pytest
from tests.factories import definition

from toolcrib.audit.report import (
    Failure,
    Listed,
    build_report,
    report_json,
)
from toolcrib.audit.tokenizers import Tokenizer
from toolcrib.cli.catalogs import load_catalog
from toolcrib.cli.tokens import token_report
from toolcrib.definitions import JsonObject
from toolcrib.evals.break_even import TURNS, search_cost


def tools(word: str, count: int, text: str = "Does something useful with it. ") -> list[JsonObject]:
    return [
        definition(f"{word}_{n}", f"{word.title()} number {n}. {text * 6}", path={"type": "string"})
        for n in range(count)
    ]


def listed() -> dict[str, Listed]:
    return {
        "github": [*tools("issue", 60), definition("search", "Search.", q={"type": "string"})],
        "gitlab": [*tools("merge", 40), definition("search", "Search.", q={"type": "string"})],
        "web": [definition("Search", "Search the web.", query={"type": "string"})],
        "broken": Failure(reason="the program `npx` was not found"),
        "asleep": Failure(reason="it is switched off", status="skipped"),
    }


@pytest.mark.requirement("X23")
def test_the_figures_are_those_of_the_tokens_command(tmp_path: Path) -> None:
    rows = [
        {**tool, "server": name}
        for name, answer in listed().items()
        if not isinstance(answer, Failure)
        for tool in answer
    ]
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    for context in (None, 32_000, 200_000):
        expected = token_report(load_catalog(path).session(model_context=context).assemble().assembly)
        report = build_report(listed(), context=context)
        assert report.total_tokens == expected["direct_tokens"]
        assert report.with_toolcrib_tokens == expected["visible_tokens"]
        assert report.saved_pct == expected["saved_pct"]
        assert report.activated == expected["activated"]


@pytest.mark.requirement("X23")
def test_the_json_has_the_keys_that_scripts_rely_on() -> None:
    found = report_json(build_report(listed(), context=32_000))
    assert set(found) >= {"servers", "total_tokens", "with_toolcrib_tokens", "saved_pct", "context"}
    servers = {row["name"]: row for row in found["servers"]}
    assert set(servers["github"]) == {"name", "status", "tools", "tokens"}
    assert servers["github"]["status"] == "ok" and servers["github"]["tools"] == 61
    assert servers["broken"] == {
        "name": "broken",
        "status": "failed",
        "tools": 0,
        "tokens": 0,
        "error": "the program `npx` was not found",
    }
    assert servers["asleep"]["status"] == "skipped"
    assert found["context"] == 32_000
    json.dumps(found)


@pytest.mark.requirement("X23")
def test_where_the_gate_stays_shut_nothing_is_saved() -> None:
    report = build_report({"small": tools("one", 3)}, context=200_000)
    assert not report.activated and report.saved_pct == 0.0
    assert report.conversation.now == report.conversation.with_toolcrib
    assert report.conversation.break_even is None
    assert report.forced_tokens != report.with_toolcrib_tokens


@pytest.mark.requirement("X23")
def test_searches_cost_tokens_too() -> None:
    report = build_report(listed(), context=32_000)
    conversation = report.conversation
    assert conversation.measured > 0 and conversation.search_tokens > 0
    free = TURNS * report.with_toolcrib_tokens
    assert conversation.with_toolcrib > free
    cost = search_cost(visible=report.with_toolcrib_tokens, answer=conversation.search_tokens)
    assert conversation.with_toolcrib == free + conversation.searches * cost
    assert conversation.break_even is not None
    assert free + conversation.break_even * cost <= conversation.now < free + (conversation.break_even + 1) * cost


@pytest.mark.requirement("X23")
def test_tools_that_several_servers_have_are_found() -> None:
    (found,) = build_report(listed()).duplicates
    assert found.name == "search" and found.servers == ("github", "gitlab", "web") and not found.same
    twins: dict[str, Listed] = {"a": tools("t", 1), "b": tools("t", 1)}
    (twin,) = build_report(twins).duplicates
    assert twin.same and twin.tokens > 0


def test_the_biggest_schemas_come_first_under_their_own_names() -> None:
    big = definition("huge", "x" * 4_000)
    report = build_report({"s": [*tools("t", 20), big]})
    assert report.biggest[0].name == "huge" and report.biggest[0].server == "s"
    assert len(report.biggest) == 10
    assert [item.tokens for item in report.biggest] == sorted((item.tokens for item in report.biggest), reverse=True)


@pytest.mark.requirement("X23")
def test_no_client_pays_for_the_servers_of_another() -> None:
    report = build_report(listed(), clients={"cursor": ["github", "broken"], "zed": ["gitlab", "web"]})
    costs = {item.client: item for item in report.clients}
    assert costs["cursor"].servers == 1 and costs["zed"].servers == 2
    assert costs["cursor"].tokens + costs["zed"].tokens == pytest.approx(report.total_tokens, abs=2)


def test_a_tokenizer_adds_exact_figures_and_changes_no_estimate() -> None:
    plain = build_report(listed(), context=32_000)
    exact = build_report(listed(), context=32_000, tokenizer=Tokenizer(name="words", count=lambda text: len(text)))
    assert exact.total_tokens == plain.total_tokens
    assert exact.exact_total is not None and exact.exact_with_toolcrib is not None
    assert exact.exact_total == sum(server.exact or 0 for server in exact.servers)
    # One token a character: four times the estimate, but for rounding.
    assert exact.exact_total / 4 == pytest.approx(exact.total_tokens, rel=0.01)
    assert report_json(exact)["exact"]["tokenizer"] == "words"
    assert "exact" not in report_json(plain)


def test_definitions_that_cannot_be_used_are_counted() -> None:
    report = build_report({"s": [*tools("t", 2), {"name": "tool_search", "inputSchema": {}}]})
    assert report.servers[0].left_out == 1 and report.servers[0].tools == 2


def test_no_servers_at_all_is_a_report_too() -> None:
    report = build_report({})
    assert report.total_tokens == 0 and report.saved_pct == 0.0 and not report.activated
