"""Adds an embeddings endpoint of the operator's choice on top of an index (S24); off unless configured.

One call embeds the query; tool vectors are embedded once and kept by content hash. Whatever the endpoint
does (slow, down, wrong shape, NaN), the answer of the inner index stands: the failure is counted, reported
at most once a minute and visible in `Reranker.state`, never raised and never silent (D3, D4, D5).

The middle of this module is pure: the endpoint, the clock and the reporter are passed in. `embedding_http`
has the client that talks to a real endpoint. A `SecondStage` (a cross-encoder, say) may reorder the best
hits of any index in the same spirit.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Literal, Protocol

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from toolcrib.limits import (
    EMBEDDING_BATCH_TEXTS,
    EMBEDDING_BREAKER_FAILURES,
    EMBEDDING_BREAKER_S,
    EMBEDDING_CACHED_VECTORS,
    EMBEDDING_DOCUMENT_MAX_CHARS,
    EMBEDDING_QUERY_BUDGET_S,
    EMBEDDING_REPORT_EVERY_S,
    EMBEDDING_VECTOR_MAX_DIMENSIONS,
    QUERY_MAX_CHARS,
    RERANKED_MAX_HITS,
)
from toolcrib.retrieval.analysis import names_of
from toolcrib.retrieval.base import Document, Hit, Index, Ranking
from toolcrib.retrieval.text import normal_name

Floats = NDArray[np.float32]
Mode = Literal["rerank", "rrf"]
_NO_LENGTH = 1e-9


class EmbeddingFailed(Exception):
    """The endpoint did not give usable vectors; the text says why, without the key or the texts sent."""


class Embedder(Protocol):
    """Turns texts into vectors, within a time budget."""

    def embed(self, texts: Sequence[str], *, budget_s: float) -> Sequence[Sequence[float]]:
        """One vector per text.

        Raises:
            EmbeddingFailed: nothing usable came within the budget.
        """
        ...


class SecondStage(Protocol):
    """Reorders the best hits, as a cross-encoder does."""

    def reorder(self, query: str, documents: Sequence[Document]) -> Sequence[float]:
        """One score per document, higher is better. Any exception leaves the order as it was."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings:
    """How an endpoint is used."""

    mode: Mode = "rerank"
    query_prefix: str = "search_query: "
    document_prefix: str = "search_document: "
    rrf_k: float = 10.0
    """How fast a rank loses weight; 10 beat 60 in the field."""
    budget_s: float = EMBEDDING_QUERY_BUDGET_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerState:
    """What `doctor` shows."""

    calls: int = 0
    failures: int = 0
    last_failure: str | None = None
    open_until: float = -math.inf
    """Until then the endpoint is left alone."""
    failing: int = 0
    """Failures in a row."""


