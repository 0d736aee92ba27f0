"""Packs the dictionaries by which queries in other languages are said in English (`toolcrib.retrieval.languages`).

    python training/languages.py src/toolcrib/retrieval/model/languages.npz

`languages.tsv.gz` has a line for each English word and language: the language, the word with its other forms, and the
forms by which natives say it, the most usual first; an English word of `-` holds what says nothing in a request. Lines of
English itself add words that people use in every language.
"""

import argparse
import gzip
import math
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np

from toolcrib.retrieval.dictionaries import ENGLISH, SILENT, TARGETS, bare, key_of
from toolcrib.retrieval.vocabulary import split

_SOURCE = Path(__file__).parent / "languages.tsv.gz"
_LATER = 0.7
"""What it costs a form to stand further behind in the list of a word."""
_RARER = 0.2
"""What it costs a word to be rarer."""
_SECOND = 0.9
"""How much dearer than the first a further meaning may be."""
_LEAST_BARE = 4
"""Letters of a word that may also be typed without its marks."""

Meanings = dict[str, dict[str, float]]


def read(path: Path) -> tuple[list[str], dict[str, Meanings]]:
    """The English words in their order, and by language what each form means, the cheapest meaning the likeliest."""
    ranks: dict[str, int] = {}
    found: dict[str, Meanings] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            language, forms, said = line.rstrip("\n").split("\t")
            english = forms.split("/")[0]
            rank = ranks.setdefault(english, len(ranks)) if english != SILENT else 0
            if english != SILENT:
                for form in forms.split("/"):
                    found[ENGLISH][form].setdefault(english, 0.0)
            if language == ENGLISH:
                continue
            for place, form in enumerate(said.split("/")):
                word = " ".join(split(form))
                if not word or form == "-":
                    continue
                cost = _LATER * math.log1p(place) + _RARER * math.log(rank + 10) if english != SILENT else 1.0
                meanings = found[language][word]
                meanings[english] = min(cost, meanings.get(english, math.inf))
    for language, meant in found.items():
        if language == ENGLISH:
            continue
        for word, meanings in list(meant.items()):
            plain = bare(word)
            if plain != word and len(plain) >= _LEAST_BARE and plain not in meant:
                meant[plain] = dict(meanings)
    return list(ranks), found


def main() -> None:
    """Writes the file that ships."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--source", type=Path, default=_SOURCE)
    options = parser.parse_args()
    english, found = read(options.source)
    places = {word: place for place, word in enumerate(english)}
    silent = len(english)
    entries: dict[int, list[int]] = {}
    clashes = 0
    for language in sorted(found):
        for word, meanings in found[language].items():
            ranked = sorted(meanings, key=lambda each: (meanings[each], each))
            near = [each for each in ranked if meanings[each] <= meanings[ranked[0]] + _SECOND][:TARGETS]
            rows = [silent if each == SILENT else places[each] for each in near]
            if silent in rows:
                rows = [silent] if rows[0] == silent else [row for row in rows if row != silent]
            key = key_of(language, word)
            clashes += key in entries
            entries.setdefault(key, rows + [silent] * (TARGETS - len(rows)))
    keys = np.array(sorted(entries), dtype=np.uint32)
    rows = np.array([entries[key] for key in keys.tolist()], dtype=np.uint16)
    names = [language for language in sorted(found) if language != ENGLISH]
    words = "\n".join(english).encode()
    np.savez_compressed(
        options.out,
        keys=np.diff(keys, prepend=np.uint32(0)).astype(np.uint32),
        rows=np.ascontiguousarray(rows.T),
        english=np.frombuffer(words, dtype=np.uint8),
        names=np.frombuffer(" ".join(names).encode(), dtype=np.uint8),
        check=np.array([zlib.crc32(words)], dtype=np.uint32),
    )
    sizes = ", ".join(f"{name} {len(found[name]):,}" for name in sorted(found))
    print(f"{len(keys):,} forms ({sizes}), {clashes} clashes, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
