"""Decides which rows of the vector table a text stands for, and with which weight.

An English word is one row; a word the table does not know comes apart into the longest pieces that it does
know. A word of another language stands for the English words that mean the same (the bridge), so that a
question in Chinese or Spanish meets an English tool in one space. English alone never waits for the bridge.

Invariant: any string gives rows, possibly none, and the same ones in every process. Prevents the failure that
one odd character, a megabyte without spaces or an unknown word stops a search.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import QUERY_MAX_CHARS, SEMANTIC_WORD_MAX_CHARS, SEMANTIC_WORDS_CACHED

_RUNS = re.compile(r"[^\W_]+")
# Vowel signs of the scripts of India are marks, not letters, yet part of the word.
_MARKED_RUNS = re.compile("(?:[^\\W_]|[\u0900-\u0dff])+")
_CAMEL = re.compile(r"([a-z0-9])([A-Z])")
_ACRONYM = re.compile(r"([A-Z]+)([A-Z][a-z])")
# Scripts that set no spaces between words, and Hangul, whose particles stick to the word before them.
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_CONTINUED = "##"
_WHOLE_WORD_CHARS = 4
"""From this length on a whole word may also continue another (`spreadsheet` + `folder`)."""
_STEM_CHARS = 5
"""Shortest known beginning that an inflected foreign word may be read as."""
_STEM_SHARE = 0.6
"""Least share of the word that this beginning must cover."""

_FOREIGN_SHARE = 0.4
"""Share of unknown words from which on a text is taken to be in another language."""
_FEW_WORDS = 2
"""Words of a text up to which a single foreign one says that the text is foreign."""

_SPLIT_KEPT = 8
"""Texts whose words are kept: a query is asked for its words four times in a row."""

Rows = tuple[tuple[int, float], ...]
"""Rows of the table with their weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """Words of other languages, each as the English rows that mean the same."""

    places: Mapping[str, int]
    """Where each word stands in the two arrays."""
    targets: NDArray[np.uint16]
    """Rows of the table, the nearest in meaning first."""
    shares: NDArray[np.uint8]
    """Weight of each target in 255ths; 0 where a word has fewer targets."""
    longest: int
    """Characters of the longest word."""
    phrases: Mapping[str, Sequence[tuple[str, ...]]]
    """By first word: what must follow for a phrase that stands in the bridge as a whole, longest first."""

    @classmethod
    def of(cls, words: Sequence[str], targets: NDArray[np.uint16], shares: NDArray[np.uint8]) -> "Bridge":
        """The bridge whose entries stand in the order of `words`."""
        places = dict(zip(words, range(len(words)), strict=True))
        phrases: dict[str, list[tuple[str, ...]]] = {}
        for phrase in sorted((word for word in words if " " in word), key=len, reverse=True):
            first, *rest = phrase.split(" ")
            phrases.setdefault(first, []).append(tuple(rest))
        longest = max(map(len, words), default=0)
        return cls(places=places, targets=targets, shares=shares, longest=longest, phrases=phrases)

    def joined(self, words: Sequence[str]) -> Iterable[str]:
        """The words, with phrases that the bridge knows put together."""
        at = 0
        while at < len(words):
            for rest in self.phrases.get(words[at], ()):
                if tuple(words[at + 1 : at + 1 + len(rest)]) == rest:
                    yield " ".join((words[at], *rest))
                    at += len(rest)
                    break
            else:
                yield words[at]
            at += 1

    def rows(self, word: str) -> Rows:
        """The rows that a word stands for; none when the bridge does not know it."""
        place = self.places.get(word)
        if place is None:
            return ()
        pairs = zip(self.targets[place].tolist(), self.shares[place].tolist(), strict=True)
        return tuple((int(row), int(share) / 255) for row, share in pairs if share)


