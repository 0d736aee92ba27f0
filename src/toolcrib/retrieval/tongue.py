"""Decides which language a query is in, by the words that people use in requests.

A word counts for a language that has it, and against one that lacks it; what both that language and English may say
tells nothing. Endings hide many words of some languages: where no language is likely by whole words, the beginnings
of unknown words are looked up as well.

Invariant: a query whose words are as good in English is English, and a single word in plain letters makes no language:
most such words are names of products.
"""

import math
import re
from collections.abc import Container, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toolcrib.retrieval.dictionaries import ENGLISH, Dictionaries

DENSE: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
"""Scripts that set no spaces between words, and Hangul, whose particles stick to the word before them."""
_KANA, _HANGUL, _HAN = (re.compile(f"[{each}]") for each in ("\u3040-\u30ff", "\uac00-\ud7af", "\u3400-\u9fff"))
_DIGIT = re.compile(r"\d")
_LOOKED_AT = 20
"""Words that tell the language: a long query says it at its beginning."""
_PIECES = (2, 3, 4)
"""Characters of the words by which a run without spaces is known."""
_HALF = 0.5
"""What a word counts that is rare in English requests and may be of another language."""
_LEAST = 1.0
"""What must speak for a language: one word that English lacks, or two that it hardly uses."""
_SHARE = 0.4
"""Share of its words that a language knows of a query in it: a single word may be anybody's."""
_STEM, _STEM_SHARE = 3, 0.6
"""Letters of a beginning that a word may be read by, and its least share of the word."""


def language_of(words: Sequence[str], dictionaries: Dictionaries, listed_words: Container[str]) -> str | None:
    """The language of which a query has the most words, unless that is English."""
    dense = [word for word in words if DENSE.match(word)]
    # A word with a digit in it is a name, a size or a part of a check sum.
    plain = [word for word in words if not DENSE.match(word) and "://" not in word and not _DIGIT.search(word)][
        :_LOOKED_AT
    ]
    asked_in = dictionaries.has(ENGLISH, plain)
    listed = np.array([word in listed_words for word in plain], dtype=bool)
    # What both may say tells nothing; the table also lists words of other languages.
    telling = np.where(asked_in, 0.0, np.where(listed, _HALF, 1.0))
    as_english = np.where(asked_in, 1.0, np.where(listed, _HALF, 0.0))
    if dense:
        name = _by_script("".join(dense))
        if name in dictionaries.names and float(as_english.sum()) <= sum(
            _covered(name, run, dictionaries) for run in dense
        ):
            return name
    if telling.sum() < _LEAST:
        return None
    exact = np.zeros((len(dictionaries.names), len(plain)), dtype=bool)
    _look_up(exact, [[word] if says else [] for word, says in zip(plain, telling.tolist(), strict=True)], dictionaries)
    # Endings hide many words of some languages; English has few that the table lacks.
    stems = [beginnings(word) if says == 1.0 else [] for word, says in zip(plain, telling.tolist(), strict=True)]
    if not _speaks(exact, telling) and not _speaks(_look_up(exact.copy(), stems, dictionaries), telling):
        return None  # so it is with nearly every query in English, whose other words need not be looked up
    _look_up(exact, [[] if says else [word] for word, says in zip(plain, telling.tolist(), strict=True)], dictionaries)
    known = exact
    best = _likeliest(known, telling, as_english)
    if best is None and any(stems):
        known = _look_up(exact.copy(), stems, dictionaries)
        best = _likeliest(known, telling, as_english)
    if best is None or not (telling * exact[best]).any():
        return None
    speaking = [word for word, says in zip(plain, (telling * known[best]).tolist(), strict=True) if says]
    return None if len(speaking) == 1 and speaking[0].isascii() else dictionaries.names[best]


def _look_up(known: NDArray[np.bool_], forms: Sequence[Sequence[str]], dictionaries: Dictionaries) -> NDArray[np.bool_]:
    """By language: adds the words that it has, each in any of some forms; a word without any is not looked up."""
    places = [place for place, each in enumerate(forms) if each]
    if places:
        known[:, places] |= dictionaries.known([forms[place] for place in places])
    return known


def _speaks(known: NDArray[np.bool_], telling: NDArray[np.float64]) -> bool:
    """Whether enough speaks for any language."""
    return float((known @ telling).max(initial=0.0)) >= _LEAST


def _likeliest(known: NDArray[np.bool_], telling: NDArray[np.float64], as_english: NDArray[np.float64]) -> int | None:
    """The language for which most speaks, if more than against it."""
    for_it, against = known @ telling, ~known @ as_english
    best = int(np.argmax(for_it - against))
    sure = for_it[best] >= _LEAST and for_it[best] > against[best] and known[best].mean() >= _SHARE
    return best if sure else None


def _by_script(dense: str) -> str:
    return "ja" if _KANA.search(dense) else "ko" if _HANGUL.search(dense) else "zh" if _HAN.search(dense) else ""


def _covered(language: str, run: str, dictionaries: Dictionaries) -> int:
    """Characters of a run without spaces that stand in words of two and more that the language has: a name has none."""
    spans = [(start, start + size) for start in range(len(run)) for size in _PIECES if start + size <= len(run)]
    found = dictionaries.has(language, [run[start:end] for start, end in spans])
    return len({place for span, there in zip(spans, found.tolist(), strict=True) if there for place in range(*span)})


def beginnings(word: str) -> list[str]:
    """What a word may be read by if it is not known with its ending, the longest first."""
    shortest = max(_STEM, math.ceil(len(word) * _STEM_SHARE))
    return [word[:end] for end in range(len(word) - 1, shortest - 1, -1)]