class Reranker:
    """The vectors of one endpoint, by content, and its breaker. One per endpoint; indexes may come and go."""

    __slots__ = (
        "_clock",
        "_embedder",
        "_forgot_at",
        "_lock",
        "_preparing",
        "_report",
        "_reported_at",
        "_settings",
        "_vectors",
        "rounds",
        "state",
    )

    def __init__(
        self,
        embedder: Embedder,
        *,
        clock: Callable[[], float],
        report: Callable[[str], None],
        settings: RerankerSettings | None = None,
    ) -> None:
        self._embedder = embedder
        self._clock = clock
        self._report = report
        self._settings = settings if settings is not None else RerankerSettings()
        self._vectors: dict[str, Floats] = {}
        self._reported_at = self._forgot_at = -math.inf
        self._lock = Lock()
        self._preparing = Lock()
        self.state = RerankerState()
        self.rounds = 0
        """How often all vectors were dropped, because the endpoint has another model."""

    @property
    def settings(self) -> RerankerSettings:
        """How the endpoint is used."""
        return self._settings

    def prepare(self, documents: Sequence[Document], *, budget_s: float) -> bool:
        """Embeds what is missing (call it off the loop); true when every document has a vector.

        Ends at the first batch that fails, whatever becomes of queries meanwhile: their time is shorter. One at a time:
        what two indexes share is sent once, and queries keep their way to the endpoint.
        """
        with self._preparing:
            missing = self._missing(documents[:EMBEDDING_CACHED_VECTORS])
            for start in range(0, len(missing), EMBEDDING_BATCH_TEXTS):
                batch = missing[start : start + EMBEDDING_BATCH_TEXTS]
                texts = [self._settings.document_prefix + document_text(document) for document in batch]
                vectors = self._embed(texts, budget_s)
                if vectors is None:
                    return False
                self._keep(batch, vectors)
        if len(documents) > EMBEDDING_CACHED_VECTORS:
            self._tell(f"there is room for the vectors of {EMBEDDING_CACHED_VECTORS:,} of {len(documents):,} tools")
        return True

    @property
    def rests(self) -> bool:
        """Whether the endpoint failed too often to be asked now."""
        return self._clock() < self.state.open_until

    def holds(self, documents: Sequence[Document]) -> bool:
        """Whether each of the documents has a vector."""
        return all(document.digest in self._vectors for document in documents)

    def nearness(self, query: str, documents: Sequence[Document]) -> dict[str, float] | None:
        """Cosine of each document that has a vector, by key; `None` without a vector of the query."""
        known = [(document, self._vectors.get(document.digest)) for document in documents]
        rows = [(document.key, vector) for document, vector in known if vector is not None]
        if not rows:
            return None
        text = self._settings.query_prefix + query[:QUERY_MAX_CHARS]
        sizes = {len(vector) for _, vector in rows}
        vectors = None if self.rests else self._embed([text], self._settings.budget_s, sizes)
        return None if vectors is None else {key: float(vector @ vectors[0]) for key, vector in rows}

    def _embed(self, texts: Sequence[str], budget_s: float, sizes: Collection[int] = ()) -> list[Floats] | None:
        """The vectors of texts, beside vectors of some sizes: if there is another among these, all are fetched anew."""
        try:
            vectors = checked_vectors(self._embedder.embed(texts, budget_s=budget_s), count=len(texts))
            if sizes and {len(vectors[0])} != sizes:
                self._forget()
                has = ", ".join(map(str, sorted(sizes)))
                raise EmbeddingFailed(f"a query has {len(vectors[0])} dimensions, tools have {has}")
        except EmbeddingFailed as error:
            self._failed(str(error))
            return None
        # The endpoint's client is the operator's own; a fault in it must not take search down.
        except Exception as error:
            self._failed(type(error).__name__)
            return None
        with self._lock:
            self.state = replace(self.state, calls=self.state.calls + 1, failing=0)
        return vectors

    def _failed(self, reason: str) -> None:
        now = self._clock()
        with self._lock:
            state = self.state
            failing = state.failing + 1
            broken = failing >= EMBEDDING_BREAKER_FAILURES
            self.state = replace(
                state,
                calls=state.calls + 1,
                failures=state.failures + 1,
                last_failure=reason,
                failing=failing,
                open_until=now + EMBEDDING_BREAKER_S if broken else state.open_until,
            )
        self._tell(f"the embeddings endpoint failed ({reason}); search answers without it")

    def _tell(self, what: str) -> None:
        """Reports something, if nothing was reported lately."""
        now = self._clock()
        with self._lock:
            due = now - self._reported_at >= EMBEDDING_REPORT_EVERY_S
            if due:
                self._reported_at = now
        if due:
            self._report(what)

    def _forget(self) -> None:
        """Drops what another model made. Not at every search: an endpoint that never agrees with itself is let be."""
        with self._lock:
            if self._clock() - self._forgot_at >= EMBEDDING_REPORT_EVERY_S:
                self._forgot_at = self._clock()
                self._vectors = {}
                self.rounds += 1

    def _missing(self, documents: Sequence[Document]) -> list[Document]:
        """The documents without a vector; those that have one are the last to be dropped from now on."""
        missing = [document for document in documents if document.digest not in self._vectors]
        if missing:
            with self._lock:
                for document in documents:
                    vector = self._vectors.pop(document.digest, None)
                    if vector is not None:
                        self._vectors[document.digest] = vector
        return missing

    def _keep(self, documents: Sequence[Document], vectors: Sequence[Floats]) -> None:
        with self._lock:
            for document, vector in zip(documents, vectors, strict=True):
                while len(self._vectors) >= EMBEDDING_CACHED_VECTORS:
                    del self._vectors[next(iter(self._vectors))]
                self._vectors[document.digest] = vector


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankedIndex:
    """An index whose best hits are ordered by an endpoint, a second stage, or both."""

    inner: Index
    documents: Mapping[str, Document]
    """By key."""
    reranker: Reranker | None = None
    second: SecondStage | None = None
    fill: Callable[[], None] = field(default=lambda: None)
    """Has the vectors fetched that are missing, and does not wait for them."""
    report: Callable[[str], None] = field(default=lambda _: None)

    def __len__(self) -> int:
        return len(self.inner)

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """Ranks as the inner index does, then reorders; falls back to the inner answer on any failure."""
        wide = ranking = self.inner.search(query, limit=max(limit, RERANKED_MAX_HITS), explain=explain)
        lacking = ""
        # A name is what was meant: nothing reorders that.
        if not (wide.abstained or not wide.hits or self._names(wide.read_as or query, wide.hits[0])):
            if self.reranker is not None:
                ranking = self._by_endpoint(self.reranker, query, wide)
                lacking = " (endpoint unavailable)" if ranking is wide else ""
            if self.second is not None:
                ranking = self._by_second_stage(self.second, query, ranking)
        if ranking is wide:
            # Toolsets had their shares of more places than were asked for.
            ranking = self.inner.search(query, limit=limit, explain=explain)
        return structs.replace(ranking, hits=ranking.hits[: max(0, limit)], mode=f"{ranking.mode}{lacking}")

    def _names(self, text: str, hit: Hit) -> bool:
        wanted = normal_name(text[:QUERY_MAX_CHARS])
        document = self.documents[hit.key]
        return bool(wanted) and wanted in map(normal_name, (*names_of(document), *document.aliases))

    def _by_endpoint(self, reranker: Reranker, query: str, ranking: Ranking) -> Ranking:
        documents = [self.documents[hit.key] for hit in ranking.hits]
        held = reranker.holds(documents)
        if not held and not reranker.rests:
            self.fill()
        nearness = reranker.nearness(query, documents) if held else None
        if nearness is None or len(nearness) < len(documents):
            return ranking
        order = sorted(ranking.hits, key=lambda hit: (-nearness[hit.key], hit.key))
        if reranker.settings.mode == "rrf":
            order = fuse_ranks(ranking.hits, order, k=reranker.settings.rrf_k)
        hits = tuple(
            structs.replace(hit, evidence={**hit.evidence, "endpoint": round(nearness[hit.key], 4)}) for hit in order
        )
        return structs.replace(ranking, hits=hits, mode=f"{ranking.mode}+{reranker.settings.mode}")

    def _by_second_stage(self, second: SecondStage, query: str, ranking: Ranking) -> Ranking:
        documents = [self.documents[hit.key] for hit in ranking.hits]
        try:
            scores = [float(score) for score in second.reorder(query, documents)]
        # The second stage is the operator's own code; a fault in it must not take search down.
        except Exception as error:
            self.report(f"the second stage failed ({type(error).__name__}); the order before it stands")
            return ranking
        if len(scores) != len(documents) or not all(map(math.isfinite, scores)):
            self.report("the second stage gave unusable scores; the order before it stands")
            return ranking
        pairs = sorted(zip(scores, ranking.hits, strict=True), key=lambda pair: (-pair[0], pair[1].key))
        hits = tuple(structs.replace(hit, evidence={**hit.evidence, "second_stage": score}) for score, hit in pairs)
        return structs.replace(ranking, hits=hits, mode=f"{ranking.mode}+second")


