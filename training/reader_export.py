"""Writes the sentence reader that ships: weights rounded to eight bits, only the word pieces that English has."""

import argparse
import gzip
import json
import re
from pathlib import Path

import numpy as np

from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.wordpiece import PIECES_FILE

_ENGLISH = re.compile(r"^(##)?[a-z0-9]+$|^[!-/:-@\[-`{-~]$|^\[(CLS|SEP|UNK)\]$")


def rounded(weights: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers, and one scale for each column (axis 0) or row (axis 1)."""
    largest = np.maximum(np.abs(weights).max(axis=axis, keepdims=True), 1e-9)
    return np.rint(weights * (127 / largest)).astype(np.int8), (largest / 127).astype(np.float32).squeeze(axis)


def main() -> None:
    """Reads the trained weights, writes the file of the model folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trained", type=Path, nargs="+", help="trained weights; their mean is written")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--version", default="1")
    options = parser.parse_args()
    runs = [np.load(path) for path in options.trained]
    trained = {name: np.mean([run[name] for run in runs], axis=0, dtype=np.float64) for name in runs[0].files}
    pieces = gzip.decompress(PIECES_FILE.read_bytes()).decode().split("\n")
    kept = [number for number, piece in enumerate(pieces) if _ENGLISH.match(piece)]
    numbering = np.full(len(pieces), kept.index(pieces.index("[UNK]")), dtype=np.uint16)
    numbering[kept] = np.arange(len(kept))
    arrays: dict[str, np.ndarray] = {"numbering": numbering, "places": trained["places"].astype(np.float16)}
    arrays["codes"], arrays["scales"] = rounded(trained["pieces"][kept], 1)
    trained.setdefault("points.shift", np.zeros(trained["points.weight"].shape[1], np.float32))
    for name, weights in trained.items():
        if not name.endswith(".weight"):
            continue
        part = name.removesuffix(".weight")
        arrays[f"{part}.shift"] = trained[f"{part}.shift"].astype(np.float32)
        if weights.ndim == 1:
            arrays[name] = weights.astype(np.float32)
        else:
            arrays[f"{part}.codes"], arrays[f"{part}.scales"] = rounded(weights, 0)
    meta = {"format": 1, "version": options.version, "table": StaticModel.load().mark}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(options.out, **arrays)
    print(f"{len(kept):,} pieces, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
