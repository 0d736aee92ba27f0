"""An embeddings endpoint on top of an index: used when it answers well, left alone when it does not."""

import json
import math
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.documents import document

from toolcrib.limits import EMBEDDING_BREAKER_FAILURES, EMBEDDING_BREAKER_S, EMBEDDING_REPORT_EVERY_S
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.embedding_http import EmbeddingEndpoint, HttpEmbedder
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.reranker import EmbeddingFailed, RerankedIndex, Reranker, RerankerSettings, checked_vectors

TOOLS = (
    document("remove_file", "Remove a file"),
    document("read_file", "Read a file"),
    document("file_report", "File a report"),
)
BY_KEY = {tool.key: tool for tool in TOOLS}


class Scripted:
    """An endpoint that finds the texts with a certain word nearest, or fails as told."""

    def __init__(self, word: str = "Read") -> None:
        self.word = word
        self.calls: list[list[str]] = []
        self.failure: Exception | None = None

    def embed(self, texts: Sequence[str], *, budget_s: float) -> list[list[float]]:
        self.calls.append(list(texts))
        if self.failure is not None:
            raise self.failure
        return [[1.0, 0.0] if self.word in text or "search_query" in text else [0.2, 1.0] for text in texts]


class Setting:
    """An index behind a scripted endpoint, with a clock that only moves when told."""

    def __init__(self, mode: str = "rerank") -> None:
        self.now = 0.0
        self.reports: list[str] = []
        self.endpoint = Scripted()
        self.reranker = Reranker(
            self.endpoint,
            clock=lambda: self.now,
            report=self.reports.append,
            settings=RerankerSettings(mode="rrf" if mode == "rrf" else "rerank"),
        )
        inner = LexicalRetriever().index(TOOLS)
        self.inner = inner
        self.index = RerankedIndex(inner=inner, documents=BY_KEY, reranker=self.reranker)

    def keys(self, query: str = "file stuff") -> list[str]:
        return [hit.key for hit in self.index.search(query, limit=3).hits]

    def lexical(self, query: str = "file stuff") -> list[str]:
        return [hit.key for hit in self.inner.search(query, limit=3).hits]


@pytest.mark.requirement("S24")
@pytest.mark.parametrize("mode", ["rerank", "rrf"])
def test_a_working_endpoint_reorders_with_one_call_per_query(mode: str):
    setting = Setting(mode)
    assert setting.reranker.prepare(TOOLS, budget_s=1)
    before = len(setting.endpoint.calls)
    ranking = setting.index.search("file stuff", limit=3)
    assert ranking.mode == f"lexical+{mode}"
    assert "endpoint" in ranking.hits[0].evidence
    assert len(setting.endpoint.calls) == before + 1
    if mode == "rerank":
        assert ranking.hits[0].key == "read_file"


@pytest.mark.requirement("S24")
def test_prefixes_are_sent_and_vectors_are_kept_by_content():
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    setting.reranker.prepare(TOOLS, budget_s=1)
    assert len(setting.endpoint.calls) == 1
    assert all(text.startswith("search_document: ") for text in setting.endpoint.calls[0])
    setting.keys()
    assert setting.endpoint.calls[-1] == ["search_query: file stuff"]


@pytest.mark.requirement("S24", "D4")
@pytest.mark.parametrize("failure", [EmbeddingFailed("out of time"), RuntimeError("bug"), OSError("down")])
def test_any_failure_leaves_the_lexical_answer_and_is_counted(failure: Exception):
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    setting.endpoint.failure = failure
    assert setting.keys() == setting.lexical()
    assert setting.reranker.state.failures == 1
    assert setting.reranker.state.last_failure


@pytest.mark.requirement("S24")
def test_failures_are_reported_at_most_once_a_minute():
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    setting.endpoint.failure = EmbeddingFailed("down")
    for _ in range(3):
        setting.keys()
    assert len(setting.reports) == 1
    setting.now += EMBEDDING_REPORT_EVERY_S
    setting.keys()
    assert len(setting.reports) == 2


@pytest.mark.requirement("D4")
def test_an_endpoint_that_keeps_failing_is_left_alone_and_tried_again_later():
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    setting.endpoint.failure = EmbeddingFailed("down")
    for _ in range(EMBEDDING_BREAKER_FAILURES + 5):
        setting.keys()
    assert len(setting.endpoint.calls) == 1 + EMBEDDING_BREAKER_FAILURES
    setting.now += EMBEDDING_BREAKER_S
    setting.endpoint.failure = None
    assert setting.keys()[0] == "read_file"


@pytest.mark.requirement("D3")
@given(
    st.lists(
        st.one_of(
            st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=4),
            st.just(["x"]),
            st.just([[1.0]]),
            st.just(None),
        ),
        max_size=3,
    )
)
def test_garbage_vectors_are_refused_or_have_length_one(raw: list[object]):
    try:
        vectors = checked_vectors(raw, count=2)
    except EmbeddingFailed:
        return
    assert len(vectors) == 2
    for vector in vectors:
        assert math.isclose(float((vector**2).sum()), 1.0, rel_tol=1e-3)


def test_a_name_is_never_reordered():
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    assert setting.keys("file_report")[0] == "file_report"


class Backwards:
    def reorder(self, query: str, documents: Sequence[Document]) -> list[float]:
        return [float(place) for place, _ in enumerate(documents)]


class Broken:
    def reorder(self, query: str, documents: Sequence[Document]) -> list[float]:
        raise RuntimeError


@pytest.mark.requirement("S24")
def test_a_second_stage_reorders_and_a_broken_one_changes_nothing():
    inner = LexicalRetriever().index(TOOLS)
    reports: list[str] = []
    plain = [hit.key for hit in inner.search("file stuff", limit=3).hits]
    backwards = RerankedIndex(inner=inner, documents=BY_KEY, second=Backwards())
    broken = RerankedIndex(inner=inner, documents=BY_KEY, second=Broken(), report=reports.append)
    assert [hit.key for hit in backwards.search("file stuff", limit=3).hits] == plain[::-1]
    assert [hit.key for hit in broken.search("file stuff", limit=3).hits] == plain
    assert len(reports) == 1


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        texts = json.loads(self.rfile.read(length))["input"]
        kind = self.path.strip("/")
        if kind == "redirect":
            self.send_response(307)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        rows = [{"index": place, "embedding": [1.0, float(place)]} for place, _ in enumerate(texts)]
        body = json.dumps({"data": rows[::-1]}).encode() if kind == "good" else b'{"data": 7}'
        self.send_response(500 if kind == "error" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object):
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.requirement("S24")
def test_the_client_reads_vectors_in_the_order_of_the_texts(address: str):
    client = HttpEmbedder(EmbeddingEndpoint(url=f"{address}/good", model="m", key="secret"))
    assert client.embed(["a", "b"], budget_s=60) == [[1.0, 0.0], [1.0, 1.0]]
    client.close()


@pytest.mark.requirement("D3", "D4")
@pytest.mark.parametrize("kind", ["redirect", "error", "nonsense"])
def test_redirects_errors_and_nonsense_are_refused(address: str, kind: str):
    client = HttpEmbedder(EmbeddingEndpoint(url=f"{address}/{kind}", model="m"))
    with pytest.raises(EmbeddingFailed):
        client.embed(["a"], budget_s=60)
    client.close()


def test_the_key_appears_in_no_representation():
    assert "secret" not in repr(EmbeddingEndpoint(url="http://127.0.0.1/", model="m", key="secret"))
