"""What the forms that people use in requests mean, language by language, in English.

Forms are told apart by their check sums: a million bytes hold them all, and nothing has to be built from these when a
process starts. One in some twenty thousand forms that are in no dictionary has the check sum of one that is in one.

Invariant: the same form of the same language means the same in every process.
"""

import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, read_arrays

FILE: Final = "languages.npz"
ENGLISH: Final = "en"
SILENT: Final = "-"
"""Stands for what says nothing in a request."""
TARGETS: Final = 3
"""English words that a form may stand for, the likeliest first."""

_DEVANAGARI = re.compile("[\u0900-\u097f]")
_COMPOSED = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
"""Kana and Hangul, whose marks and parts are letters."""
_NUKTA, _CHANDRABINDU, _ANUSVARA = "\u093c", "\u0901", "\u0902"


def bare(form: str) -> str:
    """A form without its marks, as many people type it; of Devanagari only those that are often left out."""
    if _DEVANAGARI.search(form):
        return form.replace(_NUKTA, "").replace(_CHANDRABINDU, _ANUSVARA)
    if _COMPOSED.search(form):
        return form
    return "".join(char for char in unicodedata.normalize("NFKD", form) if not unicodedata.combining(char))


def key_of(language: str, form: str) -> int:
    """What a form of a language is known by."""
    return zlib.crc32(f"{language}\t{form}".encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dictionaries:
    """Forms of several languages, each with English words that mean the same."""

    names: tuple[str, ...]
    """The languages but English."""
    english: tuple[str, ...]
    keys: NDArray[np.uint32]
    """Of each form of each language, in order."""
    rows: NDArray[np.uint16]
    """Places in `english`; as many as there are words for none."""

    @classmethod
    def load(cls, directory: Path = MODEL_DIRECTORY) -> "Dictionaries":
        """Reads the dictionaries.

        Raises:
            ModelUnavailable: the file is missing, damaged or of another format.
        """
        arrays = read_arrays(directory / FILE)
        try:
            words = bytes(arrays["english"])
            english = tuple(words.decode().split("\n"))
            keys = np.cumsum(arrays["keys"], dtype=np.uint32)
            rows = np.ascontiguousarray(arrays["rows"].astype(np.uint16).T)
            names = tuple(bytes(arrays["names"]).decode().split())
            fits = zlib.crc32(words) == int(arrays["check"][0]) and rows.shape == (len(keys), TARGETS)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ModelUnavailable(f"{FILE} is damaged: {error}") from error
        if not fits or bool((rows > len(english)).any()) or bool((keys[1:] <= keys[:-1]).any()):
            raise ModelUnavailable(f"{FILE} is damaged: its parts do not belong together")
        return cls(names=names, english=english, keys=keys, rows=rows)

    def meanings(self, language: str, forms: Sequence[str]) -> list[tuple[str, ...] | None]:
        """What each form means, the likeliest first: nothing if it is unknown, no word if it says nothing."""
        places = self._places([key_of(language, form) for form in forms]).tolist()
        return [None if place < 0 else self._words(place) for place in places]

    def _words(self, place: int) -> tuple[str, ...]:
        rows: list[int] = self.rows[place].tolist()
        return tuple(self.english[row] for row in rows if row < len(self.english))

    def has(self, language: str, forms: Sequence[str]) -> NDArray[np.bool_]:
        """Which forms a language has."""
        return self._places([key_of(language, form) for form in forms]) >= 0

    def known(self, words: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """By language: which words it has, each in any of some forms."""
        forms = [form.encode("utf-8", "surrogatepass") for word in words for form in word]
        starts = [zlib.crc32(f"{name}\t".encode()) for name in self.names]
        found = self._places([zlib.crc32(form, start) for start in starts for form in forms]) >= 0
        by_form = found.reshape(len(starts), len(forms))
        known = np.zeros((len(starts), len(words)), dtype=bool)
        at = 0
        for place, word in enumerate(words):
            known[:, place] = by_form[:, at : at + len(word)].any(axis=1)
            at += len(word)
        return known

    def _places(self, keys: Sequence[int]) -> NDArray[np.intp]:
        """Where each key stands; -1 for one that is not there."""
        wanted = np.array(keys, dtype=np.uint32)
        places = np.searchsorted(self.keys, wanted)
        there = np.minimum(places, len(self.keys) - 1)
        return np.where(self.keys[there] == wanted, there, -1) if len(self.keys) else np.full(len(wanted), -1)
