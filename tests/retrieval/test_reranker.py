"""An embeddings endpoint on top of an index: used when it answers well, left alone when it does not."""

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.documents import document

from toolcrib.limits import EMBEDDING_BREAKER_FAILURES, EMBEDDING_BREAKER_S, EMBEDDING_REPORT_EVERY_S
from toolcrib.retrieval import reranker as reranker_module
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.embedding_http import EmbeddingEndpoint, HttpEmbedder
from toolcrib.retrieval.factory import RerankedRetriever
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
        self.dimensions = 2
        self.of_queries = 0
        """Dimensions of queries alone, if they have others."""

    def embed(self, texts: Sequence[str], *, budget_s: float) -> list[list[float]]:
        self.calls.append(list(texts))
        if self.failure is not None:
            raise self.failure
        rest = [0.0] * ((self.of_queries if "search_query" in texts[0] and self.of_queries else self.dimensions) - 2)
        near = [self.word in text or "search_query" in text for text in texts]
        return [[*((1.0, 0.0) if each else (0.2, 1.0)), *rest] for each in near]


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
def test_without_the_endpoint_each_toolset_has_its_share_of_the_places_that_were_asked_for():
    tools = [document(f"list_{n}", "List things", toolset="one") for n in range(8)]
    tools += [document(f"list_{n}", "List other things now", toolset="two") for n in range(8, 12)]
    inner = LexicalRetriever().index(tools)
    endpoint = Scripted()
    endpoint.failure = EmbeddingFailed("down")
    reranker = Reranker(endpoint, clock=lambda: 0.0, report=lambda _: None)
    index = RerankedIndex(inner=inner, documents={tool.key: tool for tool in tools}, reranker=reranker)
    found, usual = index.search("list things", limit=4), inner.search("list things", limit=4)
    assert found.hits == usual.hits
    assert found.mode == "lexical (endpoint unavailable)"
    assert inner.search("list things", limit=50).hits[:4] != usual.hits


@pytest.mark.requirement("S24")
def test_an_endpoint_whose_model_changed_is_counted_and_asked_for_the_tools_anew():
    endpoint, begun, now = Scripted(), list[Callable[[], None]](), [0.0]
    reports: list[str] = []
    reranker = Reranker(endpoint, clock=lambda: now[0], report=reports.append)
    index = RerankedRetriever(LexicalRetriever(), reranker, begin=begun.append).index(TOOLS)
    begun.pop()()
    endpoint.dimensions = 3
    assert index.search("file stuff", limit=3).mode == "lexical (endpoint unavailable)"
    assert reranker.state.failures == 1 and "a query has 3 dimensions, tools have 2" in reports[0]
    assert index.search("file stuff", limit=3).mode == "lexical (endpoint unavailable)"
    begun.pop()()
    assert index.search("file stuff", limit=3).mode == "lexical+rerank"


@pytest.mark.requirement("S24", "D4")
def test_an_endpoint_that_never_agrees_with_itself_is_not_asked_for_all_tools_at_every_search():
    endpoint, begun, now = Scripted(), list[Callable[[], None]](), [0.0]
    reranker = Reranker(endpoint, clock=lambda: now[0], report=lambda _: None)
    index = RerankedRetriever(LexicalRetriever(), reranker, begin=begun.append).index(TOOLS)
    endpoint.of_queries = 3
    for _ in range(2 * EMBEDDING_BREAKER_FAILURES):
        while begun:
            begun.pop()()
        index.search("file stuff", limit=3)
    assert sum("search_document" in call[0] for call in endpoint.calls) == 2


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


@pytest.mark.requirement("S24", "D4")
def test_vectors_of_tools_that_an_endpoint_could_not_give_are_asked_for_again_when_it_is_back():
    endpoint, begun, now = Scripted(), list[Callable[[], None]](), [0.0]
    reranker = Reranker(endpoint, clock=lambda: now[0], report=lambda _: None)
    index = RerankedRetriever(LexicalRetriever(), reranker, begin=begun.append).index(TOOLS)

    def search() -> str:
        return index.search("file stuff", limit=3).mode

    endpoint.failure = EmbeddingFailed("down")
    for _ in range(EMBEDDING_BREAKER_FAILURES):
        assert search() == search() == "lexical (endpoint unavailable)"
        assert len(begun) == 1, "one at a time"
        begun.pop()()
    search()
    assert not begun, "an endpoint that keeps failing is left alone"
    endpoint.failure = None
    now[0] += EMBEDDING_BREAKER_S
    search()
    begun.pop()()
    assert search() == "lexical+rerank"
    assert not begun


@pytest.mark.requirement("S24")
def test_queries_that_run_out_of_time_do_not_end_the_fetching_of_vectors():
    setting = Setting()
    setting.reranker.prepare(TOOLS[:1], budget_s=1)
    setting.endpoint.failure = EmbeddingFailed("out of time")
    for _ in range(EMBEDDING_BREAKER_FAILURES):
        setting.reranker.nearness("file stuff", TOOLS[:1])
    assert setting.reranker.rests
    setting.endpoint.failure = None
    assert setting.reranker.prepare(TOOLS, budget_s=1)


