"""Measures what each rule of retrieval brings: the table of docs/research/retrieval.md.

    python -m bench.ablation DIRECTORY [--queries N] [--limit 10] [--sets]

DIRECTORY holds one folder per set with `tools.jsonl` and `queries.jsonl`. Each row switches one rule off and gives the
change of the macro mean (every set counts the same) against the whole, for lexical and for hybrid retrieval. With
`--queries N` at most N queries of each set are asked, evenly spread. With `--sets` only the whole is measured, set by set:
the figures to look at before and after a change.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from toolcrib.evals.corpus import Query, read_queries, read_tools
from toolcrib.evals.metrics import ndcg, recall
from toolcrib.retrieval.analysis import FieldWeights, default_weights
from toolcrib.retrieval.base import PlainDocument, Retriever, Settling
from toolcrib.retrieval.confidence import Calibration
from toolcrib.retrieval.fusion import FusionWeights
from toolcrib.retrieval.hybrid import HybridRetriever
from toolcrib.retrieval.lexical import LexicalRetriever
from toolcrib.retrieval.query import QueryWeights
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory

Sets = list[tuple[str, list[PlainDocument], list[Query]]]
Scores = tuple[float, float]


NEVER = Calibration().lowered(math.inf)
"""Never abstains."""


def without_field(name: str) -> FieldWeights:
    weights = default_weights()
    return replace(weights, fields={**weights.fields, name: replace(weights.fields[name], weight=1e-9)})


def lexical_rules() -> dict[str, Callable[[], LexicalRetriever]]:
    whole = QueryWeights()
    weights = default_weights()
    return {
        "(everything)": LexicalRetriever,
        "toolset field": lambda: LexicalRetriever(without_field("toolset")),
        "description field": lambda: LexicalRetriever(without_field("description")),
        "parameter names": lambda: LexicalRetriever(without_field("parameters")),
        "nested parameter text": lambda: LexicalRetriever(without_field("nested")),
        "name coverage": lambda: LexicalRetriever(replace(weights, coverage=0.0)),
        "length normalisation": lambda: LexicalRetriever(
            replace(weights, fields={name: replace(f, length_share=0.0) for name, f in weights.fields.items()})
        ),
        "word families": lambda: LexicalRetriever(query=replace(whole, variant=0.0)),
        "salience": lambda: LexicalRetriever(query=replace(whole, salience={})),
        "words written together": lambda: LexicalRetriever(query=replace(whole, joined=0.0)),
        "words taken apart": lambda: LexicalRetriever(query=replace(whole, parted=0.0)),
        "misspelt words": lambda: LexicalRetriever(query=replace(whole, misspelt=0.0)),
        "neighbours": lambda: LexicalRetriever(query=replace(whole, nearby=0.0)),
        "toolset fairness": lambda: LexicalRetriever(rival=math.inf),
    }


def hybrid_rules() -> dict[str, FusionWeights | Calibration]:
    return {
        "words": FusionWeights(words=0.0, words_alone=0.0),
        "meaning": FusionWeights(meaning=0.0, clauses=0.0, standing=0.0),
        "clauses": FusionWeights(clauses=0.0, standing=0.0),
        "gain of the best clause": FusionWeights(clauses=0.0),
        "standing in a clause": FusionWeights(standing=0.0),
        "piece by piece": FusionWeights(compared=1e-9),
        "courtesies left out": FusionWeights(courtesies=True),
        "read together": Calibration(clear=-math.inf),
        "abstention": NEVER,
    }


def read(directory: Path, most: int) -> Sets:
    sets: Sets = []
    for path in sorted(directory.iterdir()):
        if (path / "queries.jsonl").exists():
            queries = [query for query in read_queries(path / "queries.jsonl") if query.relevant]
            step = max(1, len(queries) // most) if most else 1
            sets.append((path.name, read_tools(path / "tools.jsonl"), queries[::step]))
    return sets


def macro(sets: Sets, make: Callable[[], Retriever], limit: int) -> tuple[Scores, dict[str, Scores]]:
    by_set: dict[str, Scores] = {}
    for name, documents, queries in sets:
        retriever = make()
        index = retriever.index(documents)
        if isinstance(retriever, Settling):
            retriever.settle()
        rows: list[Scores] = []
        for query in queries:
            found = [hit.key for hit in index.search(query.text, limit=limit).hits]
            rows.append((recall(found, query.relevant, 5), ndcg(found, query.relevant, 10)))
        by_set[name] = mean(rows)
    return mean(list(by_set.values())), by_set


def mean(rows: Sequence[Scores]) -> Scores:
    return sum(r for r, _ in rows) / len(rows), sum(n for _, n in rows) / len(rows)


def rules_table(sets: Sets, model: StaticModel, limit: int) -> None:
    """What is lost without each rule."""
    wholes: dict[str, Scores] = {}
    print("| without | lexical R@5 | NDCG@10 | hybrid R@5 | NDCG@10 |\n|---|---|---|---|---|")
    for rule, make in lexical_rules().items():
        cells: list[str] = []
        makers: dict[str, Callable[[], Retriever]] = {
            "lexical": make,
            "hybrid": lambda make=make: HybridRetriever(lexical=make(), load=lambda: model),
        }
        for kind, maker in makers.items():
            scores, _ = macro(sets, maker, limit)
            if kind not in wholes:
                wholes[kind] = scores
                cells += [f"{value:.4f}" for value in scores]
            else:
                cells += changes(scores, wholes[kind])
        print(f"| {rule} | {' | '.join(cells)} |", flush=True)
    for rule, change in hybrid_rules().items():
        weights = change if isinstance(change, FusionWeights) else None
        calibration = change if isinstance(change, Calibration) else None
        scores, _ = macro(
            sets,
            lambda w=weights, c=calibration: HybridRetriever(load=lambda: model, weights=w, calibration=c),
            limit,
        )
        print(f"| {rule} | | | {' | '.join(changes(scores, wholes['hybrid']))} |", flush=True)
    scores, _ = macro(sets, lambda: HybridRetriever(load=lambda: by_words(model)), limit)
    print(f"| queries and tools read as sentences | | | {' | '.join(changes(scores, wholes['hybrid']))} |", flush=True)
    scores, _ = macro(sets, lambda: HybridRetriever(load=lambda: replace(model, readings=None)), limit)
    print(f"| tools read as sentences | | | {' | '.join(changes(scores, wholes['hybrid']))} |", flush=True)


def by_words(model: StaticModel) -> StaticModel:
    """The model without what reads sentences."""
    return StaticModel(
        vocabulary=model.vocabulary, codes=model.codes, scales=model.scales, version=model.version, reader=None
    )


def changes(scores: Scores, whole: Scores) -> list[str]:
    return [f"{value - of:+.4f}" for value, of in zip(scores, whole, strict=True)]


def sets_table(sets: Sets, model: StaticModel, limit: int) -> None:
    """The whole, set by set: words alone, meaning alone, both, and both with abstention as it ships."""
    makers: tuple[Callable[[], Retriever], ...] = (
        LexicalRetriever,
        lambda: HybridRetriever(
            load=lambda: model, weights=FusionWeights(words=0.0, words_alone=0.0), calibration=NEVER
        ),
        lambda: HybridRetriever(load=lambda: model, calibration=NEVER),
        lambda: HybridRetriever(load=lambda: model),
    )
    measured = [macro(sets, make, limit) for make in makers]
    print(
        "| set | tools | queries | lexical | meaning | hybrid | hybrid that abstains |\n|---|---|---|---|---|---|---|"
    )
    for name, documents, queries in sets:
        cells = [f"{by_set[name][0]:.3f} / {by_set[name][1]:.3f}" for _, by_set in measured]
        print(f"| {name} | {len(documents)} | {len(queries)} | {' | '.join(cells)} |")
    means = [f"**{scores[0]:.3f} / {scores[1]:.3f}**" for scores, _ in measured]
    print(f"| **macro mean** | | | {' | '.join(means)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="one folder per set")
    parser.add_argument("--queries", type=int, default=0, help="queries of each set at most; all if not given")
    parser.add_argument("--limit", type=int, default=10, help="hits of a search")
    parser.add_argument("--sets", action="store_true", help="measure the whole, set by set")
    options = parser.parse_args()
    started = time.perf_counter()
    sets = read(options.directory, options.queries)
    asked = sum(len(queries) for _, _, queries in sets)
    print(f"{len(sets)} sets, {asked} queries, {sum(len(d) for _, d, _ in sets)} tools, limit {options.limit}\n")
    (sets_table if options.sets else rules_table)(
        sets, StaticModel.load(kept=cache_directory(os.environ)), options.limit
    )
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
