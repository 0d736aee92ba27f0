"""Decides which terms a text has: the one place where names, prose and queries become comparable.

Identifiers come apart (`createIssue`, `create_issue`, `HTTPServer`, `s3.getObject`), yet a written-together
word keeps its whole form as well (`GitHub` is also `github`). Diacritics and case are folded, and scripts
without spaces become n-grams. Terms keep their endings: "accounts" and "account" tell a list from a lookup,
so word forms meet through their `family` at query time, at a lower weight. Deliberately no full stemming: it
merges words that tell tools apart.

Invariant: any string gives terms, whatever it holds (lone surrogates, NUL, megabytes); equal strings give
equal terms in every process. Prevents the failure that a query in another script, or with one odd character,
finds nothing.
"""

import re
import unicodedata

from toolcrib.kernel import kernel
from toolcrib.limits import QUERY_MAX_CHARS, TERM_MAX_CHARS

_RUNS = re.compile(r"[^\W_]+")
_ASCII_RUNS = re.compile(r"[A-Za-z0-9]+")
BORDER = b"\x1e"
"""The one separator that `ascii_runs` hands out as a run of its own, if it stands between spaces."""
_SEPARATORS = bytes(code for code in range(128) if not chr(code).isalnum())
_ASCII = bytes(range(128))
_BLANKED = bytes(0x20 if code in _SEPARATORS and code not in BORDER else code for code in range(256))
_LOWERED = bytes(range(256)).lower()
_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-./:]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|[0-9]+")
# Scripts written without spaces between words, and Hangul, whose particles stick to the word.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_COMBINING = re.compile("[\u0300-\u036f]+")
# Letters that Unicode does not decompose, though a keyboard without them writes the plain letter.
_SMALL = {"đ": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ß": "ss"}
_PLAIN = str.maketrans(
    _SMALL | {"ẞ" if small == "ß" else small.upper(): plain.title() for small, plain in _SMALL.items()}
)
_VOWEL = re.compile("[aeiouy]")
_HISSING = ("ss", "sh", "ch", "x", "z")
_KEPT_DOUBLE = frozenset("lsz")
LAST_OF_ENDINGS = frozenset("sgde")
"""A word that ends in none of these is the key of its family."""


def terms(text: str) -> list[str]:
    """The terms of a text in order, repeats included."""
    if kernel is not None and (compiled := kernel.terms(text, TERM_MAX_CHARS)) is not None:
        return compiled
    found: list[str] = []
    runs = _ASCII_RUNS if text.isascii() else _RUNS
    for run in runs.findall(text):
        # Most runs are plain words: their own only term.
        if run.isalpha() and run.islower() and run.isascii() and len(run) <= TERM_MAX_CHARS:
            found.append(run)
        else:
            found += run_terms(run)
    return found


def query_terms(query: str) -> list[str]:
    """The terms of a query, of which only the first `QUERY_MAX_CHARS` characters are read."""
    return terms(query[:QUERY_MAX_CHARS])


def runs_of(text: str) -> list[str]:
    """The unbroken runs of letters and digits in a text: what `run_terms` takes apart."""
    return (_ASCII_RUNS if text.isascii() else _RUNS).findall(text)


def has_plain_runs(text: str) -> bool:
    """Whether every letter and digit of the text is ASCII: a dash or a curly quote beside them parts words only."""
    if text.isascii():
        return True
    odd = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
    return _RUNS.search(odd) is None


def ascii_runs(text: bytes) -> list[bytes]:
    """`runs_of` a text of ASCII characters, at a third of the cost."""
    return text.translate(_BLANKED).split()


def plain_name(name: str) -> bytes:
    """`normal_name` of an ASCII name, encoded."""
    return name.encode().translate(_LOWERED, _SEPARATORS)


def run_terms(run: str) -> tuple[str, ...]:
    """The terms of one unbroken run of letters and digits."""
    run = run[:TERM_MAX_CHARS]
    if run.isascii():
        return (run,) if run.islower() and run.isalpha() else _identifier_terms(run)
    folded = fold_marks(run)
    if folded.isascii():
        return _identifier_terms(folded)
    return _mixed_terms(folded.lower())


def fold_marks(text: str) -> str:
    """The text without Latin diacritics and compatibility forms; vowel signs of other scripts stay."""
    decomposed = unicodedata.normalize("NFKD", text)
    stripped = _COMBINING.sub("", decomposed)
    composed = unicodedata.normalize("NFC", stripped)
    return composed.translate(_PLAIN)


def normal_name(name: str) -> str:
    """A name without case, separators and diacritics: what two spellings of one name share."""
    plain = name if name.isascii() else fold_marks(name)
    return "".join(_RUNS.findall(plain)).lower()


def in_words(name: str) -> str:
    """A name as words to be read: `createIssue` and `create_issue` are `create Issue` and `create issue`."""
    return " ".join(_JOINTS.sub(" ", name).split())


def family(term: str) -> str:
    """What the plural and verb forms of one word share; a key, not always a word."""
    if kernel is not None and (found := kernel.family(term)) is not None:
        return found
    word = term
    # Most words end in another letter than any ending does.
    if word[-1:] not in LAST_OF_ENDINGS or len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("es") and word[:-2].endswith(_HISSING):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith("ing"):
        word = _without_verb_ending(word, word[:-3])
    elif word.endswith("ed") and not word.endswith("eed"):
        word = _without_verb_ending(word, word[:-2])
    if len(word) > 4 and word.endswith("e"):
        return word[:-1]
    return word


def possible_forms(key: str) -> list[str]:
    """Every word whose `family` can be the key, the key itself first; of some it is another one."""
    # The last letter may have been doubled before the ending of a verb.
    twice = key + key[-1:]
    forms = [
        key, key + "s", key + "es", key + "ing", key + "ings", key + "ed", key + "eds",
        twice + "ing", twice + "ings", twice + "ed", twice + "eds",
        key + "e", key + "eing", key + "eings", key + "eeing", key + "eeings",
    ]  # fmt: skip
    if key.endswith("y"):
        forms.append(f"{key[:-1]}ies")
    return forms


def _without_verb_ending(word: str, stem: str) -> str:
    if len(stem) < 3 or _VOWEL.search(stem) is None:
        return word
    last = stem[-1]
    if last == stem[-2] and last not in _KEPT_DOUBLE and len(stem) > 3:
        return stem[:-1]
    return stem


def _identifier_terms(run: str) -> tuple[str, ...]:
    parts = _PARTS.findall(run)
    whole = run.lower()
    if len(parts) <= 1:
        return (whole,)
    # The whole form answers "github" for `GitHub`. A lone letter beside a digit (`s3`, `v2`) means nothing
    # alone.
    return (*[part.lower() for part in parts if len(part) > 1], whole)


def _mixed_terms(run: str) -> tuple[str, ...]:
    found: list[str] = []
    position = 0
    for dense in _DENSE.finditer(run):
        found += _RUNS.findall(run[position : dense.start()])
        found += _ngrams(dense.group())
        position = dense.end()
    found += _RUNS.findall(run[position:])
    return tuple(found)


def _ngrams(dense: str) -> list[str]:
    pairs = [dense[i : i + 2] for i in range(len(dense) - 1)]
    return [*pairs, *dense]
