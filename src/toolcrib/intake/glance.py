"""What the bytes of a definition rule out before anybody reads it: the cheap first question of screening.

Nearly all definitions are plain text with nothing to find. Splitting one into words costs a tenth of trying the
patterns on it, and a pattern that needs "never", "user" and "tell" cannot match where one of the three is missing.

Invariant: what is ruled out here has no hard finding; the tests draw texts from the patterns themselves to prove it.
"""

import re

from toolcrib.intake.encoded import is_encoded_run

_CONTROL = re.compile(rb"\\(?:u00|[bf])")
_BLANKS = ((b"\\\\", b" "), (b"\\n", b" "), (b"\\t", b" "), (b"\\r", b" "), (b'\\"', b"'"))
_WORDS = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else 0x20 for code in range(256))
_RUNS = bytes(code if code < 0x80 and (chr(code).isalnum() or chr(code) in "+/_-") else 0x20 for code in range(256))
_RUN_MIN_CHARS = 20


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
_KNOW = _set("know see sees notice notices find finds realise realises realize realizes learn learns") | _set(
    "suspect suspects aware told informed read"
)
_LOG = _set("log record display show print surface report")
_QUIETLY = _set("silently secretly covertly quietly discreetly surreptitiously")
_HIDING = (b"keep", b"hid", b"conceal", b"withhold")
_KEYS = _USER | _NOT | _SPEAK | _KNOW | _LOG | _QUIETLY | _set("from this that")


def has_controls(raw: bytes) -> bool:
    """Whether compact JSON holds a control character other than line breaks and tabs."""
    return (b"\\" in raw and _CONTROL.search(raw) is not None) or b"\x7f" in raw


def without_escapes(raw: bytes) -> bytes:
    """Compact JSON whose strings hold no escape: no `n` of a line break sticks to a word, and `"` ends a string."""
    if b"\\" in raw:
        for escape, blank in _BLANKS:
            raw = raw.replace(escape, blank)
    return raw


def may_conceal(text: bytes) -> bool:
    """Whether an order to hide something from the user can be in this text of plain letters."""
    lower = text.lower()
    found = _KEYS.intersection(lower.translate(_WORDS).split())
    if not found.isdisjoint(_QUIETLY):
        return True
    user = not found.isdisjoint(_USER)
    if user and b"from" in found and any(stem in lower for stem in _HIDING):
        return True
    if found.isdisjoint(_NOT):
        return False
    if user and not found.isdisjoint(_KNOW):
        return True
    return not found.isdisjoint(_SPEAK) or (not found.isdisjoint(_LOG) and (b"this" in found or b"that" in found))


def may_be_encoded(raw: bytes, plain: bytes) -> bool:
    """Whether the definition can hold text in another notation. `plain` is `raw` without its escapes."""
    if b"%" in raw or b"&#" in raw or b"\\\\x" in raw or b"\\\\u" in raw:
        return True
    runs = {run for run in plain.translate(_RUNS).split() if len(run) >= _RUN_MIN_CHARS}
    # The one long word that nearly every schema has.
    runs.discard(b"additionalProperties")
    return any(is_encoded_run(run.decode()) for run in runs)
