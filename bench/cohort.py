"""Makes the centres of `toolcrib/retrieval/cohort.py` from the texts of many real tools.

    python -m bench.cohort TOOLS.jsonl OUT.npz

Each line of TOOLS is `{"name", "description", "params"}`. Spherical k-means over their vectors; only the centres are
kept, as whole numbers. Run it again whenever the table of word vectors changes.
"""

import json
import sys
from pathlib import Path

import numpy as np

from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.cohort import table_mark
from toolcrib.retrieval.semantic import StaticModel, unit

CENTRES = 1_000
ROUNDS = 8
BLOCK = 2_000


def main(source: Path, target: Path) -> None:
    model = StaticModel.load()
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
    vectors = unit(model.embed_documents(documents))
    rng = np.random.default_rng(0)
    centres = vectors[rng.choice(len(vectors), CENTRES, replace=False)]
    for _ in range(ROUNDS):
        nearest = np.concatenate(
            [(vectors[at : at + BLOCK] @ centres.T).argmax(axis=1) for at in range(0, len(vectors), BLOCK)]
        )
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, vectors)
        centres = unit(sums)
    codes = np.rint(centres * (127.0 / np.abs(centres).max(axis=1, keepdims=True).clip(1e-9))).astype(np.int8)
    np.savez_compressed(target, codes=codes, version=np.frombuffer(table_mark(model).encode(), dtype=np.uint8))
    print(f"{len(documents)} tools, {len(codes)} centres, table {model.version}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