@pytest.mark.requirement("S24")
def test_more_vectors_than_there_is_room_for_are_asked_for_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reranker_module, "EMBEDDING_CACHED_VECTORS", 2)
    endpoint, begun = Scripted(), list[Callable[[], None]]()
    reranker = Reranker(endpoint, clock=lambda: 0.0, report=lambda _: None)
    index = RerankedRetriever(LexicalRetriever(), reranker, begin=begun.append).index(TOOLS)
    begun.pop()()
    index.search("file stuff", limit=3)
    assert not begun


@pytest.mark.requirement("S24")
def test_tools_that_are_still_there_are_not_dropped_for_new_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reranker_module, "EMBEDDING_CACHED_VECTORS", 4)
    reranker = Reranker(Scripted(), clock=lambda: 0.0, report=lambda _: None)
    for generation in range(4):
        tools = (*TOOLS, document(f"tool_{generation}", f"Tool {generation}"))
        assert reranker.prepare(tools, budget_s=1)
        assert reranker.holds(tools)


@pytest.mark.requirement("S24")
def test_a_catalog_larger_than_there_is_room_for_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reranker_module, "EMBEDDING_CACHED_VECTORS", 2)
    reports: list[str] = []
    reranker = Reranker(Scripted(), clock=lambda: 0.0, report=reports.append)
    reranker.prepare(TOOLS, budget_s=1)
    assert reports == ["there is room for the vectors of 2 of 3 tools"]


class Slow(Scripted):
    """An endpoint that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)
        self.answers = threading.Event()

    def embed(self, texts: Sequence[str], *, budget_s: float) -> list[list[float]]:
        self.asked.release()
        assert self.answers.wait(5)
        return super().embed(texts, budget_s=budget_s)


@pytest.mark.requirement("S24")
def test_what_two_indexes_share_is_sent_once_though_both_are_prepared_at_once():
    endpoint = Slow()
    reranker = Reranker(endpoint, clock=lambda: 0.0, report=lambda _: None)
    threads = [threading.Thread(target=reranker.prepare, args=(TOOLS,), kwargs={"budget_s": 1}) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert endpoint.asked.acquire(timeout=5)
    assert not endpoint.asked.acquire(timeout=0.2), "one at a time"
    endpoint.answers.set()
    for thread in threads:
        thread.join(5)
    assert len(endpoint.calls) == 1 and reranker.holds(TOOLS)


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


@pytest.mark.parametrize("name", ["file_report", "File Report"])
def test_a_name_is_never_reordered(name: str):
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    assert setting.keys(name)[0] == "file_report"


@pytest.mark.requirement("S24")
def test_words_that_one_tool_has_all_of_are_no_name():
    setting = Setting()
    setting.reranker.prepare(TOOLS, budget_s=1)
    ranking = setting.inner.search("remove", limit=3)
    assert ranking.confidence == 1.0
    assert setting.index.search("remove", limit=3).mode == "lexical+rerank"


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
        kind = {"versioned?api-version=7": "good"}.get(self.path.strip("/"), self.path.strip("/"))
        if kind == "redirect":
            self.send_response(307)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        if kind == "trickle":
            self.send_response(200)
            self.send_header("Content-Length", "500")
            self.end_headers()
            with suppress(OSError):
                for _ in range(500):
                    self.wfile.write(b" ")
                    time.sleep(0.01)
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
@pytest.mark.parametrize("path", ["good", "versioned?api-version=7"])
def test_the_client_asks_the_whole_address_and_reads_vectors_in_the_order_of_the_texts(address: str, path: str):
    client = HttpEmbedder(EmbeddingEndpoint(url=f"{address}/{path}", model="m", key="secret"))
    assert client.embed(["a", "b"], budget_s=60) == [[1.0, 0.0], [1.0, 1.0]]


@pytest.mark.requirement("D3", "D4")
@pytest.mark.parametrize("kind", ["redirect", "error", "nonsense"])
def test_redirects_errors_and_nonsense_are_refused(address: str, kind: str):
    client = HttpEmbedder(EmbeddingEndpoint(url=f"{address}/{kind}", model="m"))
    with pytest.raises(EmbeddingFailed):
        client.embed(["a"], budget_s=60)


@pytest.mark.requirement("D4")
def test_an_endpoint_whose_answer_trickles_holds_its_place_no_longer_than_it_may(address: str):
    client = HttpEmbedder(EmbeddingEndpoint(url=f"{address}/trickle", model="m"))
    with pytest.raises(EmbeddingFailed, match="out of time"):
        client.embed(["a"], budget_s=0.05)
    for thread in [thread for thread in threading.enumerate() if thread.name == "toolcrib-embedding"]:
        thread.join(2)
        assert not thread.is_alive()


@pytest.mark.requirement("D4")
def test_an_endpoint_that_hangs_keeps_no_process_alive():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = HttpEmbedder(EmbeddingEndpoint(url=f"http://127.0.0.1:{silent.getsockname()[1]}/", model="m"))
        with pytest.raises(EmbeddingFailed, match="out of time"):
            client.embed(["a"], budget_s=0.01)
        waiting = [thread for thread in threading.enumerate() if thread.name.startswith("toolcrib-embedding")]
        assert all(thread.daemon for thread in waiting)
    for thread in waiting:
        thread.join()


def test_the_key_appears_in_no_representation():
    assert "secret" not in repr(EmbeddingEndpoint(url="http://127.0.0.1/", model="m", key="secret"))
