"""Fits `toolcrib/retrieval/confidence.py` on development sets, and says how well it abstains.

    python -m bench.calibration DIRECTORY [OWN_TOOLS OWN_QUERIES]

DIRECTORY holds one folder per set with `tools.jsonl` and `queries.jsonl`. Answerable queries are those of the sets.
Absent abilities are probed in two ways: a query of a foreign set (`foreign`), and a query whose right tools, with
everything that resembles them, are taken out of the catalog (`removed`; some of these can still be answered by
what remains, so its figure is a lower bound). For several floors of `fits` it prints how many queries of each kind
would be answered with nothing.
"""

import random
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.evals.corpus import Query, read_queries, read_tools
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.confidence import Calibration, Signals
from toolcrib.retrieval.hybrid import HybridIndex, HybridRetriever
from toolcrib.retrieval.semantic import StaticModel, unit

PER_SET = 120
FOREIGN = 80
REMOVED = 40
LARGEST = 5_000
EMPTIED = (0.005, 0.01, 0.015, 0.02)
NAMES = ("nearest", "elsewhere", "words", "lead")
Floats = NDArray[np.float64]


def signals(index: HybridIndex, text: str) -> list[float]:
    seen: Signals = index.signals(text)
    return [seen.nearest, seen.elsewhere, seen.words, seen.lead]


def probes(directory: Path) -> dict[str, list[tuple[list[float], bool]]]:
    rng = random.Random(7)
    model = StaticModel.load()
    sets = {path.name: path for path in sorted(directory.iterdir()) if (path / "queries.jsonl").exists()}
    asked = {name: read_queries(path / "queries.jsonl") for name, path in sets.items()}
    found: dict[str, list[tuple[list[float], bool]]] = {"answerable": [], "foreign": [], "removed": []}
    for name, path in sets.items():
        documents = read_tools(path / "tools.jsonl")
        if len(documents) > LARGEST:
            continue
        retriever = HybridRetriever(load=lambda: model)
        index = retriever.index(documents)
        assert isinstance(index, HybridIndex)
        queries = [query for query in asked[name] if query.relevant]
        queries = rng.sample(queries, min(PER_SET, len(queries)))
        for query in queries:
            hits = index.search(query.text, limit=1).hits
            found["answerable"].append((signals(index, query.text), bool(hits) and hits[0].key in query.relevant))
        for query in queries[:REMOVED]:
            without = remaining(documents, query, model)
            if without:
                less = HybridRetriever(load=lambda: model).index(without)
                assert isinstance(less, HybridIndex)
                found["removed"].append((signals(less, query.text), False))
        others = [other for other in sets if other.split("_")[0] != name.split("_")[0] and len(asked[other]) < LARGEST]
        for _ in range(FOREIGN if len(documents) < 1_000 else 0):
            found["foreign"].append((signals(index, rng.choice(asked[rng.choice(others)]).text), False))
    return found


def remaining(documents: list[PlainDocument], query: Query, model: StaticModel) -> list[PlainDocument]:
    vectors = unit(model.embed_documents(documents))
    right = [place for place, document in enumerate(documents) if document.key in query.relevant]
    if not 0 < len(right) <= 2:
        return []
    alike = (vectors @ vectors[right].T).max(axis=1) > 0.6
    return [] if alike.sum() > len(documents) * 0.05 + len(right) else [
        document for document, gone in zip(documents, alike, strict=True) if not gone
    ]  # fmt: skip


def logistic(rows: Floats, right: Floats, *, ridge: float = 1e-3, rounds: int = 60) -> Floats:
    rows = np.c_[rows, np.ones(len(rows))]
    line = np.zeros(rows.shape[1])
    for _ in range(rounds):
        chance = 1.0 / (1.0 + np.exp(-np.clip(rows @ line, -30, 30)))
        slope = rows.T @ (chance - right) / len(rows) + ridge * line
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows / len(rows) + ridge * np.eye(len(line))
        line -= np.linalg.solve(curve, slope)
    return line


def show(label: str, line: Floats) -> None:
    print(label, " ".join(f"{name}={value:.2f}" for name, value in zip((*NAMES, "offset"), line, strict=True)))


def main(directory: Path, own: list[Path]) -> None:
    found = probes(directory)
    rows = {kind: np.array([row for row, _ in seen]) for kind, seen in found.items()}
    first = np.array([float(right) for _, right in found["answerable"]])
    absent = np.concatenate([rows["foreign"], rows["removed"]])
    everything = np.concatenate([rows["answerable"], absent])
    show("first_right", logistic(everything, np.concatenate([first, np.zeros(len(absent))])))
    fits = Calibration().fits
    value = {
        kind: np.array([fits.value(Signals(**dict(zip(NAMES, row, strict=True)))) for row, _ in seen])
        for kind, seen in found.items()
    }
    for floor in np.quantile(value["answerable"], EMPTIED):
        print(
            f"floor {floor:.3f}",
            *(f"{kind} {(seen < floor).mean():.1%} of {len(seen)}" for kind, seen in value.items()),
        )
    if own:
        check_own(own[0], own[1])


def check_own(tools: Path, queries: Path) -> None:
    index = HybridRetriever().index(read_tools(tools))
    assert isinstance(index, HybridIndex)
    calibration = Calibration()
    counts: dict[str, list[int]] = {}
    for query in read_queries(queries):
        seen = counts.setdefault(query.category, [0, 0])
        seen[0] += 1
        seen[1] += calibration.abstains(index.signals(query.text))
    for category, (asked, emptied) in sorted(counts.items()):
        print(f"own {category}: n={asked}, abstains on {emptied}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:4]])
