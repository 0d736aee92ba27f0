"""Results reach the model whole, or cut with a note that says how much is missing. Never silently shorter."""

from msgspec.structs import replace

from toolcrib.definitions import JsonObject, Result
from toolcrib.dialects.mcp import open_result
from toolcrib.limits import RESULT_MAX_BLOCKS

FEW_BYTES = 3 * RESULT_MAX_BLOCKS
"""Every block takes three bytes at least, with its comma: the blocks of such a short result need not be counted."""


def limit_result(result: Result, *, max_chars: int) -> Result:
    """The result within `max_chars` characters of text and a bounded number of blocks."""
    if result.encoded is not None:
        size = len(result.encoded)
        few = size <= FEW_BYTES or result.encoded.count(b"{") <= RESULT_MAX_BLOCKS
        if size <= max_chars and few:
            return result
        opened = open_result(result)
        limited = limit_result(opened, max_chars=max_chars)
        return result if limited is opened else limited
    total = sum(len(text) for block in result.content if isinstance(text := block.get("text"), str))
    if total <= max_chars and len(result.content) <= RESULT_MAX_BLOCKS:
        return result
    room = max_chars
    kept: list[JsonObject] = []
    for block in result.content[:RESULT_MAX_BLOCKS]:
        text = block.get("text")
        if isinstance(text, str):
            if room <= 0:
                continue
            block = {**block, "text": _cut(text, room)}
            room -= len(text)
        kept.append(block)
    note = f"[truncated: the first {min(max_chars, total):,} of {total:,} characters"
    dropped = len(result.content) - RESULT_MAX_BLOCKS
    if dropped > 0:
        note += f", {RESULT_MAX_BLOCKS} of {len(result.content)} blocks"
    kept.append({"type": "text", "text": f"{note}. Ask for less: a filter, a page or a range.]"})
    return replace(result, content=tuple(kept), dialect=None, raw=None)


def note_repairs(result: Result, notes: tuple[str, ...]) -> Result:
    """The result with a line about what was repaired in the arguments, so that the model learns it."""
    if not notes:
        return result
    line: JsonObject = {"type": "text", "text": f"[note: {'; '.join(notes)}]"}
    result = open_result(result)
    return replace(result, content=(*result.content, line), dialect=None, raw=None)


def _cut(text: str, room: int) -> str:
    """At most `room` characters, and no half of a surrogate pair at the end."""
    return text if len(text) <= room else text[:room].encode(errors="ignore").decode()
