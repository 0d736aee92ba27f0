"""Makes the abilities at large, the yardstick of abstention, for `toolcrib/retrieval/cohort.py`.

    python -m bench.cohort TOOLS.jsonl OUT.npz

Each line of TOOLS is `{"name", "description", "params"}`, a real tool. To these come the abilities of
`training/abilities.tsv.gz` and the tools of the invented servers of `training/servers.txt.gz`, written for this project:
what tools of any kind could do, far beyond what the tools at hand do. As sentences, all of them count that are not nearly
alike one before, of the invented ones those that are not much alike; by their words alone, centres of the real tools
(spherical k-means). Only vectors are kept, as whole numbers. Run it again whenever the table of word vectors, the
reader, or what it is told of a tool changes.
"""

import argparse
import csv
import gzip
import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from training.servers import invented_servers

from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vector_file import cache_directory
from toolcrib.retrieval.vectors import unit, whole

WRITTEN = Path(__file__).parents[1] / "training" / "abilities.tsv.gz"
ALIKE, INVENTED_ALIKE = 0.8, 0.72
"""Cosine of two abilities from which on one stands for both; of a tool of an invented server and any other. With all of
these that are below 0.8 an answer is emptied less surely: whatever is asked, some ability elsewhere is as near by chance."""
CENTRES = 3_000
ROUNDS = 8
BLOCK = 2_000
Floats = NDArray[np.float32]


def document(number: int, name: str, description: str, parameters: tuple[str, ...] = ()) -> PlainDocument:
    return PlainDocument(
        key=str(number), digest=str(number), leaf=name, toolset="", description=description, parameters=parameters, nested=""
    )  # fmt: skip


def real_tools(source: Path, first: int) -> list[PlainDocument]:
    with source.open(encoding="utf-8") as lines:
        return [
            document(number, row["name"], row["description"] or "", tuple(map(str, row["params"])))
            for number, row in enumerate(map(json.loads, lines), first)
        ]


def written_abilities(source: Path = WRITTEN) -> list[PlainDocument]:
    with gzip.open(source, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [document(number, name, description) for number, (name, description) in enumerate(lines)]


def invented_tools(first: int) -> list[PlainDocument]:
    tools = (tool for server in invented_servers() for tool in server.tools)
    return [document(number, *tool) for number, tool in enumerate(dict.fromkeys(tools), first)]


def as_read(documents: list[PlainDocument], model: StaticModel) -> Floats:
    """By their words and as sentences."""
    index = model.index(documents)
    if model.readings is not None:
        model.readings.wait(float("inf"))
    return unit(index.codes)


def unlike(vectors: Floats, alike: float, before: Floats | None = None) -> Floats:
    """Those that are not nearly alike one before, behind those that stood there already."""
    count = 0 if before is None else len(before)
    kept = np.empty((count + len(vectors), vectors.shape[1]), dtype=np.float32)
    if before is not None:
        kept[:count] = before
    for at in range(0, len(vectors), BLOCK):
        block, known = vectors[at : at + BLOCK], count
        nearest = (block @ kept[:known].T).max(axis=1, initial=-1.0)
        for vector in block[nearest < alike]:
            if count == known or float((kept[known:count] @ vector).max()) < alike:
                kept[count] = vector
                count += 1
    return kept[:count]


def centres_of(vectors: Floats) -> Floats:
    rng = np.random.default_rng(0)
    centres = vectors[rng.choice(len(vectors), CENTRES, replace=False)]
    for _ in range(ROUNDS):
        nearest = np.concatenate(
            [(vectors[at : at + BLOCK] @ centres.T).argmax(axis=1) for at in range(0, len(vectors), BLOCK)]
        )
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, vectors)
        centres = unit(sums)
    return centres


def make(source: Path, target: Path) -> None:
    model = StaticModel.load(kept=cache_directory(os.environ))
    written = written_abilities()
    real = real_tools(source, len(written))
    invented = invented_tools(len(written) + len(real))
    read = unlike(as_read([*written, *real], model), ALIKE)
    read = unlike(as_read(invented, model), INVENTED_ALIKE, read)
    np.savez(  # unpacking would take longer than reading
        target,
        allow_pickle=False,
        read=whole(read),
        words=whole(centres_of(unit(model.embed_documents(real)))),
        version=np.frombuffer(model.mark.encode(), dtype=np.uint8),
    )
    print(
        f"{len(real)} tools, {len(written)} abilities and {len(invented)} invented tools, {len(read)} of them unlike; "
        f"{CENTRES} centres, {model.mark}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=Path, help="real tools, one a line")
    parser.add_argument("out", type=Path, help="the file to write")
    options = parser.parse_args()
    make(options.tools, options.out)


if __name__ == "__main__":
    main()
