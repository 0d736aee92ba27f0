"""Writes the joint reader that ships: weights rounded to eight bits. Its word pieces are those of the sentence reader.

Of several runs, each of which went on from the one before, it takes the mean of their weights: what ships is that of a run
that saw few judged lists and of one that saw many, and tells more than either.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from reader_export import rounded

from toolcrib.retrieval.semantic import StaticModel

_LAYERS, _APART = 6, 2


def main() -> None:
    """Reads the trained weights, writes the file of the model folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trained", type=Path, nargs="+", help="what joint.py wrote, of one run or of several")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    runs = [dict(np.load(path)) for path in options.trained]
    trained = {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}
    arrays = {"first.weight": trained["first.weight"], "first.shift": trained["first.bias"]}
    for layer in range(_LAYERS):
        for name in ("after_looking", "after_thinking"):
            arrays[f"{layer}.{name}.weight"] = trained[f"layers.{layer}.{name}.weight"]
            arrays[f"{layer}.{name}.shift"] = trained[f"layers.{layer}.{name}.bias"]
        for name in ("looks", "seen", "widens", "narrows"):
            codes, scales = rounded(trained[f"layers.{layer}.{name}.weight"].T, 0)
            arrays |= {f"{layer}.{name}.codes": codes, f"{layer}.{name}.scales": scales}
            arrays[f"{layer}.{name}.shift"] = trained[f"layers.{layer}.{name}.bias"]
    arrays["across"] = np.stack([trained[f"layers.{layer}.across"] for layer in range(_APART, _LAYERS)])
    arrays["side"] = trained["side"]
    arrays["thinks.weight"] = trained["thinks.weight"].T.astype(np.float16)
    arrays["thinks.shift"] = trained["thinks.bias"]
    arrays["last.weight"], arrays["last.shift"] = trained["last.weight"], trained["last.bias"]
    arrays["worth"], arrays["usual"] = trained["worth"], trained["usual"]
    reader = StaticModel.load().reader
    assert reader is not None
    arrays["meta"] = np.frombuffer(json.dumps({"format": 1, "reader": reader.mark}).encode(), dtype=np.uint8)
    np.savez(options.out, **arrays)
    print(f"{options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
