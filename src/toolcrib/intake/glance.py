"""What the bytes of a definition rule out before anybody reads it: the cheap first question of screening.

Nearly all definitions are plain text with nothing to find. Splitting one into words costs a tenth of trying the
patterns on it, and a pattern that needs "never", "user" and "tell" cannot match where one of the three is missing.

Invariant: what is ruled out here has no hard finding; the tests draw texts from the patterns themselves to prove it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from toolcrib.intake.encoded import ENTITIES_MIN, ESCAPES_MIN, PERCENTS_MIN, RUN_MIN_CHARS, is_encoded_run
from toolcrib.kernel import kernel

_CONTROL = re.compile(rb"\\(?:u00|[bf])")
_ESCAPE = re.compile(rb"\\.")
_ASCII = bytes(range(0x80))
_WORDS = bytes(code if re.fullmatch(r"(?a:\w)", chr(code)) else 0x20 for code in range(256)).lower()
"""Words as the patterns part them: an underscore is part of a word."""
_IN_RUN = ord("a")
_RUNS = bytes(_IN_RUN if code < 0x80 and (chr(code).isalnum() or chr(code) in "+/_-") else 0x20 for code in range(256))
_HEX_DIGITS = b"0123456789abcdefABCDEFx"
_LONG_RUN = bytes([_IN_RUN]) * RUN_MIN_CHARS
_USUAL_RUN = b'"additionalProperties"'
"""The one long word that nearly every schema has, as a string of its own."""


def _set(words: str) -> frozenset[bytes]:
    return frozenset(words.encode().split())


_USER = _set("user users human humans operator operators customer customers people anyone anybody owner") | _set(
    "enduser endusers endhuman endhumans endoperator endoperators endcustomer endcustomers endpeople endanyone"
    " endanybody endowner"
)
_NOT = _set("not t never dont avoid without refrain need cannot mustnot shouldnot neednot willnot wonot")
_SPEAK = frozenset(
    stem + ending
    for stem in _set("tell mention inform notify reveal disclos alert warn")
    for ending in (b"", b"e", b"ing")
) | _set("refer talk let letting")
_SPEAK_OF = _set("mention reveal disclose refer talk")
"""What may be forbidden without a word about the user."""
_KNOW = _set("know see sees notice notices find finds realise realises realize realizes learn learns") | _set(
    "suspect suspects aware told informed read"
)
_LOG = _set("log record display show print surface report")
_QUIETLY = _set("silently secretly covertly quietly discreetly surreptitiously")
_HIDING = (b"keep", b"hid", b"conceal", b"withhold")
_KEYS = _USER | _NOT | _SPEAK | _KNOW | _LOG | _QUIETLY | _set("from this that")
_DECISIVE = _NOT | _QUIETLY | {b"from"}
"""Without one of these there is no order to conceal anything, and most definitions have none of them."""
_DECISIVE_WORD = re.compile(rb"\b(?:" + b"|".join(sorted(_DECISIVE)) + rb")\b")
_STRETCH_BEFORE, _STRETCH_AFTER = 150, 200
"""Bytes around it that an order can take: all gaps and words of the longest pattern have 140."""


_WATCHED = kernel.words(_DECISIVE) if kernel is not None else None


def suspects(raws: list[bytes]) -> Sequence[int]:
    """The places of those pieces of compact JSON in which one look does not rule out every hard finding.

    Ruled out is plain ASCII without odd escapes, decisive words, and long runs that may be encoded; the compiled kernel
    alone can say so.
    """
    if kernel is None or _WATCHED is None:
        return range(len(raws))
    return kernel.suspects(raws, _WATCHED, RUN_MIN_CHARS)


def odd_characters(raw: bytes) -> str:
    """What is not ASCII in an encoded text, in a row."""
    return "" if raw.isascii() else raw.translate(None, _ASCII).decode()


def only_parts_words(odd: str) -> bool:
    """Whether these characters mean no more than a blank between words: dashes, quotation marks, arrows."""
    return all(map(_parts_words, set(odd)))


@lru_cache(4_096)
def _parts_words(char: str) -> bool:
    plain = unicodedata.normalize("NFKD", char)
    return unicodedata.category(char)[0] in "PSZ" and not any(
        each.isalnum() or unicodedata.category(each)[0] in "CM" for each in plain
    )


def has_controls(raw: bytes) -> bool:
    """Whether compact JSON holds a control character other than line breaks and tabs."""
    return (b"\\" in raw and _CONTROL.search(raw) is not None) or b"\x7f" in raw


def without_escapes(raw: bytes) -> bytes:
    """Compact JSON whose strings hold no escape: no `n` of a line break sticks to a word, and `"` ends a string."""
    return _ESCAPE.sub(b" ", raw) if b"\\" in raw else raw


def may_conceal(text: bytes) -> bool:
    """Whether an order to hide something from the user can be in this text, whose words are all ASCII."""
    words = text.translate(_WORDS).split()
    if _DECISIVE.isdisjoint(words):
        return False
    found = _KEYS.intersection(words)
    if not found.isdisjoint(_QUIETLY):
        return True
    user = not found.isdisjoint(_USER)
    if user and b"from" in found and _mentions_hiding(text.lower()):
        return True
    if found.isdisjoint(_NOT):
        return False
    if user and not found.isdisjoint(_KNOW):
        return True
    if not found.isdisjoint(_LOG) and (b"this" in found or b"that" in found):
        return True
    return not found.isdisjoint(_SPEAK if user else _SPEAK_OF)


def _mentions_hiding(lower: bytes) -> bool:
    return any(stem in lower for stem in _HIDING)


def concealing_stretches(folded: bytes) -> Iterator[bytes]:
    """The stretches of a folded text that can hold an order to conceal: around a decisive word, and reaching as far."""
    for match in _DECISIVE_WORD.finditer(folded):
        start = max(0, match.start() - _STRETCH_BEFORE)
        # Never from the middle of a word: "hide" may go on for as long as it likes.
        stretch = folded[folded.rfind(b" ", 0, start) + 1 : match.end() + _STRETCH_AFTER]
        if may_conceal(stretch):
            yield stretch


def may_be_encoded(raw: bytes, plain: bytes) -> bool:
    """Whether the definition can hold text in another notation. `plain` is `raw` without its escapes."""
    return (
        (b"%" in raw and raw.count(b"%") >= PERCENTS_MIN)
        or (b"&" in raw and raw.count(b"&#") >= ENTITIES_MIN)
        or (b"\\" in raw and raw.count(b"\\\\x") + raw.count(b"\\\\u") >= ESCAPES_MIN)
        or any(is_encoded_run(run.decode()) for run in _long_runs(plain))
    )


def _long_runs(plain: bytes) -> Iterator[bytes]:
    """Runs that are long enough to be an order, with the letters of Base64 or hexadecimal."""
    plain = plain.replace(_USUAL_RUN, b" ")
    marked = plain.translate(_RUNS)
    start = marked.find(_LONG_RUN)
    while start >= 0:
        end = marked.find(b" ", start)
        run = plain[start : end if end >= 0 else None]
        if not (run.islower() or run.isupper()) or not run.strip(_HEX_DIGITS):
            yield run
        start = marked.find(_LONG_RUN, end) if end >= 0 else -1
