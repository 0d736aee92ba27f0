"""Puts the retriever together that the settings ask for.

An embeddings endpoint is filled in the background: until every tool has a vector, and whenever the endpoint fails,
the index below answers and says so.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from threading import Thread

from toolcrib.errors import ConfigError
from toolcrib.retrieval.base import Document, Index, Retriever
from toolcrib.retrieval.embedding_http import EmbeddingEndpoint, HttpEmbedder
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.reranker import RerankedIndex, Reranker, RerankerSettings
from toolcrib.settings import ToolSearchSettings

KEY_VARIABLE = "TOOLCRIB_EMBED_API_KEY"
"""The endpoint's key comes from the environment and from nowhere else (S24)."""

PREPARE_BUDGET_S = 30.0
"""Seconds that one batch of tool vectors may take; nobody waits for it."""

logger = logging.getLogger("toolcrib")


class RerankedRetriever:
    """Builds indexes whose best hits an endpoint puts in order."""

    def __init__(self, inner: Retriever, reranker: Reranker) -> None:
        self._inner = inner
        self.reranker = reranker

    def index(self, documents: Sequence[Document]) -> Index:
        """The index of these documents; their vectors are fetched in the background."""
        Thread(target=self._prepare, args=(tuple(documents),), daemon=True, name="toolcrib-vectors").start()
        return RerankedIndex(
            inner=self._inner.index(documents),
            documents={document.key: document for document in documents},
            reranker=self.reranker,
            report=logger.warning,
        )

    def _prepare(self, documents: tuple[Document, ...]) -> None:
        self.reranker.prepare(documents, budget_s=PREPARE_BUDGET_S)


def build_retriever(
    settings: ToolSearchSettings, *, clock: Callable[[], float], environ: Mapping[str, str]
) -> Retriever:
    """The retriever of the settings. Raises `ConfigError` for an endpoint that is no address."""
    inner: Retriever = LexicalRetriever() if settings.retrieval == "lexical" else HybridRetriever()
    if not settings.reranker.enabled:
        return inner
    embedder = open_embedder(endpoint_of(settings, environ))
    reranker = Reranker(
        embedder, clock=clock, report=logger.warning, settings=RerankerSettings(mode=settings.reranker.mode)
    )
    return RerankedRetriever(inner, reranker)


def endpoint_of(settings: ToolSearchSettings, environ: Mapping[str, str]) -> EmbeddingEndpoint:
    """The endpoint that the settings name."""
    return EmbeddingEndpoint(
        url=settings.reranker.endpoint, model=settings.reranker.model, key=environ.get(KEY_VARIABLE)
    )


def open_embedder(endpoint: EmbeddingEndpoint) -> HttpEmbedder:
    """What asks the endpoint. Raises `ConfigError` if it is no address."""
    try:
        return HttpEmbedder(endpoint)
    except ValueError as error:
        raise ConfigError(f"`tools.tool_search.reranker.endpoint`: {error}.") from None
