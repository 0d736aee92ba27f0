"""`--semantic` on the command line: what was applied is said, and what cannot be had is refused."""

import gc
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import Terminal
from tests.retrieval.test_reranker import Scripted

from toolcrib.evals import run
from toolcrib.retrieval import factory
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.lexical import LexicalIndex, LexicalRetriever
from toolcrib.retrieval.reranker import EmbeddingFailed

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


@pytest.mark.parametrize(("semantic", "mode"), [("static", "hybrid"), ("off", "lexical")])
def test_the_answer_says_what_was_applied(tools: Path, terminal: Terminal, semantic: str, mode: str) -> None:
    done = terminal.run("search", "weather forecast", "--tools", str(tools), "--semantic", semantic, "--json")
    assert json.loads(done.out)["retrieval"] == mode


@pytest.mark.requirement("X2")
def test_without_abstention_what_comes_nearest_is_shown_as_doubtful(tools: Path, terminal: Terminal) -> None:
    asked = ("search", "tune my grand piano before the concert", "--tools", str(tools))
    assert "Nothing among 3 tools fits." in terminal.run(*asked).out
    shown = terminal.run(*asked, "--abstention", "off").out
    assert shown.startswith("Perhaps none of these fits; they come nearest.")
    assert "get_forecast" in shown


@pytest.mark.requirement("X2")
def test_a_single_tool_that_does_not_fit_is_told_as_one(tools: Path, terminal: Terminal) -> None:
    tools.write_text(json.dumps(TOOLS[0]) + "\n")
    done = terminal.run("search", "tune my grand piano before the concert", "--tools", str(tools))
    assert done.out.startswith("The one tool does not fit.")


@pytest.mark.requirement("S24")
def test_a_reranker_that_had_no_part_in_an_answer_is_told(tools: Path, home: Path, terminal: Terminal) -> None:
    reranker = {"enabled": True, "endpoint": "http://127.0.0.1:9/v1/embeddings"}
    settings = home / "project" / "toolcrib.yaml"
    settings.write_text(
        json.dumps({"python": {"text": {"module": "textwrap"}}, "tools": {"tool_search": {"reranker": reranker}}})
    )
    done = terminal.run("search", "wrap a paragraph", "--config", str(settings))
    assert done.code == 0
    assert "toolcrib: The reranker had no part in this: " in done.err


@pytest.mark.requirement("X4")
def test_a_need_that_nothing_fits_is_named_beside_what_fits_the_other(tools: Path, terminal: Terminal) -> None:
    shown = terminal.run(
        "search", "weather forecast\ntune my grand piano before the concert", "--tools", str(tools)
    ).out
    assert shown.splitlines()[0] == "Nothing fits for: tune my grand piano before the concert"
    assert "get_forecast" in shown


@pytest.mark.requirement("X2", "X25")
def test_an_evaluation_can_be_asked_how_it_does_with_less_abstention(
    tools: Path, home: Path, terminal: Terminal
) -> None:
    queries = home / "queries.jsonl"
    queries.write_text(json.dumps({"query": "tune my grand piano before the concert", "relevant": []}))
    asked = ("eval", "--tools", str(tools), "--queries", str(queries), "--json")
    told = [terminal.run(*asked, *more).json["abstention"]["correct"] for more in ([], ["--abstention", "off"])]
    assert told == [1, 0]
    compared = terminal.run(*asked[:-1], "--abstention", "off", "--compare", "hybrid").out
    assert [line.split()[:2] for line in compared.splitlines() if "interval" in line] == [["off", "usual"]]


@pytest.mark.parametrize("command", [["search", "weather"], ["doctor"], ["config", "show"]])
def test_a_configuration_with_a_value_that_is_gone_is_told_what_to_use(
    home: Path, terminal: Terminal, command: list[str]
) -> None:
    (home / "project" / "toolcrib.yaml").write_text("tools: {tool_search: {semantic: onnx}}\n")
    done = terminal.run(*command)
    assert done.code == 2
    assert done.err.endswith("toolcrib.yaml: `tools.tool_search.semantic`: `onnx` is no longer there: use `static`.\n")
    assert len(done.err.splitlines()) == 1


def test_a_variable_with_a_value_that_is_gone_is_named(
    tools: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_TOOLS__TOOL_SEARCH__SEMANTIC", "onnx")
    done = terminal.run("search", "weather", "--tools", str(tools))
    assert done.code == 2
    assert "TOOLCRIB_TOOLS__TOOL_SEARCH__SEMANTIC: `tools.tool_search.semantic`: `onnx` is no longer there" in done.err


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


def test_a_search_keeps_what_it_read_of_tools(tools: Path, home: Path, terminal: Terminal) -> None:
    body = json.loads(terminal.run("search", "do I need an umbrella", "--tools", str(tools), "--json").out)
    assert body["matches"][0]["name"].endswith("get_forecast")
    gc.collect()  # a process that ends does as much
    kept = {path.name.split("-")[0]: path.stat().st_size for path in (home / "cache" / "toolcrib").iterdir()}
    assert kept == {"reader": 3 * 1_301}


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
