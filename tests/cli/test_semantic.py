"""`--semantic` on the command line: what was applied is said, and what cannot be had is refused."""

import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal

from toolcrib.retrieval.encoder import missing_packages

installed = pytest.mark.skipif(bool(missing_packages()), reason="the extra `onnx` is not installed")
TOOLS = [
    {"name": "get_forecast", "description": "Weather forecast for a city", "server": "sky"},
    {"name": "create_invoice", "description": "Create an invoice for a customer", "server": "billing"},
    {"name": "send_message", "description": "Send a message to a channel", "server": "chat"},
]


@pytest.fixture
def tools(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    path = home / "tools.jsonl"
    path.write_text("".join(json.dumps(tool) + "\n" for tool in TOOLS))
    return path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def found(wanted: str, package: str | None = None) -> ModuleSpec | None:
        return None if wanted == "onnxruntime" else find(wanted, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)


@pytest.mark.parametrize(("semantic", "mode"), [("static", "hybrid"), ("off", "lexical")])
def test_the_answer_says_what_was_applied(tools: Path, terminal: Terminal, semantic: str, mode: str) -> None:
    done = terminal.run("search", "weather forecast", "--tools", str(tools), "--semantic", semantic, "--json")
    assert json.loads(done.out)["retrieval"] == mode


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("command", [["search", "weather"], ["eval"]])
def test_without_the_extra_the_encoder_is_refused_in_one_sentence(
    tools: Path, terminal: Terminal, command: list[str]
) -> None:
    done = terminal.run(*command, "--tools", str(tools), "--semantic", "onnx")
    assert done.code == 2
    assert "needs onnxruntime, not installed here: `pip install 'toolcrib[onnx]'`" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.usefixtures("bare")
def test_doctor_names_the_missing_extra_and_the_next_step(tools: Path, home: Path, terminal: Terminal) -> None:
    (home / "project" / "toolcrib.yaml").write_text("tools: {tool_search: {semantic: onnx}}\n")
    done = terminal.run("doctor", "--json")
    report = json.loads(done.out)
    (check,) = [check for check in report["checks"] if check["section"] == "retrieval"]
    assert (done.code, check["state"], report["retrieval"]) == (1, "wrong", "hybrid")
    assert "needs onnxruntime" in check["text"]
    assert "semantic: static" in check["action"]


@installed
@pytest.mark.slow
def test_the_real_encoder_answers_and_keeps_its_vectors(tools: Path, home: Path, terminal: Terminal) -> None:
    asked = ("search", "do I need an umbrella", "--tools", str(tools), "--semantic", "onnx", "--json", "--explain")
    body = json.loads(terminal.run(*asked).out)
    assert body["retrieval"] == "hybrid+onnx"
    assert body["matches"][0]["name"].endswith("get_forecast")
    assert body["matches"][0]["evidence"]["encoder"] > 0.05
    (kept,) = (home / "cache" / "toolcrib").iterdir()
    assert kept.stat().st_size == 3 * 404


@installed
def test_doctor_says_that_every_tool_has_its_vector(tools: Path, home: Path, terminal: Terminal) -> None:
    (home / "project" / "toolcrib.yaml").write_text("tools: {tool_search: {semantic: onnx}}\n")
    report = json.loads(terminal.run("doctor", "--json").out)
    assert report["retrieval"] == "hybrid+onnx"
