"""From a source's JSON to a frozen `Tool`: bounded, checked, and without losing a field.

The common case costs one encoding and one digest. Whether a definition is too deep, too large or refers to somewhere
else is first asked of its bytes (few brackets cannot nest deeply; no `$ref` cannot point anywhere; a NaN is written
as null); only a definition that fails that question is walked.
"""

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, cast

import msgspec
import orjson

from toolcrib.definitions import (
    DialectName,
    Json,
    JsonObject,
    Origin,
    Tool,
    ToolsetName,
    Traits,
    fitted,
    json_chars,
)  # fmt: skip
from toolcrib.dialects import DIALECTS, detect_tool_dialect
from toolcrib.dialects.base import kind_of
from toolcrib.errors import DefinitionError
from toolcrib.intake.naming import exposed_name
from toolcrib.kernel import kernel
from toolcrib.limits import (
    DEFINITION_MAX_BYTES,
    DESCRIPTION_MAX_CHARS,
    EXPOSED_NAME_MAX_CHARS,
    SCHEMA_MAX_DEPTH,
    SCHEMA_MAX_NODES,
)  # fmt: skip

if TYPE_CHECKING:
    from toolcrib._kernel import Kept, Told

_WRAPPER_CHARS = len('{"type":"function","function":{"name":"","description":,"parameters":}}')
_ESCAPE = re.compile(rb"\\.")
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"{}[]")
_ALL_ALIKE = bytes.maketrans(b"[]", b"{}")
_NAN = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
_NOTHING_SAID = Traits()
# No value takes less than two bytes.
_BOUNDS = SCHEMA_MAX_DEPTH, 2 * SCHEMA_MAX_NODES, DESCRIPTION_MAX_CHARS
"""Levels, bytes, and characters of a description up to which nobody has to look twice."""
_TAKEN = (*_BOUNDS, EXPOSED_NAME_MAX_CHARS)
_FIELDS = Tool.__struct_fields__[:-1]
"""What a tool is made of: all but its seal."""
_LITERALS = frozenset({"enum", "const", "default", "examples", "example"})
"""Keywords whose content is data, not schema."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords that hold schemas by names, which may be those of keywords."""


def freeze_tool(
    raw: object,
    *,
    toolset: str,
    origin: Origin,
    prefix: str = "",
    dialect: DialectName | None = None,
    traits: Traits | None = None,
    aliases: Iterable[str] = (),
    encoded: bytes | None = None,
    plain: bool = False,
) -> Tool:
    """The frozen tool of one definition. Raises `DefinitionError` with a reason that names the place.

    `encoded` is the definition as compact JSON, in memory of its own size, where somebody has encoded it already;
    `plain` says that there is nothing in it but the built-in types of JSON and finite numbers, as somebody has seen.
    """
    if not isinstance(raw, (dict, Mapping)):
        raise DefinitionError(f"a definition must be a JSON object, not {kind_of(raw)}")
    definition = cast("JsonObject", raw)
    encoded = fitted(_encode(definition)) if encoded is None else encoded
    aliases = tuple(aliases)
    _require_text(toolset, *aliases)
    read = None
    if kernel is not None and (plain or kernel.plain(definition)):
        told = kernel.read_tool(encoded, *_BOUNDS)
        read = _said(told) if told is not None else None
    if read is None or dialect not in {None, read[0]}:
        read = _read_values(definition, encoded, dialect)
    shape, leaf, description, schema, known, chars = read
    if len(description) > DESCRIPTION_MAX_CHARS:
        raise DefinitionError(
            f"the description has {len(description)} characters; at most {DESCRIPTION_MAX_CHARS} are taken"
        )
    name = exposed_name(prefix, leaf)
    return Tool(
        name=name,
        toolset=ToolsetName(toolset),
        origin=origin,
        leaf=leaf,
        description=description,
        schema=schema,
        raw=encoded,
        dialect=shape,
        traits=traits or known,
        aliases=aliases,
        chars=chars + len(name),
    )


def freeze_plain(
    definitions: list[JsonObject], toolsets: list[str], *, origin: Origin, most: int
) -> "tuple[Kept, bool, list[Tool | bytes]] | None":
    """What `freeze_tool` makes of plain definitions, each in the toolset of its place, all of it in one walk.

    Of a definition that has to be looked at alone it gives the bytes. With them come what the next comparison needs,
    of no more than so many values, and whether all numbers are finite. Nothing without the compiled kernel, and nothing
    of definitions that are not plain JSON.
    """
    if kernel is None or not all(name.isascii() for name in dict.fromkeys(toolsets)):
        return None
    told = (origin, "openai_chat", "mcp", _NOTHING_SAID, _traits_in, _WRAPPER_CHARS)
    try:
        return kernel.take(definitions, orjson.dumps, most, _TAKEN, toolsets, Tool, _FIELDS, told)
    except TypeError:  # plain values that JSON has no place for
        return None


_Read = tuple[DialectName, str, str, bytes, Traits, int]
"""What a definition within bounds says: dialect, name, description, encoded schema, what is known of its behaviour, and
the characters of the definition as an OpenAI chat function but for the exposed name."""


def _read_values(definition: JsonObject, encoded: bytes, dialect: DialectName | None) -> _Read:
    """Whatever a definition is made of. Read are the bytes: what is screened and what is shown must be the same."""
    said = _require_usable(definition, encoded)
    shape = dialect or detect_tool_dialect(said)
    parts = DIALECTS[shape].read_tool(said)
    schema = fitted(orjson.dumps(parts.schema))
    chars = _openai_chars(shape, encoded, parts.name, parts.description, schema)
    return shape, parts.name, parts.description, schema, _traits_of(parts.annotations), chars


