"""Text inside text: what Base64, hexadecimal, percent, entity and backslash notation decode to.

Only what decodes to readable words is handed on; digests, keys and pictures decode to noise and end here. Bounded in
count and length, and one level deep.
"""

import base64
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from toolcrib.limits import DECODED_MAX_CHARS, DECODED_RUNS

RUN_MIN_CHARS, ESCAPES_MIN, PERCENTS_MIN, ENTITIES_MIN = 20, 8, 3, 6
"""How much of each notation makes a text worth decoding."""

_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{RUN_MIN_CHARS},}}+={{0,2}}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2}){10,}")
_ESCAPED = re.compile(rf"(?:\\x[0-9a-fA-F]{{2}}|\\u[0-9a-fA-F]{{4}}){{{ESCAPES_MIN},}}")
_PERCENT = re.compile(rf"(?:[\w.~-]{{0,20}}%[0-9a-fA-F]{{2}}){{{PERCENTS_MIN},}}[\w.~-]{{0,20}}")
_ENTITIES = re.compile(rf"(?:&#x?[0-9a-fA-F]{{1,6}};[\w ,.']{{0,8}}){{{ENTITIES_MIN},}}")


def decoded_texts(text: str) -> Iterator[tuple[str, int, int, str]]:
    """(notation, start, end, decoded) for each readable text that is encoded in this one."""
    left = DECODED_RUNS
    for how, sign, pattern, decode in _NOTATIONS:
        if sign and sign not in text:
            continue
        for match in pattern.finditer(text):
            inner = decode(match[0][:DECODED_MAX_CHARS])
            if inner is None or inner == match[0] or not _is_readable(inner):
                continue
            yield how, match.start(), match.end(), inner
            left -= 1
            if left == 0:
                return


def is_encoded_run(run: str) -> bool:
    """Whether a run of letters and digits is readable text in another notation."""
    inner = _from_run(run[:DECODED_MAX_CHARS])
    return inner is not None and _is_readable(inner)


def _from_run(run: str) -> str | None:
    """A run of letters and digits: hexadecimal if it can be, else Base64, else an identifier."""
    try:
        if _HEX.fullmatch(run):
            return bytes.fromhex(run.removeprefix("0x")).decode()
        if run.islower() or run.isupper() or ("_" in run and not any(char.isdecimal() for char in run)):
            return None
        body = run.rstrip("=").replace("-", "+").replace("_", "/")
        body = body[: len(body) - (len(body) % 4 == 1)]
        return base64.b64decode(body + "=" * (-len(body) % 4)).decode()
    except ValueError:  # neither, or not text
        return None


def _from_escapes(run: str) -> str | None:
    return "".join(chr(int(code[2:], 16)) for code in re.findall(r"\\x..|\\u....", run))


def _is_readable(text: str) -> bool:
    """Mostly letters and spaces, with more than one word: prose, not a key or a picture."""
    if len(text) < 12:
        return False
    plain = sum(char.isalpha() or char.isspace() for char in text)
    return plain / len(text) > 0.75 and len(text.split()) > 1


_NOTATIONS: tuple[tuple[str, str, re.Pattern[str], Callable[[str], str | None]], ...] = (
    ("encoded", "", _RUN, _from_run),
    ("backslash-escaped", "\\", _ESCAPED, _from_escapes),
    ("percent-encoded", "%", _PERCENT, unquote),
    ("entity-encoded", "&#", _ENTITIES, html.unescape),
)
"""Name, a sign without which there is none, where it is, and what it says."""
