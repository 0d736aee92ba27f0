"""Makes the centres of abilities at large, the yardstick of abstention, from the texts of many real tools.

    python -m bench.cohort TOOLS.jsonl OUT.npz          for `toolcrib/retrieval/cohort.py`

Each line of TOOLS is `{"name", "description", "params"}`. Spherical k-means over their vectors; only the centres are
kept, as whole numbers. Run it again whenever the table of word vectors, the reader, or what it is told of a tool
changes.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory
from toolcrib.retrieval.vectors import unit

CENTRES = 3_000
ROUNDS = 8
BLOCK = 2_000
Floats = NDArray[np.float32]


def read(source: Path) -> list[PlainDocument]:
    documents: list[PlainDocument] = []
    with source.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            documents.append(
                PlainDocument(
                    key=str(number), digest=str(number), leaf=row["name"], toolset="",
                    description=row["description"] or "", parameters=tuple(map(str, row["params"])), nested="",
                )
            )  # fmt: skip
    return documents


def as_read(documents: list[PlainDocument], model: StaticModel) -> Floats:
    """By their words and as sentences."""
    index = model.index(documents)
    if model.readings is not None:
        model.readings.wait(float("inf"))
    return unit(index.codes)


def centres_of(vectors: Floats) -> NDArray[np.int8]:
    rng = np.random.default_rng(0)
    centres = vectors[rng.choice(len(vectors), CENTRES, replace=False)]
    for _ in range(ROUNDS):
        nearest = np.concatenate(
            [(vectors[at : at + BLOCK] @ centres.T).argmax(axis=1) for at in range(0, len(vectors), BLOCK)]
        )
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, vectors)
        centres = unit(sums)
    return np.rint(centres * (127.0 / np.abs(centres).max(axis=1, keepdims=True).clip(1e-9))).astype(np.int8)


def main(source: Path, target: Path) -> None:
    documents = read(source)
    model = StaticModel.load(kept=cache_directory(os.environ))
    np.savez_compressed(
        target,
        allow_pickle=False,
        codes=centres_of(as_read(documents, model)),
        words=centres_of(unit(model.embed_documents(documents))),
        version=np.frombuffer(model.mark.encode(), dtype=np.uint8),
    )
    print(f"{len(documents)} tools, {CENTRES} centres, {model.mark}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
