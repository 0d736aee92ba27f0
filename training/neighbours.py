"""Writes the words that are near to each word of the table: `model/neighbours.npz`.

    python training/neighbours.py OUT.npz

Whole words of letters only. A neighbour is a family of words (`retrieval/text.family`) other than the word's own, as near
as its nearest member; words that only hold a sentence together have none and are none. To what the table finds,
`thesaurus.txt` adds what people take for the same where they talk about tools. Run it again whenever the table or the
thesaurus changes.
"""

import argparse
from pathlib import Path

import numpy as np

from toolcrib.limits import NEIGHBOURS_PER_WORD
from toolcrib.retrieval.salience import GRAMMATICAL, salience_table
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.text import family
from toolcrib.retrieval.vectors import unit

_LEAST = 0.4
"""Cosine from which on two words may stand for each other."""
_LISTED = 0.45
"""How near words of one line of the thesaurus are to each other at least."""
_LOOKED_AT = 24
_FROM_TABLE = 8
_BLOCK = 500
THESAURUS = Path(__file__).parent / "thesaurus.txt"


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
                if scores[other] >= _LEAST and telling[other] and key != families[at] and len(kept) < _FROM_TABLE:
                    kept.setdefault(key, float(scores[other]))
            if kept and telling[at]:
                found[words[at]] = kept
    return found


def with_thesaurus(found: dict[str, dict[str, float]], lines: list[list[str]]) -> dict[str, dict[str, float]]:
    """The neighbours of words, and those that a thesaurus gives them; the nearest first, no more than fit."""
    merged = {word: dict(near) for word, near in found.items()}
    for line in lines:
        for word in line:
            near = merged.setdefault(word, {})
            for key in map(family, line):
                if key != family(word):
                    near[key] = max(near.get(key, 0.0), _LISTED)
    return {
        word: dict(sorted(near.items(), key=lambda pair: (-pair[1], pair[0]))[:NEIGHBOURS_PER_WORD])
        for word, near in merged.items()
        if near
    }


def read_thesaurus(path: Path) -> list[list[str]]:
    """The lines of a thesaurus, as words."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def main() -> None:
    """Reads the table that ships and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    model = StaticModel.load()
    tokens = model.vocabulary.tokens
    rows = [row for row, token in enumerate(tokens) if token.isascii() and token.isalpha() and len(token) > 1]
    near = neighbours([tokens[row] for row in rows], unit(model.codes[rows]))
    found = with_thesaurus(near, read_thesaurus(THESAURUS))
    words = sorted(found)
    keys = sorted({key for near in found.values() for key in near})
    place = {key: number for number, key in enumerate(keys)}
    targets = np.zeros((len(words), NEIGHBOURS_PER_WORD), dtype=np.uint16)
    codes = np.zeros((len(words), NEIGHBOURS_PER_WORD), dtype=np.uint8)
    for at, word in enumerate(words):
        for slot, (key, nearness) in enumerate(found[word].items()):
            targets[at, slot], codes[at, slot] = place[key], round(255 * nearness)
    texts = {"words": "\n".join(words), "keys": "\n".join(keys), "version": model.mark}
    packed = {name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in texts.items()}
    np.savez_compressed(options.out, rows=targets, codes=codes, **packed)
    print(f"{len(words):,} words, {len(keys):,} families, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
