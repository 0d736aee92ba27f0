"""Writes the words that are near to each word of the table: `model/neighbours.npz`.

    python training/neighbours.py OUT.npz

Whole words of letters only. A neighbour is a family of words (`retrieval/text.family`) other than the word's own, as near
as its nearest member; words that only hold a sentence together have none and are none. Run it again whenever the table
changes.
"""

import argparse
from pathlib import Path

import numpy as np

from toolcrib.limits import NEIGHBOURS_PER_WORD
from toolcrib.retrieval.cohort import table_mark
from toolcrib.retrieval.salience import GRAMMATICAL, salience_table
from toolcrib.retrieval.semantic import StaticModel, unit
from toolcrib.retrieval.text import family

_LEAST = 0.4
"""Cosine from which on two words may stand for each other."""
_LOOKED_AT = 24
_BLOCK = 500


def neighbours(words: list[str], vectors: np.ndarray) -> dict[str, dict[str, float]]:
    """For each word the families near to it, the nearest first."""
    salience = salience_table()
    families = [family(word) for word in words]
    telling = [salience.get(key, 1.0) > GRAMMATICAL for key in families]
    found: dict[str, dict[str, float]] = {}
    for start in range(0, len(words), _BLOCK):
        near = vectors[start : start + _BLOCK] @ vectors.T
        best = np.argpartition(-near, _LOOKED_AT, axis=1)[:, :_LOOKED_AT]
        for at, (scores, picked) in enumerate(zip(near, best, strict=True), start):
            kept: dict[str, float] = {}
            for other in sorted(picked.tolist(), key=lambda row: (-scores[row], words[row])):
                key = families[other]
                if scores[other] >= _LEAST and telling[other] and key != families[at] and len(kept) < NEIGHBOURS_PER_WORD:
                    kept.setdefault(key, float(scores[other]))
            if kept and telling[at]:
                found[words[at]] = kept
    return found


def main() -> None:
    """Reads the table that ships and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    model = StaticModel.load()
    tokens = model.vocabulary.tokens
    rows = [row for row, token in enumerate(tokens) if token.isascii() and token.isalpha() and len(token) > 1]
    found = neighbours([tokens[row] for row in rows], unit(model.codes[rows]))
    words = sorted(found)
    keys = sorted({key for near in found.values() for key in near})
    place = {key: number for number, key in enumerate(keys)}
    targets = np.zeros((len(words), NEIGHBOURS_PER_WORD), dtype=np.uint16)
    codes = np.zeros((len(words), NEIGHBOURS_PER_WORD), dtype=np.uint8)
    for at, word in enumerate(words):
        for slot, (key, nearness) in enumerate(found[word].items()):
            targets[at, slot], codes[at, slot] = place[key], round(255 * nearness)
    texts = {"words": "\n".join(words), "keys": "\n".join(keys), "version": table_mark(model)}
    packed = {name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in texts.items()}
    np.savez_compressed(options.out, rows=targets, codes=codes, **packed)
    print(f"{len(words):,} words, {len(keys):,} families, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
