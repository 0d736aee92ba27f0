"""Measures the shipped model on folders of tools.jsonl and queries.jsonl: alone, and fused with a plain BM25.

The BM25 here is a yardstick (k1 1.5, b 0.75, one field, stop words removed), not the package's lexical index.
Fusion: weight · BM25 / its best score + (1 - weight) · nearness between its mean (0) and its best (1).
"""

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from toolcrib.retrieval.base import Document, PlainDocument
from toolcrib.retrieval.semantic import StaticModel

_STOP = frozenset(
    "a an the of to in on for and or is are was were be been being i me my we our you your he she it its they them "
    "their this that these those with by from at as into about can could would should will shall may might must do "
    "does did have has had not no yes please help need want like get how what which who whom when where why if then "
    "than so such there here some any all each every other more most also just only very up out over under again am "
    "using use let us s t d ll re ve".split()
)


def name_words(name: str) -> str:
    """The words of an identifier."""
    apart = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name))
    return re.sub(r"[\W_]+", " ", apart).strip()


def terms(text: str) -> list[str]:
    """Lower-case words without stop words."""
    return [word for word in name_words(text).lower().split() if word not in _STOP]


def bm25(documents: list[Document], queries: list[str]) -> np.ndarray:
    """Scores, one row per query."""
    texts = [terms(f"{d.leaf} {d.description} {' '.join(d.inside().parameters)}") for d in documents]
    lengths = np.array([len(text) for text in texts], float)
    norm = 1.5 * (0.25 + 0.75 * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for at, text in enumerate(texts):
        for word, count in Counter(text).items():
            postings[word].append((at, count))
    scores = np.zeros((len(queries), len(documents)), np.float32)
    for row, query in enumerate(queries):
        for word in terms(query):
            if word in postings:
                places, counts = (np.array(part) for part in zip(*postings[word], strict=True))
                rarity = math.log(1 + (len(texts) - len(places) + 0.5) / (len(places) + 0.5))
                scores[row, places] += rarity * counts * 2.5 / (counts + norm[places])
    return scores


def fused(lexical: np.ndarray, near: np.ndarray, weight: float) -> np.ndarray:
    """Both on a scale from 0 to 1, added."""
    mean, best = near.mean(1, keepdims=True), near.max(1, keepdims=True)
    scaled = np.clip((near - mean) / np.maximum(best - mean, 1e-9), 0, 1)
    return weight * lexical / np.maximum(lexical.max(1, keepdims=True), 1e-9) + (1 - weight) * scaled


def measures(scores: np.ndarray, relevant: list[set[int]]) -> tuple[float, float]:
    """Mean R@5 and NDCG@10."""
    recall = gain = 0.0
    for row, right in zip(scores, relevant, strict=True):
        top = np.argsort(-row, kind="stable")[:10].tolist()
        recall += len(right & set(top[:5])) / len(right)
        ideal = sum(1 / math.log2(at + 2) for at in range(min(len(right), 10)))
        gain += sum(1 / math.log2(at + 2) for at, found in enumerate(top) if found in right) / ideal
    return recall / len(relevant), gain / len(relevant)


def read(folder: Path) -> tuple[list[Document], list[str], list[set[int]]]:
    """Documents, queries and the places of their right answers."""
    documents: list[Document] = []
    for at, line in enumerate((folder / "tools.jsonl").read_text("utf-8").splitlines()):
        tool = json.loads(line)
        schema = tool.get("parameters") or tool.get("inputSchema") or {}
        properties = schema.get("properties") if isinstance(schema, dict) else None
        documents.append(
            PlainDocument(
                key=tool["id"], digest=f"{folder.name}:{at}", leaf=tool["name"], toolset=tool.get("server") or "",
                description=tool.get("description") or "", parameters=tuple(properties or ()), nested="",
            )
        )  # fmt: skip
    places = {document.key: at for at, document in enumerate(documents)}
    queries: list[str] = []
    relevant: list[set[int]] = []
    for line in (folder / "queries.jsonl").read_text("utf-8").splitlines():
        query = json.loads(line)
        right = {places[key] for key in query["relevant"] if key in places}
        if right:
            queries.append(query["query"])
            relevant.append(right)
    return documents, queries, relevant


def wordllama_scores(documents: list[Document], queries: list[str]) -> np.ndarray:
    """The yardstick of static tables."""
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, dim=256, disable_download=True)
    texts = [f"{name_words(d.leaf)}. {d.description} {' '.join(d.inside().parameters)}"[:2000] for d in documents]
    return model.embed(queries, norm=True) @ model.embed(texts, norm=True).T


def main() -> None:
    """Prints one line per set and the macro mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, help="folder of folders")
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--weight", type=float, default=0.35, help="weight of BM25 in the fusion")
    parser.add_argument("--wordllama", action="store_true", help="measure wordllama too")
    options = parser.parse_args()
    model = StaticModel.load(options.model) if options.model else StaticModel.load()
    rows: dict[str, list[tuple[float, float]]] = {}
    for folder in sorted(path for path in options.sets.iterdir() if path.is_dir()):
        documents, queries, relevant = read(folder)
        index = model.index(documents)
        near = np.stack([index.scores(query) for query in queries])
        lexical = bm25(documents, queries)
        systems = [lexical, near, fused(lexical, near, options.weight)]
        if options.wordllama:
            other = wordllama_scores(documents, queries)
            systems += [other, fused(lexical, other, 0.4)]
        rows[folder.name] = [measures(scores, relevant) for scores in systems]
        print(folder.name, *(f"{r:.3f}/{g:.3f}" for r, g in rows[folder.name]), sep=" | ", flush=True)
    means = np.mean(np.array(list(rows.values())), axis=0)
    print("macro", *(f"{r:.4f}/{g:.4f}" for r, g in means), sep=" | ")


if __name__ == "__main__":
    main()