def _said(told: "Told") -> _Read:
    """The same as the compiled kernel read it from the bytes."""
    _, chat, name, description, schema, said, chars = told
    if chat:
        return "openai_chat", name, description, schema, _NOTHING_SAID, chars
    return "mcp", name, description, schema, _traits_in(said), chars + _WRAPPER_CHARS


def name_of(raw: object) -> str:
    """The name of a definition that may be no definition."""
    if isinstance(raw, dict):
        inner = raw.get("function", raw)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        name = inner.get("name") if isinstance(inner, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(name, str):
            return name[:128]
    return "?"


def _encode(definition: JsonObject) -> bytes:
    try:
        return orjson.dumps(definition)
    except TypeError as error:
        raise DefinitionError(f"the definition is no JSON: {error}") from None


def _require_text(*texts: str) -> None:
    for text in texts:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise DefinitionError(f"{text!r} is no text: {error.reason}") from None


def _require_usable(definition: JsonObject, encoded: bytes) -> JsonObject:
    """What the bytes say. Raises `DefinitionError`."""
    if len(encoded) > DEFINITION_MAX_BYTES:
        raise DefinitionError(f"the definition has {len(encoded)} bytes; at most {DEFINITION_MAX_BYTES} are taken")
    said = cast("JsonObject", orjson.loads(encoded))
    if _may_break_bounds(encoded):
        _require_bounded(said)
    if b"null" in encoded and _may_hold_nan(definition):
        _require_bounded(definition)
    return said


def _may_break_bounds(encoded: bytes) -> bool:
    """Asks the bytes; `False` is certain."""
    containers = encoded.count(b"{") + encoded.count(b"[")
    return (
        # No value takes less than two bytes.
        (len(encoded) > 2 * SCHEMA_MAX_NODES and containers + encoded.count(b",") > SCHEMA_MAX_NODES)
        or (b"$" in encoded and _may_refer_elsewhere(encoded))
        or (containers > SCHEMA_MAX_DEPTH and _nests_too_deep(encoded))
    )


def _may_refer_elsewhere(encoded: bytes) -> bool:
    return any(encoded.count(key) != encoded.count(key + b':"#') for key in (b'$ref"', b'$dynamicRef"'))


def _nests_too_deep(encoded: bytes) -> bool:
    """Takes the innermost pairs of brackets away, level by level."""
    without_strings = b"".join(_ESCAPE.sub(b"", encoded).split(b'"')[::2])
    brackets = without_strings.translate(_ALL_ALIKE, _NO_BRACKETS)
    for _ in range(SCHEMA_MAX_DEPTH):
        brackets = brackets.replace(b"{}", b"")
    return bool(brackets)


def _may_hold_nan(definition: JsonObject) -> bool:
    """JSON writes NaN as null; MessagePack writes it as a number whose first bytes no other number has."""
    try:
        return _NAN.search(msgspec.msgpack.encode(definition)) is not None
    except (TypeError, ValueError, OverflowError):
        return True


def _require_bounded(definition: JsonObject) -> None:  # noqa: C901 - one walk, five questions
    """Walks the definition once: depth, size, finite numbers, and references that stay inside it."""
    identifiers: set[str] = set()
    references: list[str] = []
    nodes = 0
    stack: list[tuple[object, int, bool, bool]] = [(definition, 1, False, False)]
    while stack:
        value, depth, literal, named = stack.pop()
        nodes += 1
        if nodes > SCHEMA_MAX_NODES:
            raise DefinitionError(f"the definition has more than {SCHEMA_MAX_NODES} values")
        if isinstance(value, float) and not isfinite(value):
            raise DefinitionError("the definition holds NaN or Infinity, which JSON does not have")
        if not isinstance(value, dict | list | tuple):
            continue
        if depth > SCHEMA_MAX_DEPTH:
            raise DefinitionError(f"the definition is nested more than {SCHEMA_MAX_DEPTH} levels deep")
        if isinstance(value, dict):
            for key, item in cast("JsonObject", value).items():
                if not literal and isinstance(item, str):
                    if key in {"$ref", "$dynamicRef"} and not item.startswith("#"):
                        references.append(item)
                    elif key == "$id":
                        identifiers.add(item)
                is_data = literal or (not named and key in _LITERALS)
                stack.append((item, depth + 1, is_data, not named and key in _NAMED))
        else:
            stack.extend((item, depth + 1, literal, False) for item in cast("list[object]", value))
    for reference in references:
        target = reference.partition("#")[0]
        if not any(identifier == target or identifier.endswith("/" + target) for identifier in identifiers):
            raise DefinitionError(
                f"`$ref` to {reference!r} leaves the definition; only references inside it are followed"
            )


def _traits_in(said: bytes | None) -> Traits:
    """What encoded annotations say."""
    return _traits_of(cast("JsonObject", orjson.loads(said)) if said is not None and said.startswith(b"{") else {})


def _traits_of(annotations: Mapping[str, Json]) -> Traits:
    """What MCP annotations say. They are the source's own word: they may raise a requirement, never lower one."""
    if not annotations:
        return _NOTHING_SAID

    def flag(key: str) -> bool | None:
        value = annotations.get(key)
        return value if isinstance(value, bool) else None

    return Traits(
        read_only=flag("readOnlyHint"),
        destructive=flag("destructiveHint"),
        idempotent=flag("idempotentHint"),
        open_world=flag("openWorldHint"),
    )


def _openai_chars(dialect: DialectName, encoded: bytes, leaf: str, description: str, schema: bytes) -> int:
    """Characters of the definition as an OpenAI chat function but for its exposed name, without building it."""
    if dialect == "openai_chat":
        return json_chars(encoded) - json_chars(orjson.dumps(leaf)) + 2
    return _WRAPPER_CHARS + json_chars(orjson.dumps(description)) + json_chars(schema)
