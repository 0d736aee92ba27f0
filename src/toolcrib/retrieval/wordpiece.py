"""Cuts a text into the pieces that the reader of sentences was trained on, as the numbers of those pieces.

The rules are those of uncased BERT: control characters go, every character of Chinese writing and every punctuation
mark is a word of its own, case and accents are folded, and a word becomes the longest pieces that are known. Written
here because the library that has them brings along a client of a model hub, and we never ask a network for a model.

Invariant: any string gives numbers of the list, at most as many as asked for.
"""

import gzip
import unicodedata
import zlib
from functools import lru_cache
from pathlib import Path

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import READER_WORDS_CACHED

PIECES_FILE = Path(__file__).parent / "model" / "wordpieces.txt.gz"
_WORD_MAX_CHARS = 100
_CHINESE = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_PLAIN_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class WordPieces:
    """The list of pieces, and the words that were already cut."""

    __slots__ = ("_cut", "_end", "_numbers", "_start", "_unknown")

    def __init__(self, pieces: list[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        try:
            self._start, self._end, self._unknown = (self._numbers[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        except KeyError as error:
            raise ModelUnavailable(f"the list of word pieces lacks {error}") from None
        self._cut = lru_cache(READER_WORDS_CACHED)(self._cut_word)

    @classmethod
    def load(cls, path: Path = PIECES_FILE) -> "WordPieces":
        """Reads the list. Raises `ModelUnavailable` if it is missing or damaged."""
        try:
            text = gzip.decompress(path.read_bytes()).decode()
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise ModelUnavailable(f"the list of word pieces {path.name} cannot be read: {error}") from error
        return cls(text.split("\n"))

    def numbers(self, text: str, *, at_most: int) -> list[int]:
        """The numbers of a text between the two that mark its start and its end."""
        room = at_most - 2
        found: list[int] = []
        for word in _words(text):
            found += self._cut(word)
            if len(found) >= room:
                break
        return [self._start, *found[:room], self._end]

    def _cut_word(self, word: str) -> tuple[int, ...]:
        if len(word) > _WORD_MAX_CHARS:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            end = len(word)
            while end > start and self._piece(word, start, end) is None:
                end -= 1
            number = self._piece(word, start, end)
            if number is None:
                return (self._unknown,)
            found.append(number)
            start = end
        return tuple(found)

    def _piece(self, word: str, start: int, end: int) -> int | None:
        return self._numbers.get(word[start:end] if start == 0 else f"##{word[start:end]}") if end > start else None


_PLAIN: dict[int, str | None] = {
    **dict.fromkeys(range(128)),
    **{code: chr(code) for code in range(128) if chr(code).isalnum()},
    **{code: " " for code in range(128) if chr(code).isspace()},
    **{ord(mark): f" {mark} " for mark in _PLAIN_MARKS},
}
"""What becomes of each character of ASCII."""


def _words(text: str) -> list[str]:
    if text.isascii():
        return text.translate(_PLAIN).lower().split()
    spaced = "".join(map(_spaced, text))
    folded = "".join(char for char in unicodedata.normalize("NFD", spaced) if unicodedata.category(char) != "Mn")
    return "".join(f" {char} " if _is_mark(char) else char for char in folded.lower()).split()


@lru_cache(4_096)
def _spaced(char: str) -> str:
    """The character as it counts: nothing, a space, or itself; set apart if it is of Chinese writing."""
    if char.isspace():
        return " "
    if char == "\ufffd" or unicodedata.category(char).startswith("C"):
        return ""
    code = ord(char)
    return f" {char} " if any(first <= code <= last for first, last in _CHINESE) else char


@lru_cache(4_096)
def _is_mark(char: str) -> bool:
    return char in _PLAIN_MARKS or unicodedata.category(char).startswith("P")
