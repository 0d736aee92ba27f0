"""The retriever that the settings ask for."""

from pathlib import Path
from typing import get_args

import pytest
from tests.retrieval.documents import document

from toolcrib.evals.corpus import read_queries, read_tools
from toolcrib.retrieval.base import Retriever
from toolcrib.retrieval.factory import RerankedRetriever, build_retriever, fills_of
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.settings import Abstention, RerankerSettings, ToolSearchSettings


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


CORPUS = Path(__file__).resolve().parents[2] / "corpus"


@pytest.mark.requirement("X2")
def test_the_more_cautious_abstention_is_the_fewer_answers_are_empty_and_none_if_it_is_off(tmp_path: Path):
    tools = read_tools(CORPUS / "tools.jsonl")
    absent = [query.text for query in read_queries(CORPUS / "queries.jsonl") if not query.relevant]
    emptied: dict[str, int] = {}
    for level in get_args(Abstention):
        retriever = built(ToolSearchSettings(abstention=level), tmp_path)
        index = retriever.index(tools)
        assert isinstance(retriever, HybridRetriever)
        retriever.settle()
        found = [index.search(text, limit=5) for text in absent]
        emptied[level] = sum(ranking.abstained for ranking in found)
        if level == "off":
            assert sum(ranking.doubtful for ranking in found) > len(absent) / 2
    assert emptied["usual"] > emptied["cautious"] > emptied["off"] == 0
