"""Search with the index built: ours, the original's way, and peers from PyPI as far as they are installed."""

import os
import re
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any, cast

from bench import original
from bench.catalogs import definitions, queries
from bench.cribs import Servers
from bench.measure import Family, growth, percentile, run_family, short
from toolcrib.definitions import JsonObject
from toolcrib.retrieval.base import Document, PlainDocument
from toolcrib.retrieval.documents import documents_of
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever

_TOKENS = re.compile(r"[a-z0-9]+")
Search = Callable[[str], object]
Peer = Callable[[list[JsonObject], list[str]], Search]


def rank_bm25(tools: list[JsonObject], texts: list[str]) -> Search:
    from rank_bm25 import BM25Okapi  # pyright: ignore[reportMissingImports]

    index: Any = BM25Okapi([_TOKENS.findall(text.lower()) for text in texts])
    names = list(range(len(texts)))
    return lambda query: cast("object", index.get_top_n(_TOKENS.findall(query.lower()), names, n=5))


def bm25s(tools: list[JsonObject], texts: list[str]) -> Search:
    import bm25s as peer  # pyright: ignore[reportMissingImports]

    index: Any = peer.BM25()
    index.index([_TOKENS.findall(text.lower()) for text in texts], show_progress=False)
    count = min(5, len(texts))
    return lambda query: cast("object", index.retrieve([_TOKENS.findall(query.lower())], k=count, show_progress=False))


def tantivy(tools: list[JsonObject], texts: list[str]) -> Search:
    import tantivy as peer  # pyright: ignore[reportMissingImports]

    builder = peer.SchemaBuilder()
    builder.add_text_field("text", stored=False)
    builder.add_integer_field("row", stored=True)
    index: Any = peer.Index(builder.build())
    writer = index.writer(num_threads=1)
    for row, text in enumerate(texts):
        writer.add_document(peer.Document(text=text, row=row))
    writer.commit()
    index.reload()
    searcher: Any = index.searcher()
    return lambda query: cast("object", searcher.search(index.parse_query(query, ["text"]), 5).hits)


def fts5(tools: list[JsonObject], texts: list[str]) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE tools USING fts5(text)")
    database.executemany("INSERT INTO tools(text) VALUES (?)", ((text,) for text in texts))
    statement = "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT 5"
    return lambda query: database.execute(statement, (" OR ".join(_TOKENS.findall(query.lower())),)).fetchall()


def fastmcp(tools: list[JsonObject], texts: list[str]) -> Search:
    from fastmcp.server.transforms.search.bm25 import BM25SearchTransform  # pyright: ignore[reportMissingImports]

    light = [SimpleNamespace(**cast("dict[str, Any]", tool["function"])) for tool in tools]
    transform: Any = BM25SearchTransform()

    def search(query: str) -> object:
        try:
            transform._search(light, query).send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("the transform waited for something")

    search("first")
    return search


def pydantic_ai(tools: list[JsonObject], texts: list[str]) -> Search:
    from pydantic_ai.tools import ToolDefinition  # pyright: ignore[reportMissingImports]
    from pydantic_ai.toolsets._tool_search import ToolSearchToolset  # pyright: ignore[reportMissingImports]

    functions = [cast("dict[str, Any]", tool["function"]) for tool in tools]
    corpus: list[Any] = [ToolDefinition(name=each["name"], description=each["description"]) for each in functions]
    toolset: Any = ToolSearchToolset(wrapped=cast("Any", None))
    asked = SimpleNamespace(corpus=corpus, discovered_tool_names=set[str]())
    search: Search = lambda query: cast("object", toolset._run_keywords_search([query], asked))  # noqa: E731
    search("first")
    return search


def litellm(tools: list[JsonObject], texts: list[str]) -> Search:
    # The list of prices that comes with it, and not the one on a server.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm.proxy._experimental.mcp_server import tool_search  # pyright: ignore[reportMissingImports]

    functions = [cast("dict[str, Any]", tool["function"]) for tool in tools]
    light = [SimpleNamespace(**each, input_schema=each["parameters"]) for each in functions]
    return lambda query: cast("object", tool_search.search_tools(query, light, 5))


PEERS: dict[str, tuple[str, Peer, int]] = {
    "rank_bm25": ("rank-bm25", rank_bm25, 100_000),
    "bm25s": ("bm25s", bm25s, 100_000),
    "tantivy": ("tantivy", tantivy, 100_000),
    "FastMCP transform": ("fastmcp", fastmcp, 100_000),
    "Pydantic AI tool search": ("pydantic-ai-slim", pydantic_ai, 100_000),
    "LiteLLM tool search": ("litellm", litellm, 100_000),
    "SQLite FTS5": ("", fts5, 100_000),
}


