"""Measures the sentence encoder of `semantic: onnx`: the tables of docs/retrieval.md.

    python -m bench.encoder DIRECTORY [--queries N]     each way of searching over the sets of DIRECTORY
    python -m bench.encoder --cost TOOLS.jsonl          CPU time of a start, a query and a tool

DIRECTORY holds one folder per set with `tools.jsonl` and `queries.jsonl`. Vectors are kept where `toolcrib` keeps them
(`XDG_CACHE_HOME`); the first run makes them, about 30 tools a second on one core. `--leave-one-out` chooses the two
weights anew for each set on the other sets, and gives the mean of what each set then gets; `--search-cost` gives the CPU
time of whole searches.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.ablation import Scores, Sets, macro, mean, read
from toolcrib.evals.corpus import read_tools
from toolcrib.retrieval import encoded
from toolcrib.retrieval.base import Retriever
from toolcrib.retrieval.encoded import EncodedRetriever
from toolcrib.retrieval.encoder import SentenceEncoder, document_text
from toolcrib.retrieval.factory import open_encoded
from toolcrib.retrieval.fusion import FusionWeights
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory

SHARES = (0.3, 0.4, 0.5, 0.6)
WORDS = (0.02, 0.03, 0.035)
QUERIES = ("send a message to a channel", "what will the weather be like in Lisbon at the weekend", "open a ticket")


def fill(retriever: EncodedRetriever, sets: Sets) -> None:
    for name, documents, _ in sets:
        started = time.perf_counter()
        retriever.index(documents)
        state = retriever.fill.wait(float("inf"))
        assert state.failure is None, state.failure
        print(f"{name}: {len(documents)} tools, {time.perf_counter() - started:.0f} s", flush=True)


def with_weights(retriever: EncodedRetriever, model: StaticModel, words: float) -> Callable[[], Retriever]:
    def make() -> Retriever:
        made = EncodedRetriever(retriever.fill, load=lambda: model)
        made._weights = FusionWeights(words=words, words_alone=words)
        return made

    return make


def tiers(sets: Sets, retriever: EncodedRetriever) -> None:
    model = StaticModel.load(kept=cache_directory(os.environ))
    ways: dict[str, Callable[[], Retriever]] = {
        "lexical": LexicalRetriever,
        "static": lambda: HybridRetriever(load=lambda: model, weights=FusionWeights(words=0.0, words_alone=0.0)),
        "hybrid": lambda: HybridRetriever(load=lambda: model),
        "hybrid+onnx": lambda: EncodedRetriever(retriever.fill, load=lambda: model),
    }
    found = {name: macro(sets, make, 10) for name, make in ways.items()}
    share, encoded.ENCODER_SHARE = encoded.ENCODER_SHARE, 1.0
    found["encoder"] = macro(sets, with_weights(retriever, model, 0.0), 10)
    encoded.ENCODER_SHARE = share
    order = ("lexical", "static", "encoder", "hybrid", "hybrid+onnx")
    print(f"\n| set | tools | queries | {' | '.join(order)} |\n|---|---|---|{'---|' * len(order)}")
    for name, documents, queries in sets:
        cells = " | ".join(cell(found[way][1][name]) for way in order)
        print(f"| {name} | {len(documents)} | {len(queries)} | {cells} |")
    print(f"| **macro mean** | | | {' | '.join(f'**{cell(found[way][0])}**' for way in order)} |")


def leave_one_out(sets: Sets, retriever: EncodedRetriever) -> None:
    model = StaticModel.load(kept=cache_directory(os.environ))
    by_choice: dict[tuple[float, float], dict[str, Scores]] = {}
    for share in SHARES:
        for words in WORDS:
            encoded.ENCODER_SHARE = share
            scores, by_choice[share, words] = macro(sets, with_weights(retriever, model, words), 10)
            print(f"encoder {share}, words {words}: {cell(scores)}", flush=True)
    left_out: list[Scores] = []
    for name, _, _ in sets:
        best = max(by_choice, key=lambda c: sum(sum(s) for other, s in by_choice[c].items() if other != name))
        left_out.append(by_choice[best][name])
    print(f"leave one out: {cell(mean(left_out))}")


def cost(path: Path) -> None:
    started = time.process_time(), time.perf_counter()
    encoder = SentenceEncoder.load()
    print(f"start {time.process_time() - started[0]:.2f} s CPU, {time.perf_counter() - started[1]:.2f} s")
    texts = [document_text(document) for document in read_tools(path)][:400]
    for kind, asked in (("query", [*QUERIES] * 30), ("tool", texts)):
        took: list[float] = []
        for text in asked:
            before = time.process_time()
            encoder.embed(text)
            took.append((time.process_time() - before) * 1_000)
        p50, p95 = np.percentile(took, [50, 95])
        print(f"{kind}: {p50:.1f} ms p50, {p95:.1f} ms p95, {1_000 * len(took) / sum(took):.0f} a second")


def search_cost(sets: Sets, retriever: EncodedRetriever) -> None:
    """CPU time of whole searches, each query new, with every vector there."""
    for name, documents, queries in sets:
        index = retriever.index(documents)
        took: list[float] = []
        for query in queries:
            before = time.process_time()
            index.search(query.text, limit=5)
            took.append((time.process_time() - before) * 1_000)
        p50, p95 = np.percentile(took, [50, 95])
        print(f"search {name}: {len(documents)} tools, {len(queries)} queries: {p50:.1f} ms p50, {p95:.1f} ms p95")


def cell(scores: Scores) -> str:
    return f"{scores[0]:.3f} / {scores[1]:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--queries", type=int, default=0)
    parser.add_argument("--leave-one-out", action="store_true")
    parser.add_argument("--search-cost", action="store_true")
    parser.add_argument("--cost", type=Path)
    options = parser.parse_args()
    if options.cost:
        cost(options.cost)
    if options.directory:
        sets = read(options.directory, options.queries)
        retriever = open_encoded(os.environ)
        fill(retriever, sets)
        way = leave_one_out if options.leave_one_out else search_cost if options.search_cost else tiers
        way(sets, retriever)


if __name__ == "__main__":
    main()
