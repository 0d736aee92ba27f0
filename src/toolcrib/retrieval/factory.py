"""Puts the retriever together that the settings ask for.

An embeddings endpoint is filled in the background: until every tool has a vector, and whenever the endpoint fails,
the index below answers and says so.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import TIMEOUT_MAX, Event, Lock, Thread

from toolcrib.errors import ConfigError
from toolcrib.retrieval.base import Document, Index, Retriever
from toolcrib.retrieval.confidence import Calibration
from toolcrib.retrieval.embedding_http import EmbeddingEndpoint, HttpEmbedder
from toolcrib.retrieval.filling import VectorFill
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.reranker import RerankedIndex, Reranker, RerankerSettings
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory
from toolcrib.settings import Abstention, SemanticTier, ToolSearchSettings

KEY_VARIABLE = "TOOLCRIB_EMBED_API_KEY"
"""The endpoint's key comes from the environment and from nowhere else (S24)."""

PREPARE_BUDGET_S = 30.0
"""Seconds that one batch of tool vectors may take; nobody waits for it."""

_LOWERED: Mapping[Abstention, float] = {"usual": 0.0, "cautious": 1.6, "off": math.inf}
"""How much lower the floors of abstention are. Cautious, 1.9 % of the answerable queries of eight real catalogs were
emptied and 83 % of what none of their servers is about, in place of 6.7 % and 97 % (`bench/real_catalogs`)."""

logger = logging.getLogger("toolcrib")


class EndpointFill:
    """The vectors of one index from an endpoint: fetched beside all else, again when asked until all are there."""

    def __init__(
        self,
        reranker: Reranker,
        documents: Sequence[Document],
        *,
        begin: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._reranker = reranker
        self._documents = tuple(documents)
        self._begin = begin if begin is not None else _in_background
        self._free = Lock()
        self._ended = Event()
        self._whole: int | None = None
        """In which round of the reranker all were there: then an endpoint is not asked for ever for more vectors than
        there is room for."""

    def start(self) -> None:
        """Fetches what is missing, unless that is under way or done."""
        if self._whole == self._reranker.rounds or not self._free.acquire(blocking=False):
            return
        self._ended.clear()
        try:
            self._begin(self._run)
        except RuntimeError as error:  # no thread to be had
            self._end()
            logger.warning("the vectors of tools cannot be fetched now: %s", error)

    def _run(self) -> None:
        rounds = self._reranker.rounds
        try:
            if self._reranker.prepare(self._documents, budget_s=PREPARE_BUDGET_S):
                self._whole = rounds
        finally:
            self._end()

    def _end(self) -> None:
        self._ended.set()  # before another may begin, whose end it would be taken for
        self._free.release()

    def wait(self, seconds: float) -> None:
        """Waits until what was begun has ended, well or not, or so long."""
        self._ended.wait(min(seconds, TIMEOUT_MAX))


def _in_background(run: Callable[[], None]) -> None:
    Thread(target=run, daemon=True, name="toolcrib-vectors").start()


class RerankedRetriever:
    """Builds indexes whose best hits an endpoint puts in order."""

    def __init__(
        self, inner: Retriever, reranker: Reranker, *, begin: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        self.inner = inner
        self.reranker = reranker
        self._begin = begin
        self._fill: EndpointFill | None = None

    def index(self, documents: Sequence[Document]) -> Index:
        """The index of these documents; their vectors are fetched in the background, again after a failure."""
        fill = self._fill = EndpointFill(self.reranker, documents, begin=self._begin)
        fill.start()
        return RerankedIndex(
            inner=self.inner.index(documents),
            documents={document.key: document for document in documents},
            reranker=self.reranker,
            fill=fill.start,
            report=logger.warning,
        )

    def wait(self, seconds: float) -> None:
        """Waits until the vectors of the newest index are there, or cannot be had, or so long."""
        if self._fill is not None:
            self._fill.wait(seconds)


def build_retriever(
    settings: ToolSearchSettings, *, clock: Callable[[], float], environ: Mapping[str, str]
) -> Retriever:
    """The retriever of the settings. Raises `ConfigError` if the endpoint of the reranker is no address."""
    inner = LexicalRetriever() if semantic_tier(settings) == "off" else open_static(environ, settings.abstention)
    if not settings.reranker.enabled:
        return inner
    embedder = open_embedder(endpoint_of(settings, environ))
    reranker = Reranker(
        embedder, clock=clock, report=logger.warning, settings=RerankerSettings(mode=settings.reranker.mode)
    )
    return RerankedRetriever(inner, reranker)


def semantic_tier(settings: ToolSearchSettings) -> SemanticTier:
    """What meaning really comes from: `retrieval: lexical` switches it off, whatever the model."""
    return "off" if settings.retrieval == "lexical" else settings.semantic


def open_static(environ: Mapping[str, str], abstention: Abstention = "usual") -> HybridRetriever:
    """The retriever with what ships in the package, the vectors of tools that were read kept in the user's cache."""
    load = partial(StaticModel.load, kept=cache_directory(environ))
    return HybridRetriever(load=load, calibration=Calibration().lowered(_LOWERED[abstention]))


def fills_of(retriever: Retriever) -> Sequence[VectorFill]:
    """The vectors that are made in the background for the indexes of a retriever."""
    inner = retriever.inner if isinstance(retriever, RerankedRetriever) else retriever
    return inner.fills if isinstance(inner, HybridRetriever) else ()


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