def latency(search: Search, asked: Sequence[str]) -> tuple[float, float]:
    """Median and 95th percentile of CPU milliseconds; one query after the other, each asked once."""
    search(asked[0])
    took: list[float] = []
    for query in asked[1:]:
        started = time.process_time()
        search(query)
        took.append((time.process_time() - started) * 1000)
    return statistics.median(took), percentile(took, 0.95)


def ours(retriever: LexicalRetriever | HybridRetriever, documents: list[Document]) -> tuple[float, float, Search]:
    """Milliseconds of a build and of the index with one document changed, and the search."""
    # Of this thread alone: tools are read in another.
    started = time.thread_time()
    index = retriever.index(documents)
    built = time.thread_time()
    if isinstance(retriever, HybridRetriever):
        retriever.settle()
    middle = len(documents) // 2
    old = documents[middle]
    took: list[float] = []
    for turn in range(3):
        changed = PlainDocument(
            key=old.key, digest=f"{old.digest}'{turn}", leaf=old.leaf, toolset=old.toolset, description=f"Changed {turn}.",
            parameters=old.inside().parameters, nested=old.inside().nested,
        )  # fmt: skip
        amended = [*documents[:middle], changed, *documents[middle + 1 :]]
        again = time.thread_time()
        retriever.index(amended)
        took.append((time.thread_time() - again) * 1000)
    return (built - started) * 1000, statistics.median(took), lambda query: index.search(query, limit=5)


def measure(count: int) -> dict[str, tuple[float, float, float, float | None]]:
    """By engine: p50, p95, build, update of one document; all in milliseconds."""
    tools, asked = definitions(count), queries(201)
    original.REGISTRY.register(tools)
    texts = [original.text_of(tool) for tool in tools]
    documents = [document for toolset in Servers(tools).snapshot() for document in documents_of(toolset)]
    found: dict[str, tuple[float, float, float, float | None]] = {}
    for name, retriever in (("lexical", LexicalRetriever()), ("hybrid", HybridRetriever())):
        build, update, search = ours(retriever, documents)
        found[name] = (*latency(search, asked), build, update)
    started = time.process_time()
    scored = original.Scored(tools)
    build = (time.process_time() - started) * 1000
    found["original, catalog built"] = (*latency(scored.search, asked[: 41 if count <= 2_000 else 4]), build, None)
    for name, (package, make, most) in PEERS.items():
        if count > most or not _has(package):
            continue
        make(tools[:1], texts[:1])  # what has to be imported is no part of a build
        started = time.process_time()
        search = make(tools, texts)
        build = (time.process_time() - started) * 1000
        found[name] = (*latency(search, asked if count <= 2_000 else asked[:21]), build, None)
    return found


def _has(package: str) -> bool:
    try:
        return not package or bool(version(package))
    except PackageNotFoundError:
        return False


def report(sizes: Sequence[int]) -> Family:
    """The table of all sizes."""
    found = {count: measure(count) for count in sizes}
    engines = list(found[sizes[0]])
    lines = {name: {count: found[count][name][0] for count in sizes if name in found[count]} for name in engines}
    rows: list[list[str]] = []
    for name in engines:
        cells: list[str] = []
        for count in sizes:
            p50, p95, build, update = found[count][name]
            ratio = p50 / found[count]["lexical"][0]
            more = f", 1 changed {short(update)}" if update is not None else f" ({ratio:,.1f}×)"
            cells.append(f"{short(p50)} / {short(p95)}{more}; build {short(build)}")
        rows.append([name, *cells, growth(lines[name], 2_000, 100_000)])
    packages = [package for package, _, _ in PEERS.values() if package]
    installed = [f"{package} {version(package)}" for package in packages if _has(package)]
    lacking = [package for package in packages if not _has(package)]
    return Family(
        name="search",
        title="Search with the index built (CPU ms, p50 / p95; × is p50 against ours, lexical)",
        headings=["engine", *(f"{count:,}" for count in sizes), "growth 2,000 → 100,000"],
        rows=rows,
        lines=lines,
        notes=[
            f"Peers: {', '.join(installed) or 'none installed'}; SQLite {sqlite3.sqlite_version}.",
            *([f"Left out, because not installed here: {', '.join(lacking)}."] if lacking else []),
        ],
    )


if __name__ == "__main__":
    run_family("search")
