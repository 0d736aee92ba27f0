"""Hidden characters: what a model reads and a person does not see.

Decided on the raw text, before any normalisation. Text of many scripts needs some of these characters, so each is
judged by its neighbours: a joiner inside a family emoji or a Persian word is honest, the same joiner inside Latin text
is not. Everything that has no such excuse is a finding.
"""

import re
import unicodedata
from collections.abc import Iterator

from toolcrib.intake.findings import OTHER_INVISIBLE, Finding, Severity, excerpt_of, is_variation_selector

_SUSPECT = frozenset({"Cf", "Co", "Cn", "Cc", "Cs", "Zl", "Zp"})
_HONEST_CONTROLS = frozenset("\t\n\r")
_PLAIN = _HONEST_CONTROLS | frozenset(map(chr, range(0x20, 0x7F)))
_ZWNJ, _ZWJ = "\u200c", "\u200d"
_MARKS_OF_DIRECTION = frozenset("\u200e\u200f\u061c")
_ISOLATES = frozenset("\u2066\u2067\u2068\u2069")
_FLAG = "\U0001f3f4"
_FLAGS = re.compile("\U0001f3f4(?:" + "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) for region in ("gbeng", "gbsct", "gbwls")
) + ")\U000e007f")  # fmt: skip

_JOINED_SCRIPTS = (
    (0x0600, 0x08FF), (0x0900, 0x0DFF), (0x0E80, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1800, 0x18AF),
    (0xFB50, 0xFDFF), (0xFE70, 0xFEFC), (0x11000, 0x11FFF),
)  # fmt: skip
"""Scripts in which joiners shape letters: Arabic, the scripts of India, Lao, Tibetan, Myanmar, Khmer, Mongolian."""

_HARD_CONTROLS = frozenset("\x08\x1b\x7f") | {chr(code) for code in range(0x80, 0xA0)}
"""Controls that move the cursor or start a terminal sequence; the others are litter."""

_WHY = {
    "tag": "tag characters spell out text that only a model reads",
    "bidi": "direction controls show another order of characters than the model reads",
    "zero_width": "zero-width characters hide text or split words from filters",
    "variation_selector": "a variation selector where there is nothing to vary can carry hidden data",
    "private_use": "private-use characters have no agreed meaning or shape",
    "unassigned": "the character is not assigned in the Unicode version known here",
    "control": "control characters can drive a terminal and are no text",
    "separator": "an invisible line or paragraph separator",
    "filler": "the character takes part in text without showing anything",
}


def find_hidden(path: str, text: str) -> Iterator[Finding]:
    """Findings on the hidden characters of one string: one per kind, with the first place."""
    if text.isascii() and (text.isprintable() or not _has_controls(text)):
        return
    suspects = {char for char in set(text) if _is_suspect(char)}
    if not suspects:
        return
    flags = {index for match in _FLAGS.finditer(text) for index in range(*match.span())}
    kinds: dict[tuple[str, Severity], list[int]] = {}
    for index, char in enumerate(text):
        if char in suspects and index not in flags and not _has_excuse(text, index):
            kinds.setdefault(_judge(text, index), []).append(index)
    for (kind, severity), places in kinds.items():
        codes = sorted({f"U+{ord(text[index]):04X}" for index in places})
        shown = ", ".join(codes[:4]) + (", …" if len(codes) > 4 else "")
        yield Finding(
            rule=f"hidden.{kind}",
            severity=severity,
            path=path,
            excerpt=excerpt_of(text, places[0], places[0] + 1),
            explanation=f"{len(places)} hidden character{'s' if len(places) > 1 else ''} ({shown}): {_WHY[kind]}",
        )


def has_suspects(text: str) -> bool:
    """Whether there is any character that could be a finding: asked of a whole definition."""
    return any(_is_suspect(char) for char in set(text) - _PLAIN)


def _has_controls(text: str) -> bool:
    return any(char < " " or char == "\x7f" for char in set(text) - _HONEST_CONTROLS)


