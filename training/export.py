"""Writes the files that ship: rotates the trained table, rounds it to eight bits, and packs the bridge.

The rotation changes no cosine; it orders the dimensions by how much they hold, so that a large index can look at
the leading ones first.
"""

import argparse
import json
from pathlib import Path

import numpy as np

_TARGETS = 3
_NO_ROW = 65_535


def rotated(table: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The table in the order of its principal axes, words weighted by how often tools use them."""
    weighted = table * np.sqrt(counts)[:, None]
    _, axes = np.linalg.eigh(weighted.T @ weighted)
    return table @ axes[:, ::-1]


def quantized(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers and one scale for each row."""
    largest = np.maximum(np.abs(table).max(axis=1), 1e-9)
    return np.rint(table * (127 / largest)[:, None]).astype(np.int8), (largest / 127).astype(np.float32)


def main() -> None:
    """Reads the work folder, writes the model folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="folder with vocabulary.json, counts.npy, bridge.json")
    parser.add_argument("tables", type=Path, nargs="+", help="trained tables (.npy); their mean is written")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--version", default="1")
    options = parser.parse_args()
    tokens: list[str] = json.loads((options.work / "vocabulary.json").read_text("utf-8"))
    bridge: dict[str, list[tuple[str, float]]] = json.loads((options.work / "bridge.json").read_text("utf-8"))
    table = np.mean([np.load(path) for path in options.tables], axis=0)
    counts = np.load(options.work / "counts.npy")
    # A foreign word that the bridge explains needs no row of its own.
    kept = [row for row, token in enumerate(tokens) if token not in bridge]
    place = {tokens[row]: new for new, row in enumerate(kept)}
    codes, scales = quantized(rotated(table, counts)[kept])
    text = "\n".join(tokens[row] for row in kept)
    meta = {"format": 1, "version": options.version, "dimensions": int(codes.shape[1])}
    options.out.mkdir(parents=True, exist_ok=True)
    np.savez(
        options.out / "table.npz",
        codes=codes,
        scales=scales,
        tokens=np.frombuffer(text.encode(), dtype=np.uint8),
        meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
    )
    words = sorted(word for word, found in bridge.items() if any(target in place for target, _ in found))
    rows = np.full((len(words), _TARGETS), _NO_ROW, dtype=np.uint16)
    weights = np.zeros((len(words), _TARGETS), dtype=np.uint8)
    for at, word in enumerate(words):
        found = [(place[target], near) for target, near in bridge[word] if target in place][:_TARGETS]
        shares = np.exp((np.array([near for _, near in found]) - found[0][1]) / 0.05)
        shares /= shares.sum()
        for slot, ((row, _), share) in enumerate(zip(found, shares, strict=True)):
            rows[at, slot], weights[at, slot] = row, max(1, round(255 * share))
    np.savez_compressed(
        options.out / "bridge.npz",
        words=np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
        rows=rows,
        weights=weights,
    )
    sizes = {path.name: path.stat().st_size for path in sorted(options.out.glob("*.npz"))}
    print(f"{len(kept):,} rows, {len(words):,} foreign words, bytes: {sizes}")


if __name__ == "__main__":
    main()
