"""Says in English, word by word, what a query in another language asks for.

The sentence reader, the comparer and the abilities at large know English alone. A person writes "borra la rama
antigua"; said as "clear the branch old" it meets English tools nearly as an English query would. Which language a
query is in, its words say: the forms that people use in requests are known of each language, English among them.

Invariant: any string gives the same answer in every process, and none raises. A query that is as well read in English
is left alone, and a word of no dictionary stays what it is.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolcrib.limits import LANGUAGE_MAX_WORDS, QUERY_MAX_CHARS, SEMANTIC_WORD_MAX_CHARS
from toolcrib.retrieval.dictionaries import Dictionaries, bare
from toolcrib.retrieval.tongue import DENSE, beginnings, language_of
from toolcrib.retrieval.vocabulary import Vocabulary

_PHRASE = 3
"""Words of the longest phrase that is looked up."""
_KATAKANA = re.compile("[\u30a1-\u30ff]+")
_FRAGMENT = 2
_DENSE_PART = 12
"""Characters of the longest word of a script without spaces."""
_ENDS = re.compile(r"[.!?;,:](?=\s|\Z|[^\x00-\x7f])|[\n。！？；，、：؟،।]")
_PARTS = re.compile("\\w+://\\S+|(?:[^\\W_]|[\u0900-\u0963\u0966-\u0dff])+|" + _ENDS.pattern)
"""Vowel signs of the scripts of India are marks, not letters, yet part of the word."""
_UNSEEN = re.compile("[\u00ad\u0640\u064b-\u0652\u0670\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_STOPS = frozenset(".!?。！？؟।\n")
_COMPOUNDING = frozenset(("de", "nl", "sv"))
_COMPOUND, _COMPOUND_PART = 8, 3
"""Letters of a word that may be two, and of each of them."""
_LINKS = ("", "s", "n", "en", "e")
"""What may stand between the two."""


@dataclass(frozen=True, slots=True)
class Told:
    """A query in English, word by word."""

    language: str
    text: str
    words: tuple[str, ...]
    """Every English word that may be meant, for an index of words."""


@dataclass(frozen=True, slots=True)
class Languages:
    """What is known of other languages."""

    dictionaries: Dictionaries
    vocabulary: Vocabulary
    """Which words are English, and what other words may mean."""

    def told(self, query: str) -> Told | None:
        """The query in English; nothing if it is in English, or in a language that is not known."""
        parts = list(_parts(query[:QUERY_MAX_CHARS]))[:LANGUAGE_MAX_WORDS]
        words = [part for part in parts if not _ENDS.fullmatch(part)]
        language = language_of(words, self.dictionaries, self.vocabulary.words)
        if language is None:
            return None
        said: list[str] = []
        meant: dict[str, None] = {}
        for likeliest, others in self._said(language, parts):
            said.append(likeliest)
            meant |= dict.fromkeys(others)
        text = re.sub(r"\s+(?=[.,])", "", " ".join(said)).strip(" .,")
        return Told(language, text, tuple(meant)) if text else None

    def _said(self, language: str, parts: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What each part of a query says, and what else it may."""
        at = 0
        while at < len(parts):
            part = parts[at]
            if _ENDS.fullmatch(part):
                yield ("." if part in _STOPS else ","), ()
                at += 1
                continue
            if part.isdigit():
                yield part, (part,)
                at += 1
                continue
            if DENSE.match(part):
                yield from self._dense(language, part)
                at += 1
                continue
            for size in range(_phrase_from(parts, at), 0, -1):
                found = self.dictionaries.meanings(language, [" ".join(parts[at : at + size])])[0]
                if found is not None:
                    break
            else:
                size, found = 1, self._unlisted(language, part)
            if found:
                yield found[0], found
            at += size

    def _unlisted(self, language: str, word: str) -> tuple[str, ...]:
        """What a word says that the dictionary does not have as it is written."""
        if word in self.vocabulary.words:
            return (word,)
        plain = bare(word)
        candidates = [plain] if plain != word else []
        found = next((each for each in self.dictionaries.meanings(language, candidates) if each is not None), None)
        if found is None and language in _COMPOUNDING:
            found = self._compound(language, word)
        if found is None:
            found = self.vocabulary.meanings(word) or None
        if found is None:
            found = next((each for each in self.dictionaries.meanings(language, beginnings(word)) if each), None)
        return (word,) if found is None else found

    def _compound(self, language: str, word: str) -> tuple[str, ...] | None:
        """Both halves of a word that is two written together."""
        if len(word) < _COMPOUND:
            return None
        splits = [
            (word[:place], word[place + len(link) :])
            for place in range(len(word) - _COMPOUND_PART, _COMPOUND_PART - 1, -1)
            for link in _LINKS
            if word[place:].startswith(link) and len(word) - place - len(link) >= _COMPOUND_PART
        ]
        firsts = self.dictionaries.meanings(language, [first for first, _ in splits])
        seconds = self.dictionaries.meanings(language, [second for _, second in splits])
        both = [
            (min(len(split[0]), len(split[1])), first, second)
            for split, first, second in zip(splits, firsts, seconds, strict=True)
            if first and second
        ]
        if not both:
            return None
        _, first, second = max(both, key=lambda each: each[0])
        return (f"{first[0]} {second[0]}", *first, *second)

    def _dense(self, language: str, run: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """A run without spaces, by the longest known words from its beginning on; what is unknown says nothing."""
        spans = [
            (start, end)
            for start in range(len(run))
            for end in range(min(len(run), start + _DENSE_PART), start, -1)
            if not _is_fragment(run, start, end)
        ]
        found = self.dictionaries.meanings(language, [run[start:end] for start, end in spans])
        known = {span: each for span, each in zip(spans, found, strict=True) if each is not None}
        at = 0
        while at < len(run):
            for end in range(min(len(run), at + _DENSE_PART), at, -1):
                meant = known.get((at, end))
                if meant is None and end - at > 1 and not _is_fragment(run, at, end):
                    meant = self.vocabulary.meanings(run[at:end]) or None
                if meant is not None:
                    if meant:
                        yield meant[0], meant
                    at = end
                    break
            else:
                at += 1


def _phrase_from(parts: Sequence[str], at: int) -> int:
    """Words from here on that may be a phrase: of one script, without a mark between them."""
    size = 1
    while size < _PHRASE and at + size < len(parts):
        if _ENDS.fullmatch(parts[at + size]) or DENSE.match(parts[at + size]):
            break
        size += 1
    return size


def _is_fragment(run: str, start: int, end: int) -> bool:
    """Whether a part is one or two letters out of a longer word in katakana, which mean nothing there."""
    if end - start > _FRAGMENT or not _KATAKANA.fullmatch(run, start, end):
        return False
    return bool(_KATAKANA.match(run, end) or (start and _KATAKANA.match(run, start - 1)))


def _parts(query: str) -> Iterable[str]:
    """The words of a query in lower case, and the marks that end its clauses, in their order."""
    text = query.lower()
    if not text.isascii():
        # "İ" becomes "i" and a dot above it; invisible characters and vowel signs of Arabic part no words.
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text).replace("i\u0307", "i"))
    for part in _PARTS.findall(text):
        yield from _scripts(part[:SEMANTIC_WORD_MAX_CHARS])


def _scripts(word: str) -> Iterable[str]:
    """A word, cut where a script without spaces begins or ends."""
    start = 0
    for dense in DENSE.finditer(word):
        if dense.start() > start:
            yield word[start : dense.start()]
        yield dense[0]
        start = dense.end()
    if start < len(word):
        yield word[start:]
