"""`--semantic` on the command line: what was applied is said, and what cannot be had is refused."""

import gc
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import Terminal
from tests.retrieval.test_reranker import Scripted

from toolcrib.evals import run
from toolcrib.retrieval import factory
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.encoder import missing_packages
from toolcrib.retrieval.lexical import LexicalIndex, LexicalRetriever
from toolcrib.retrieval.reranker import EmbeddingFailed

installed = pytest.mark.skipif(bool(missing_packages()), reason="the extra `onnx` is not installed")
Configured = Callable[[dict[str, object]], tuple[str, ...]]
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


@pytest.fixture
def configured(home: Path) -> Configured:
    """What to type for an evaluation of a server, with this section of its configuration."""
    upstream = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
    servers = {"one": {"command": sys.executable, "args": [str(upstream), "--mode", "ok"]}}
    queries = home / "queries.jsonl"
    queries.write_text(json.dumps({"query": "returns its message", "relevant": ["one__echo"]}))

    def write(search: dict[str, object]) -> tuple[str, ...]:
        path = home / "servers.yaml"
        path.write_text(json.dumps({"mcpServers": servers, "tools": {"tool_search": search}}))
        return ("eval", "--config", str(path), "--queries", str(queries), "--json")

    return write


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(
    ("search", "options", "mode"),
    [
        ({}, [], "hybrid"),
        ({"retrieval": "lexical"}, [], "lexical"),
        ({"semantic": "off"}, [], "lexical"),
        ({"retrieval": "lexical"}, ["--retrieval", "hybrid"], "hybrid"),
        ({"retrieval": "lexical"}, ["--semantic", "static"], "hybrid"),
        ({"semantic": "off"}, ["--retrieval", "hybrid"], "hybrid"),
        ({}, ["--semantic", "off"], "lexical"),
        ({}, ["--retrieval", "lexical"], "lexical"),
    ],
)
def test_an_evaluation_searches_as_its_configuration_says_unless_the_command_line_says_otherwise(
    configured: Configured, terminal: Terminal, search: dict[str, object], options: list[str], mode: str
) -> None:
    assert terminal.run(*configured(search), *options).json["retrieval"] == mode


@pytest.mark.usefixtures("bare")
def test_an_evaluation_with_an_encoder_that_is_missing_is_refused_unless_the_command_line_wants_another(
    configured: Configured, terminal: Terminal
) -> None:
    asked = configured({"semantic": "onnx"})
    refused = terminal.run(*asked)
    assert (refused.code, "needs onnxruntime" in refused.err) == (2, True)
    assert terminal.run(*asked, "--semantic", "static").json["retrieval"] == "hybrid"


@pytest.mark.requirement("X25", "S24")
def test_an_evaluation_asks_the_reranker_of_its_configuration_and_does_not_pass_without_it(
    configured: Configured, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Scripted()
    monkeypatch.setattr(factory, "open_embedder", lambda address: endpoint)
    asked = configured({"reranker": {"enabled": True, "mode": "rrf"}})
    done = terminal.run(*asked, "--compare", "hybrid")
    assert (done.json["retrieval"], done.json["compared_with"]["retrieval"]) == ("hybrid+rrf", "hybrid")
    assert any("returns its message" in text for texts in endpoint.calls for text in texts)
    assert not done.err
    endpoint.failure = EmbeddingFailed("status 500: an error")
    refused = terminal.run(*asked)
    assert refused.code == 2
    assert "The reranker at localhost does not answer (status 500: an error)" in refused.err


@pytest.mark.requirement("X25", "D3")
def test_an_evaluation_says_if_the_reranker_fails_on_the_way(
    configured: Configured, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tired(Scripted):
        def embed(self, texts: Sequence[str], *, budget_s: float) -> list[list[float]]:
            self.failure = EmbeddingFailed("out of time") if "search_query" in texts[0] else None
            return super().embed(texts, budget_s=budget_s)

    monkeypatch.setattr(factory, "open_embedder", lambda address: Tired())
    done = terminal.run(*configured({"reranker": {"enabled": True}}))
    assert done.json["retrieval"] == "hybrid (endpoint unavailable)"
    assert done.err == "toolcrib: The reranker failed (out of time): some of these answers are without it.\n"


def test_an_evaluation_of_a_file_of_tools_goes_by_no_configuration(
    tools: Path, home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "project" / "toolcrib.yaml").write_text("tools: {tool_search: {retrieval: lexical}}\n")
    monkeypatch.setenv("TOOLCRIB_TOOLS__TOOL_SEARCH__RETRIEVAL", "lexical")
    assert terminal.run("eval", "--tools", str(tools), "--json").json["retrieval"] == "hybrid"


@installed
@pytest.mark.slow
def test_the_real_encoder_answers_and_keeps_its_vectors(tools: Path, home: Path, terminal: Terminal) -> None:
    asked = ("search", "do I need an umbrella", "--tools", str(tools), "--semantic", "onnx", "--json", "--explain")
    body = json.loads(terminal.run(*asked).out)
    assert body["retrieval"] == "hybrid+onnx"
    assert body["matches"][0]["name"].endswith("get_forecast")
    assert body["matches"][0]["evidence"]["encoder"] > 0.05
    gc.collect()  # a process that ends does as much
    kept = {path.name.split("-")[0]: path.stat().st_size for path in (home / "cache" / "toolcrib").iterdir()}
    assert kept == {"minilm": 3 * 404, "reader": 3 * 276}


@installed
def test_doctor_says_that_every_tool_has_its_vector(tools: Path, home: Path, terminal: Terminal) -> None:
    (home / "project" / "toolcrib.yaml").write_text("tools: {tool_search: {semantic: onnx}}\n")
    report = json.loads(terminal.run("doctor", "--json").out)
    assert report["retrieval"] == "hybrid+onnx"


@pytest.mark.requirement("X25")
@pytest.mark.parametrize("tier", ["off", "static"])
def test_an_evaluation_measures_the_build_of_an_index_that_nobody_has_made_before(
    tier: str, tools: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []
    before: list[int] = []
    index, evaluate = LexicalRetriever.index, run.evaluate

    def counted(self: LexicalRetriever, documents: Sequence[Document]) -> LexicalIndex:
        built.append(len(documents))
        return index(self, documents)

    def entered(*given: Any, **named: Any) -> run.Evaluation:
        before.append(len(built))
        return evaluate(*given, **named)

    monkeypatch.setattr(LexicalRetriever, "index", counted)
    monkeypatch.setattr(run, "evaluate", entered)
    assert terminal.run("eval", "--tools", str(tools), "--semantic", tier, "--json").json["n_tools"] == 3
    assert before == [0]
    assert built[0] == 3
