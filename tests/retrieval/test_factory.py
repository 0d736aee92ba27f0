"""The retriever that the settings ask for."""

from pathlib import Path

import pytest
from tests.retrieval.documents import document

from toolcrib.retrieval.base import Retriever
from toolcrib.retrieval.factory import RerankedRetriever, build_retriever, fills_of
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.settings import RerankerSettings, ToolSearchSettings


def built(settings: ToolSearchSettings, cache: Path) -> Retriever:
    return build_retriever(settings, clock=lambda: 0.0, environ={"XDG_CACHE_HOME": str(cache)})


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (ToolSearchSettings(), HybridRetriever),
        (ToolSearchSettings(semantic="off"), LexicalRetriever),
        (ToolSearchSettings(retrieval="lexical"), LexicalRetriever),
        (ToolSearchSettings(reranker=RerankerSettings(enabled=True)), RerankedRetriever),
    ],
)
def test_the_settings_choose_the_retriever(settings: ToolSearchSettings, kind: type, tmp_path: Path):
    assert type(built(settings, tmp_path)) is kind


def test_vectors_in_the_making_are_known_below_a_reranker_too(tmp_path: Path):
    reranked = built(ToolSearchSettings(reranker=RerankerSettings(enabled=True)), tmp_path)
    assert isinstance(reranked, RerankedRetriever)
    assert fills_of(reranked) == ()
    reranked.inner.index([document("send_message", "Send a message")])
    (fill,) = fills_of(reranked)
    assert fill.state.settled
    assert fills_of(LexicalRetriever()) == ()
