"""What a server sends that is nearly JSON-RPC: half a character, a number that is none, several messages in one.

A message is not thrown away for what can be mended, and what cannot be read still says whom it was meant for: that one
caller is told at once, instead of waiting for its deadline. This is for messages that were refused; others never come
here.
"""

import json
import re
from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec import Raw

_ESCAPES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_UNKNOWN = rb"\ufffd"
_HALF_LENGTH = len(_UNKNOWN)
_MESSAGES = msgspec.json.Decoder(list[Raw])
_BLANKS = b" \t\r\n"


def with_whole_characters(data: bytes) -> bytes | None:
    """The text with every half of a character replaced, as a cut in the middle of an emoji leaves it; nothing if none.

    Half of a pair of escapes is no character, and no decoder takes it.
    """
    if b"\\ud" not in data and b"\\uD" not in data:
        return None
    whole = _ESCAPES.sub(_mended, data)
    return None if whole == data else whole


def _mended(found: "re.Match[bytes]") -> bytes:
    escape = found[0]
    is_half = len(escape) == _HALF_LENGTH and escape[2:3] in (b"d", b"D")
    return _UNKNOWN if is_half else escape


def messages_in(data: bytes) -> Sequence[bytes]:
    """The messages of a batch, which one old revision knows; none if it is no batch."""
    if not data.lstrip(_BLANKS).startswith(b"["):
        return ()
    try:
        parts = [bytes(part) for part in _MESSAGES.decode(data)]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()
    return parts if all(part.lstrip(_BLANKS).startswith(b"{") for part in parts) else ()


def answered_ids(data: bytes) -> Sequence[int]:
    """The ids of the requests that a message means to answer, whatever is wrong with it."""
    if not data.lstrip(_BLANKS).startswith((b"{", b"[")):
        return ()
    try:
        found: object = json.loads(data.decode(errors="replace"), strict=False)
    except (ValueError, RecursionError):
        return ()
    items = cast("list[object]", found) if isinstance(found, list) else [found]
    named = [_answered(cast("dict[str, object]", item)) for item in items if isinstance(item, dict)]
    return [identifier for identifier in named if identifier is not None]


def _answered(message: dict[str, object]) -> int | None:
    if "method" in message or not ("result" in message or "error" in message):
        return None
    return whole_number(message.get("id"))


def whole_number(identifier: object) -> int | None:
    """The id of one of our requests, however it is written: ours are numbers, and come back as texts from some."""
    if isinstance(identifier, bool):
        return None
    if isinstance(identifier, float):
        return int(identifier) if identifier.is_integer() else None
    if isinstance(identifier, str):
        return int(identifier) if identifier.isascii() and identifier.isdigit() and len(identifier) < 20 else None
    return identifier if isinstance(identifier, int) else None
