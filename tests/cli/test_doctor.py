"""`toolcrib doctor` with servers that really start, and some that do not."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import Terminal

from toolcrib.doctor import examination
from toolcrib.errors import ModelUnavailable
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.neighbours import Neighbours
from toolcrib.retrieval.semantic import StaticModel

BAD_UPSTREAM = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"


def upstream(mode: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(BAD_UPSTREAM), "--mode", mode]}


def configure(home: Path, settings: dict[str, Any]) -> None:
    (home / "project" / "toolcrib.yaml").write_text(json.dumps(settings))


def texts(report: Any, state: str) -> list[str]:
    return [check["text"] for check in report["checks"] if check["state"] == state]


def test_a_healthy_set_up_is_one_page_and_exit_code_0(home: Path, terminal: Terminal) -> None:
    configure(home, {"mcpServers": {"good": upstream("ok")}, "profiles": {"default": {"context": 200_000}}})
    done = terminal.run("doctor")
    assert done.code == 0, done.out + done.err
    assert "good works: 1 tool after" in done.out
    assert "profile default: 1 tool stays attached" in done.out
    assert "Searches are hybrid, as configured." in done.out
    assert done.out.endswith("Nothing is wrong.\n")
    assert "\x1b" not in done.out
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_what_is_wrong_is_named_with_the_next_step_and_exit_code_1(home: Path, terminal: Terminal) -> None:
    dead = {"command": str(home / "not-there")}
    configure(
        home,
        {
            "mcpServers": {"dead": dead, "good": upstream("ok"), "idle": {"command": "x", "disabled": True}},
            "profiles": {"night": {"context": 8_000, "required_tools": ["send"]}},
            "tools": {"tool_search": {"reranker": {"enabled": True, "endpoint": "http://127.0.0.1:9/v1/embeddings"}}},
        },
    )
    done = terminal.run("doctor", "--json")
    assert done.code == 1
    report = done.json
    assert report["healthy"] is False
    assert {row["name"]: row["status"] for row in report["servers"]} == {
        "dead": "failed",
        "good": "ok",
        "idle": "disabled",
    }
    wrong = texts(report, "wrong")
    assert len(wrong) == 3
    assert wrong[0].startswith("dead does not work: the program")
    assert wrong[1] == "profile night requires tools that nobody has: send."
    assert wrong[2].startswith("The reranker at 127.0.0.1 does not answer")
    page = terminal.run("doctor")
    assert page.code == 1
    assert "→ install it, or give its whole path as `mcpServers.dead.command`" in page.out
    assert page.out.endswith("3 things to put right.\n")


def test_a_server_that_never_answers_is_given_up_after_the_wait(home: Path, terminal: Terminal) -> None:
    configure(home, {"mcpServers": {"slow": upstream("hang_init")}})
    report = terminal.run("doctor", "--wait", "0.3", "--json").json
    assert report["servers"] == [
        {"name": "slow", "status": "failed", "tools": 0, "error": "it did not answer within 0.3 seconds"}
    ]


def test_searches_without_their_model_are_called_lexical(
    home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> StaticModel:
        raise ModelUnavailable("The file of the model is damaged.")

    monkeypatch.setattr(examination, "open_static", lambda environ: HybridRetriever(load=fail))
    configure(home, {})
    report = terminal.run("doctor", "--json").json
    assert report["retrieval"] == "lexical"
    assert texts(report, "wrong") == [
        "Searches are lexical although hybrid is configured: The file of the model is damaged."
    ]


@pytest.mark.parametrize("retrieval", ["lexical", "hybrid"])
def test_searches_without_words_of_the_same_meaning_lack_a_part_of_the_model(
    home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, retrieval: str
) -> None:
    damaged = Neighbours(lacking="words find only themselves: the file is damaged.")
    monkeypatch.setattr(examination, "shipped_neighbours", lambda: damaged)
    configure(home, {"tools": {"tool_search": {"retrieval": retrieval}}})
    assert texts(terminal.run("doctor", "--json").json, "wrong") == [
        f"Searches are {retrieval}, with a part of the model missing: words find only themselves: the file is damaged."
    ]


def test_held_back_tools_and_changed_launches_are_on_the_page(home: Path, terminal: Terminal) -> None:
    configure(home, {"pins": "enforce", "mcpServers": {"good": upstream("ok")}})
    report = terminal.run("doctor", "--json").json
    assert "Nothing is approved yet, so everything is held back." in texts(report, "wrong")
    assert [item["name"] for item in report["held_back"]] == ["good__echo"]


def test_approval_rules_that_no_tool_meets_are_told_where_all_servers_could_be_asked(
    home: Path, terminal: Terminal
) -> None:
    rules = {"ech*": "ask", "eco": "deny", "*": "allow"}
    settings = {"approvals": {"rules": rules}, "profiles": {"ci": {"approvals": {"rules": {"echo": "allow"}}}}}
    idle = ["approvals.rules: no tool meets `eco`.", "profiles.ci.approvals.rules: no tool meets `echo`."]
    for servers, told in (({}, idle), ({"dead": {"command": str(home / "not-there")}}, [])):
        configure(home, {"mcpServers": {"good": upstream("ok"), **servers}, **settings})
        notes = texts(terminal.run("doctor", "--json").json, "note")
        assert [note for note in notes if "no tool meets" in note] == told


def test_without_a_configuration_it_still_looks_at_the_clients(home: Path, terminal: Terminal) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    done = terminal.run("doctor")
    assert done.code == 0, done.out + done.err
    assert "cursor reaches 1 server without the gateway" in done.out
    assert "→ toolcrib install cursor --dry-run" in done.out


def test_without_a_configuration_it_looks_at_what_install_made(home: Path, terminal: Terminal) -> None:
    for name in (".cursor/mcp.json", ".gemini/settings.json"):
        file = home / name
        file.parent.mkdir()
        file.write_text(json.dumps({"mcpServers": {"good": upstream("ok")}}))
    assert terminal.run("install", "cursor", "--context", "1000000").code == 0
    done = terminal.run("doctor")
    assert done.code == 0, done.out + done.err
    assert "good works: 1 tool" in done.out and "a window of 1,000,000" in done.out
    assert terminal.run("install", "gemini").code == 0
    report = terminal.run("doctor", "--json").json
    assert report["healthy"] is True
    assert [[row["window"] for row in page["gate"]] for page in report["configs"]] == [[1_000_000], [200_000]]
    assert [page["servers"][0]["status"] for page in report["configs"]] == ["ok", "ok"]
    hint = terminal.run("search", "anything")
    assert hint.code == 2 and str(home / ".config/toolcrib/cursor.json") in hint.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pinz: off", "did you mean `pins`?"),
        ("mcpServers: {x: {}}", "give `command` for a program or `url`"),
        ("profiles: {p: {toolsets: [mcp-none]}}", "there is no toolset `mcp-none`"),
        ("a: [", "toolcrib.yaml"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_one_sentence_and_exit_code_2(
    home: Path, terminal: Terminal, text: str, said: str
) -> None:
    (home / "project" / "toolcrib.yaml").write_text(text)
    done = terminal.run("doctor")
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not done.out


def test_commands_that_it_names_can_be_typed_as_they_stand(home: Path, terminal: Terminal) -> None:
    elsewhere = home / "an elsewhere.json"
    elsewhere.write_text(json.dumps({"mcpServers": {"good": upstream("ok")}}))
    page = terminal.run("doctor", "--config", str(elsewhere)).out
    assert f"`toolcrib pins list --config '{elsewhere}'`, then `toolcrib pins approve --all --config" in page
    assert f"`toolcrib config show --origin --config '{elsewhere}'`" in page
    approved = terminal.run("pins", "approve", "--all", "--config", str(elsewhere))
    assert approved.code == 0
    configure(home, {"mcpServers": {"good": upstream("ok")}})
    assert "--config" not in terminal.run("doctor").out


def test_without_any_server_there_is_nothing_to_approve(home: Path, terminal: Terminal) -> None:
    assert not [check for check in terminal.run("doctor", "--json").json["checks"] if check["section"] == "pins"]