def fuse_ranks(first: Sequence[Hit], second: Sequence[Hit], *, k: float) -> list[Hit]:
    """Reciprocal rank fusion of two orders of the same hits."""
    worth: dict[str, float] = {}
    for order in (first, second):
        for rank, hit in enumerate(order):
            worth[hit.key] = worth.get(hit.key, 0.0) + 1.0 / (k + rank + 1)
    return sorted(first, key=lambda hit: (-worth[hit.key], hit.key))


def document_text(document: Document) -> str:
    """What an endpoint is told of a tool: its name and description, bounded."""
    return f"{document.leaf}: {document.description}"[:EMBEDDING_DOCUMENT_MAX_CHARS]


def checked_vectors(raw: Sequence[Sequence[float]], *, count: int) -> list[Floats]:
    """The vectors at length one.

    Raises:
        EmbeddingFailed: wrong number, wrong or uneven dimensions, a number that is not finite, or no length.
    """
    if len(raw) != count:
        raise EmbeddingFailed(f"{len(raw)} vectors for {count} texts")
    vectors: list[Floats] = []
    for row in raw:
        try:
            vector = np.asarray(row, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise EmbeddingFailed("a vector holds something other than numbers") from error
        if vector.ndim != 1 or not 1 <= len(vector) <= EMBEDDING_VECTOR_MAX_DIMENSIONS:
            raise EmbeddingFailed("a vector has an impossible shape")
        if vectors and len(vector) != len(vectors[0]):
            raise EmbeddingFailed("the vectors differ in dimension")
        largest = float(np.abs(vector).max()) if bool(np.isfinite(vector).all()) else math.nan
        if not largest > _NO_LENGTH:
            raise EmbeddingFailed("a vector is not finite or has no length")
        # By the largest first: the squares of huge numbers would overflow.
        scaled = vector / largest
        vectors.append((scaled / np.linalg.norm(scaled)).astype(np.float32))
    return vectors
