"""Results reach the model whole, or cut with a note that says how much is missing. Never silently shorter."""

from collections.abc import Mapping
from typing import cast

import orjson
from msgspec.structs import replace

from toolcrib.definitions import Json, JsonObject, Result, json_chars
from toolcrib.dialects.base import compact
from toolcrib.dialects.mcp import open_result
from toolcrib.limits import ARGUMENTS_MAX_DEPTH, RESULT_MAX_BLOCKS

FEW_BYTES = 3 * RESULT_MAX_BLOCKS
"""Every block takes three bytes at least, with its comma: the blocks of such a short result need not be counted."""

_NO_JSON = "[what JSON cannot carry]"


def limit_result(result: Result, *, max_chars: int) -> Result:
    """The result within `max_chars` characters of text, as many of structure, and a bounded number of blocks."""
    if result.encoded is not None:
        size = len(result.encoded)
        few = size <= FEW_BYTES or result.encoded.count(b"{") <= RESULT_MAX_BLOCKS
        if size <= max_chars and few:
            return result
        opened = open_result(result)
        limited = limit_result(opened, max_chars=max_chars)
        return result if limited is opened else limited
    if result.structured is not None:
        try:
            structured = json_chars(orjson.dumps(result.structured))
        except TypeError:
            return limit_result(readable(result), max_chars=max_chars)
        if structured > max_chars:
            result = _without_structure(result, structured, max_chars)
    total = sum(len(text) for block in result.content if (text := _text_of(block)) is not None)
    if total <= max_chars and len(result.content) <= RESULT_MAX_BLOCKS:
        return result
    room = max_chars
    kept: list[JsonObject] = []
    for block in result.content[:RESULT_MAX_BLOCKS]:
        text = _text_of(block)
        if text is not None:
            if room <= 0:
                continue
            block = _with_text(block, _cut(text, room))
            room -= len(text)
        kept.append(block)
    note = f"[truncated: the first {min(max_chars, total):,} of {total:,} characters"
    dropped = len(result.content) - RESULT_MAX_BLOCKS
    if dropped > 0:
        note += f", {RESULT_MAX_BLOCKS} of {len(result.content)} blocks"
    kept.append(_text(f"{note}. Ask for less: a filter, a page or a range.]"))
    return replace(result, content=tuple(kept), dialect=None, raw=None)


def note_repairs(result: Result, notes: tuple[str, ...]) -> Result:
    """The result with a line about what was repaired in the arguments, so that the model learns it."""
    if not notes:
        return result
    result = open_result(result)
    line = _text(f"[note: {'; '.join(notes)}]")
    content = result.content
    if not content and result.structured is not None:
        content = (_text(result.text),)
    return replace(result, content=(*content, line), notes=notes, dialect=None, raw=None)


def is_made_of_objects(result: Result) -> bool:
    """Whether the content of somebody's result is what it should be."""
    return all(isinstance(block, dict | Mapping) for block in cast("tuple[object, ...]", result.content))


def readable(result: Result) -> Result:
    """The result of somebody who wrote into it what JSON cannot carry, such as half a surrogate pair."""
    content = tuple(
        block if isinstance(block, dict) else _text(str(block)) for block in map(plain_json, result.content)
    )
    return replace(result, content=content, structured=plain_json(result.structured), dialect=None, raw=None)


def plain_json(value: object) -> Json:
    """The value as JSON can carry it: what has no place there is written as text."""
    try:
        return _plain(value, 0)
    except RecursionError:
        return _NO_JSON


def _plain(value: object, depth: int) -> Json:
    if depth > ARGUMENTS_MAX_DEPTH:
        raise RecursionError
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {_characters(str(key)): _plain(item, depth + 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in cast("list[object]", value)]
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and -(2**63) <= value < 2**64):
        return value
    return _characters(str(value))


def _characters(text: str) -> str:
    return text.encode(errors="replace").decode()


def _without_structure(result: Result, size: int, max_chars: int) -> Result:
    """The result without a structured value that is too long; it is text where there is nothing else."""
    content = result.content or (_text(compact(result.structured)),)
    if result.content and sum(len(_text_of(block) or "") for block in content) <= max_chars:
        content = (*content, _text(f"[truncated: a structured value of {size:,} characters was left out.]"))
    return replace(result, content=content, structured=None, dialect=None, raw=None)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _text_of(block: JsonObject) -> str | None:
    """The text of a block, or of the resource that is embedded in it."""
    text = block.get("text")
    if not isinstance(text, str) and isinstance(resource := block.get("resource"), Mapping):
        text = resource.get("text")
    return text if isinstance(text, str) else None


def _with_text(block: JsonObject, text: str) -> JsonObject:
    resource = block.get("resource")
    if not isinstance(block.get("text"), str) and isinstance(resource, Mapping):
        return {**block, "resource": {**resource, "text": text}}
    return {**block, "text": text}


def _cut(text: str, room: int) -> str:
    """At most `room` characters, and no half of a surrogate pair at the end."""
    return text if len(text) <= room else text[:room].encode(errors="ignore").decode()
