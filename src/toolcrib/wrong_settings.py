"""What is wrong with settings, where it stands, and what was meant: one sentence from a reader's complaint.

The reader leaves out which entry of a section it means (`mcpServers[...]`). Whoever has ten servers needs the name, so
it is found out: of several entries it is the first that is refused on its own, with the same words.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from toolcrib.definitions import Json, JsonObject
from toolcrib.intake.naming import nearest
from toolcrib.settings import Settings

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$(?P<path>[^`]*)`)?")
_PLACED = re.compile(r"(?P<text>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_KEY = re.compile(r"Expected `str`, got `(?P<kind>\w+)` - at `key` in `\$(?P<path>[^`]*)`")
_PART = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_TEXT = re.compile(r".*\.(?:args\[\d+\]|(?:env|headers)\[\.\.\.\])")
"""Where text is meant whatever it looks like, and YAML reads a number."""

_GONE = {("tools.tool_search.semantic", "onnx"): "static"}
"""Values that a setting had once, and which one to use in their place."""


def explain(message: str, data: JsonObject) -> str:
    """The sentence for a complaint about data that should have been settings."""
    unknown = _UNKNOWN.match(message)
    if unknown:
        path = (unknown["path"] or "").strip(".")
        place = _spell_out(path, message, data)
        key = f"{place}.{unknown['key']}" if place else unknown["key"]
        hint = nearest(unknown["key"], known_keys(path))
        return f"`{key}` is no setting{f': did you mean `{hint}`?' if hint else '.'}"
    key = _KEY.match(message)
    if key:
        # YAML reads `off`, `no` and numbers as what they look like.
        place = _spell_out(key["path"].strip("."), message, data)
        return f"`{place}`: a name in it is read as `{key['kind']}`, not as text: put it in quotes."
    placed = _PLACED.match(message)
    path = (placed["path"] or "").strip(".") if placed else ""
    text = placed["text"] if placed else message
    for (place, value), instead in _GONE.items():
        if (path, text) == (place, f"Invalid enum value '{value}'"):
            return f"`{place}`: `{value}` is no longer there: use `{instead}`."
    step = ": put it in quotes" if text.startswith("Expected `str`") and _TEXT.fullmatch(path) else ""
    return f"`{_spell_out(path, message, data)}`: {text}{step}." if path else f"{text}."


def known_keys(path: str = "") -> tuple[str, ...]:
    """The keys of the section at a dotted path."""
    section: Any = Settings
    for part in filter(None, path.replace("[...]", "").split(".")):
        if not hasattr(section, "__struct_fields__"):
            return ()
        hints = {item.name: item.type for item in msgspec.structs.fields(section)}
        section = hints.get(part)
        if section is None:
            return ()
        args = getattr(section, "__args__", None)
        if args and not hasattr(section, "__struct_fields__"):
            section = args[-1]
    return tuple(section.__struct_fields__) if hasattr(section, "__struct_fields__") else ()


def _spell_out(path: str, message: str, data: JsonObject) -> str:
    """The place with every name: `mcpServers[...].env` becomes `mcpServers.github.env`."""

    def fails(changed: Json) -> bool:
        try:
            msgspec.convert(changed, Settings, strict=True)
        except msgspec.ValidationError as error:
            return str(error) == message
        return False

    return _walk(_PART.findall(path), data, fails).removeprefix(".")


def _walk(parts: Sequence[str], node: Json, fails: Callable[[Json], bool]) -> str:
    """Follows a path through the data; `fails` says whether another value in the place of `node` is as wrong."""
    if not parts:
        return ""
    head, *rest = parts
    if head == "[...]" and isinstance(node, Mapping):
        for key, child in node.items():
            if fails({key: child}):
                return f".{key}{_walk(rest, child, lambda new, key=key: fails({key: new}))}"
    elif isinstance(node, Mapping) and head in node:
        return f".{head}{_walk(rest, node[head], lambda new: fails({**node, head: new}))}"
    return "".join(part if part.startswith("[") else f".{part}" for part in parts)