def _is_suspect(char: str) -> bool:
    if char in _HONEST_CONTROLS:
        return False
    return unicodedata.category(char) in _SUSPECT or char in OTHER_INVISIBLE or is_variation_selector(char)


def _has_excuse(text: str, index: int) -> bool:
    """Whether its neighbours need the character."""
    char = text[index]
    before = text[index - 1] if index else ""
    after = text[index + 1] if index + 1 < len(text) else ""
    if char in {"\ufe0e", "\ufe0f"}:
        return bool(before) and (_is_symbol(before) or (before in "0123456789#*" and after == "\u20e3"))
    if is_variation_selector(char):
        mongolian = "\u180b" <= char <= "\u180f" and "\u1820" <= before <= "\u18aa"
        return mongolian or (bool(before) and unicodedata.name(before, "").startswith("CJK "))
    if char == _ZWJ and _is_symbol(after) and (_is_symbol(before) or before == "\ufe0f"):
        return True
    if char in {_ZWJ, _ZWNJ}:
        return _is_joined(before) and (_is_joined(after) or not after or not after.isalnum())
    if char in _MARKS_OF_DIRECTION:
        return _has_rtl(text)
    if char in _ISOLATES:
        opened = sum(text.count(start) for start in "\u2066\u2067\u2068")
        return _has_rtl(text) and opened == text.count("\u2069")
    if unicodedata.category(char) == "Cf" and _is_joined(char):
        return _is_joined(after)  # the visible number signs of Arabic, before Arabic digits
    if char == "\u2800":
        return "\u2801" <= before <= "\u28ff" or "\u2801" <= after <= "\u28ff"
    if char in "\u115f\u1160":
        return "\u1100" <= before <= "\u11ff" or "\u1100" <= after <= "\u11ff"
    return False


def _judge(text: str, index: int) -> tuple[str, Severity]:
    char = text[index]
    code, category = ord(char), unicodedata.category(char)
    if 0xE0000 <= code <= 0xE007F:
        return "tag", "hard"
    if is_variation_selector(char):
        # One stray selector is litter of an editor; several in a row are a channel.
        alone = not any(is_variation_selector(near) for near in text[max(0, index - 1) : index] + text[index + 1 :][:1])
        return "variation_selector", "soft" if alone and char in "\ufe0e\ufe0f" else "hard"
    if category == "Co":
        return "private_use", "hard"
    if category in {"Cn", "Cs"}:
        return "unassigned", "hard" if _is_noncharacter(code) or category == "Cs" else "soft"
    if category == "Cc":
        return "control", "hard" if char in _HARD_CONTROLS else "soft"
    if category in {"Zl", "Zp"}:
        return "separator", "soft"
    if char in OTHER_INVISIBLE:
        return "filler", "hard"
    if char in _MARKS_OF_DIRECTION or char in _ISOLATES or 0x202A <= code <= 0x202E:
        return "bidi", "hard"
    if char == "\u00ad" or (char == "\ufeff" and index == 0):
        return "zero_width", "soft"  # a soft hyphen or a byte order mark that was copied along
    return "zero_width", "hard"


def _is_noncharacter(code: int) -> bool:
    """Never to be assigned, or reserved for characters that show nothing."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF or 0xE0000 <= code <= 0xE0FFF or 0xFFF0 <= code <= 0xFFF8


def _is_symbol(char: str) -> bool:
    if not char:
        return False
    code = ord(char)
    return (
        (unicodedata.category(char) in {"So", "Sm", "Sk", "Po"} and code > 0x7F)
        or (unicodedata.category(char) == "Cn" and 0x1F000 <= code <= 0x1FAFF)
        or char in "\u2194\u203c\u2049\u3030\u303d\u2139©®™"
    )  # fmt: skip


def _is_joined(char: str) -> bool:
    return bool(char) and any(low <= ord(char) <= high for low, high in _JOINED_SCRIPTS)


def _has_rtl(text: str) -> bool:
    return any(unicodedata.bidirectional(char) in {"R", "AL"} and char not in "\u200f\u061c" for char in set(text))
