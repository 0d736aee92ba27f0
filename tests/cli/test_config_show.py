"""`toolcrib config show` as a person meets it."""

from pathlib import Path

import pytest
from tests.cli.terminal import Terminal

from toolcrib.cli.config import masked, origin_of


def test_every_value_says_where_it_came_from(home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "project" / "toolcrib.yaml"
    file.write_text("tools:\n  tool_search:\n    threshold_pct: 5\nlimits:\n  call_deadline_s: 30\n", encoding="utf-8")
    monkeypatch.setenv("TOOLCRIB_LIMITS__CALL_DEADLINE_S", "15")
    shown = terminal.run("config", "show", "--origin", "--json")
    assert shown.code == 0, shown.err
    rows = shown.json
    assert rows["tools.tool_search.threshold_pct"] == {"value": 5.0, "origin": "file:toolcrib.yaml"}
    assert rows["limits.call_deadline_s"] == {"value": 15.0, "origin": "env:TOOLCRIB_LIMITS__CALL_DEADLINE_S"}
    assert rows["tools.tool_search.search_default_limit"] == {"value": 5, "origin": "default"}
    text = terminal.run("config", "show", "--origin").out
    assert "env:TOOLCRIB_LIMITS__CALL_DEADLINE_S" in text and "file:toolcrib.yaml" in text


def test_in_a_pipe_the_origins_stand_in_one_column(home: Path, terminal: Terminal) -> None:
    lines = terminal.run("config", "show", "--origin").out.splitlines()
    assert len({line.rindex("  default") for line in lines}) == 1


def test_a_shorthand_is_the_origin_of_what_it_stands_for(home: Path, terminal: Terminal) -> None:
    file = home / "project" / "mine.yaml"
    file.write_text("tools:\n  tool_search: false\n", encoding="utf-8")
    rows = terminal.run("config", "show", "--config", str(file), "--origin", "--json").json
    assert rows["tools.tool_search.enabled"] == {"value": "off", "origin": f"file:{file}"}
    assert origin_of("a.b.c", {"a.b": "flag"}) == "flag"


def test_secrets_are_not_shown() -> None:
    assert masked("mcpServers.x.env.GITHUB_PAT", "ghp_1") == "***"
    assert masked("mcpServers.x.headers.Authorization", "Bearer abc") == "***"
    assert masked("mcpServers.x.headers.Authorization", "Bearer ${TOKEN}") == "Bearer ${TOKEN}"
    assert masked("gateway.api_key", "k") == "***"
    assert (
        masked("tools.tool_search.reranker.endpoint", "http://me:pw@h/v1?key=abc&x=1")
        == "http://***@h/v1?key=***&x=***"
    )
    assert masked("tools.tool_search.listing_max_tokens", 4000) == 4000
    assert masked("tools.core", ["read_file"]) == ["read_file"]
    args = ["mcp-remote", "https://h", "--header", "Authorization: Bearer abc.def", "--api-key", "s3cret", "--port=1"]
    shown = masked("mcpServers.x.args", args)
    assert shown == ["mcp-remote", "https://h", "--header", "Authorization: Bearer ***", "--api-key", "***", "--port=1"]


def test_wrong_use_is_one_sentence(home: Path, terminal: Terminal) -> None:
    file = home / "bad.yaml"
    file.write_text("tools:\n  tool_serch: true\n", encoding="utf-8")
    for args, said in (
        (("config", "show", "--config", str(file)), "did you mean `tool_search`?"),
        (("config", "show", "--config", str(home / "none.yaml")), "cannot be read"),
    ):
        refused = terminal.run(*args)
        assert refused.code == 2 and said in refused.err and len(refused.err.splitlines()) == 1


def test_a_secret_among_a_servers_arguments_is_not_shown(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("mcpServers: {x: {command: x, args: [--api-key, s3cret, --port=1]}}")
    for more in ((), ("--json",), ("--origin",)):
        shown = terminal.run("config", "show", "--config", str(path), *more).out
        assert "s3cret" not in shown
        assert "--api-key" in shown
        assert "--port=1" in shown