@dataclass(slots=True, kw_only=True)
class Vocabulary:
    """Words and pieces of the table."""

    tokens: Sequence[str]
    """What each row stands for."""
    words: Mapping[str, int]
    pieces: Mapping[str, int]
    """What may continue a word that has begun."""
    longest: int
    load_bridge: Callable[[], Bridge]
    _bridge: Bridge | None = None
    _seen: dict[str, Rows] = field(default_factory=dict[str, Rows])

    @classmethod
    def of(cls, tokens: Sequence[str], load_bridge: Callable[[], Bridge]) -> "Vocabulary":
        """The vocabulary whose row numbers are the positions in `tokens`."""
        words = {token: row for row, token in enumerate(tokens) if not token.startswith(_CONTINUED)}
        pieces = {
            token.removeprefix(_CONTINUED): row for row, token in enumerate(tokens) if token.startswith(_CONTINUED)
        }
        pieces |= {word: row for word, row in words.items() if len(word) >= _WHOLE_WORD_CHARS}
        longest = max(map(len, words), default=0)
        return cls(tokens=tokens, words=words, pieces=pieces, longest=longest, load_bridge=load_bridge)

    def rows(self, text: str, *, at_most: int) -> list[tuple[int, float]]:
        """The rows of a text in order, repeats included, up to `at_most`."""
        found: list[tuple[int, float]] = []
        for run in self._words_of(text):
            word = run[:SEMANTIC_WORD_MAX_CHARS]
            rows = self._seen.get(word)
            if rows is None:
                rows = self._remember(word)
            found += rows
            if len(found) >= at_most:
                return found[:at_most]
        return found

    def english(self, text: str) -> tuple[str, ...]:
        """English words for a query in another language, for a word index to look up beside it.

        None for a query that is English but for a few words: those are rather misspelt than foreign.
        """
        words = [word[:SEMANTIC_WORD_MAX_CHARS] for word in self._words_of(text[:QUERY_MAX_CHARS])]
        unknown = [word for word in words if word not in self.words and not word.isdigit()]
        if len(unknown) < _FOREIGN_SHARE * len(words):
            return ()
        return tuple(dict.fromkeys(self.tokens[row] for word in unknown for row, _ in self._foreign(word)))

    def meanings(self, word: str) -> tuple[str, ...]:
        """English words for one of another language, the nearest first; none if the bridge does not know it."""
        return tuple(self.tokens[row] for row, _ in self._loaded_bridge().rows(word))

    def foreign_share(self, text: str) -> float:
        """The share of a text's words that are known from another language only, 0 to 1.

        One such word among several that are not is rather an English one that the table lacks ("thermostat").
        """
        words = [word[:SEMANTIC_WORD_MAX_CHARS] for word in split(text[:QUERY_MAX_CHARS])]
        unknown = [word for word in words if word not in self.words and not word.isdigit()]
        foreign = [word for word in unknown if self._foreign(word)]
        if len(foreign) == 1 and len(words) > _FEW_WORDS and foreign[0].isascii():
            return 0.0
        return len(foreign) / len(words) if foreign else 0.0

    def known_share(self, text: str) -> float:
        """The share of a query's words that the table knows as they are written, 0 to 1."""
        words = split(text[:QUERY_MAX_CHARS])
        return sum(1 for word in words if word in self.words or word.isdigit()) / len(words) if words else 0.0

    def knows(self, word: str) -> bool:
        """Whether a word, in lower case, stands in the table or, as it is written, in the bridge."""
        return word in self.words or bool(self._loaded_bridge().rows(word))

    def _words_of(self, text: str) -> Iterable[str]:
        words = split(text)
        # English alone needs no bridge, and does not wait for it.
        if all(word in self.words for word in words):
            return words
        return self._loaded_bridge().joined(words)

    def _loaded_bridge(self) -> Bridge:
        if self._bridge is None:
            self._bridge = self.load_bridge()
        return self._bridge

    def _remember(self, word: str) -> Rows:
        if len(self._seen) >= SEMANTIC_WORDS_CACHED:
            self._seen.clear()
        rows = self._seen[word] = self._rows_of(word)
        return rows

    def _rows_of(self, word: str) -> Rows:
        row = self.words.get(word)
        if row is not None:
            return ((row, 1.0),)
        if word.isdigit():
            return self._pieces_of(word)
        foreign = self._foreign(word)
        if foreign:
            return foreign
        plain = _without_marks(word)
        row = self.words.get(plain)
        return ((row, 1.0),) if row is not None else self._pieces_of(plain)

    def _foreign(self, word: str) -> Rows:
        bridge = self._loaded_bridge()
        rows = bridge.rows(word) or bridge.rows(_without_marks(word))
        if rows:
            return rows
        if _DENSE.search(word):
            return tuple(_longest_matches(word, bridge))
        shortest = max(_STEM_CHARS, int(len(word) * _STEM_SHARE))
        if word.isascii() and self._begins(word) >= shortest:
            return ()
        for end in range(len(word) - 1, shortest - 1, -1):
            rows = bridge.rows(word[:end])
            if rows:
                return rows
        return ()

    def _begins(self, word: str) -> int:
        for end in range(min(len(word), self.longest), 0, -1):
            if word[:end] in self.words:
                return end
        return 0

    def _pieces_of(self, word: str) -> Rows:
        found: list[tuple[int, float]] = []
        start, known = 0, self.words
        while start < len(word):
            for end in range(min(len(word), start + self.longest), start, -1):
                row = known.get(word[start:end])
                if row is not None:
                    found.append((row, 1.0))
                    start = end
                    break
            else:
                start += 1
            known = self.pieces
        return tuple(found)


@lru_cache(_SPLIT_KEPT)
def split(text: str) -> tuple[str, ...]:
    """The lower-case words of a text; identifiers come apart at case changes and separators."""
    runs = _RUNS
    if not text.isascii():
        text, runs = unicodedata.normalize("NFKC", text), _MARKED_RUNS
    return tuple(runs.findall(_ACRONYM.sub(r"\1 \2", _CAMEL.sub(r"\1 \2", text)).lower()))


def _longest_matches(word: str, bridge: Bridge) -> Iterable[tuple[int, float]]:
    start = 0
    while start < len(word):
        for end in range(min(len(word), start + bridge.longest), start, -1):
            rows = bridge.rows(word[start:end])
            if rows:
                yield from rows
                start = end
                break
        else:
            start += 1


def _without_marks(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
