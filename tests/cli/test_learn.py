"""`toolcrib learn` as a person meets it."""

from pathlib import Path

import orjson
import pytest
import yaml
from tests.cli.terminal import Terminal

from toolcrib.config import build_settings


def feed(path: Path, *, words: bool = True) -> Path:
    events = [
        event
        for session in ("a", "b")
        for event in (
            {
                "stage": "search",
                "session": session,
                "detail": {"queries": 1, **({"words": ["ticket"]} if words else {})},
            },
            {"stage": "done", "session": session, "outcome": "ok", "tool": "create_issue"},
        )
    ]
    path.write_bytes(b"\n".join(map(orjson.dumps, events)) + b"\n")
    return path


@pytest.mark.requirement("X8")
def test_proposals_are_yaml_that_the_configuration_takes(home: Path, terminal: Terminal) -> None:
    done = terminal.run("learn", "--activity", str(feed(home / "feed.jsonl")))
    assert done.code == 0, done.err
    assert build_settings(yaml.safe_load(done.out)).tools.aliases == {"create_issue": ("ticket",)}


@pytest.mark.requirement("X8")
def test_the_feed_is_found_in_the_configuration_and_nothing_is_changed(home: Path, terminal: Terminal) -> None:
    path = feed(home / "feed.jsonl")
    config = home / "project" / "toolcrib.yaml"
    text = f"activity:\n  file: {path}\n"
    config.write_text(text, encoding="utf-8")
    done = terminal.run("learn", "--json")
    assert done.code == 0
    assert done.json["proposals"] == [
        {"tool": "create_issue", "words": ["ticket"], "sessions": 2, "counts": {"ticket": 2}}
    ]
    assert config.read_text(encoding="utf-8") == text


def test_a_feed_without_words_says_which_setting_keeps_them(home: Path, terminal: Terminal) -> None:
    done = terminal.run("learn", "--activity", str(feed(home / "feed.jsonl", words=False)))
    assert done.code == 1 and "`activity.queries: true`" in done.err


def test_a_feed_that_keeps_words_is_not_told_to_keep_them(home: Path, terminal: Terminal) -> None:
    path = home / "feed.jsonl"
    path.write_bytes(orjson.dumps({"stage": "search", "session": "a", "detail": {"queries": 1, "words": []}}) + b"\n")
    done = terminal.run("learn", "--activity", str(path))
    assert done.code == 1 and "has no word that led to one tool" in done.err


def test_nothing_to_propose_is_a_negative_answer(home: Path, terminal: Terminal) -> None:
    done = terminal.run("learn", "--activity", str(feed(home / "feed.jsonl")), "--min-sessions", "3")
    assert done.code == 1 and "in 3 sessions" in done.err and not done.out


def test_wrong_use_is_one_sentence(home: Path, terminal: Terminal) -> None:
    broken = home / "broken.jsonl"
    broken.write_text('{"stage": "search"}\nnot json\n{}\n', encoding="utf-8")
    for args, said in (
        (("learn",), "There is no feed"),
        (("learn", "--activity", str(home / "none.jsonl")), "cannot be read"),
        (("learn", "--activity", str(broken)), "broken.jsonl:2: "),
    ):
        refused = terminal.run(*args)
        assert refused.code == 2 and said in refused.err and len(refused.err.splitlines()) == 1
