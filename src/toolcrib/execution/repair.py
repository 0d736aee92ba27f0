"""Repairing arguments: values become what their parameter asks for, where there is only one reading."""

from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import unquote

import orjson

from toolcrib.definitions import Json, JsonObject, Tool
from toolcrib.dialects.base import kind_of
from toolcrib.execution.complexity import point

_LOOKS_MAX = 10_000
"""Parts of a schema that one repair looks at."""
_EXACT = 2**53
"""Floats up to here tell whole numbers apart."""


def repair(arguments: JsonObject, schema: Mapping[str, Json]) -> tuple[JsonObject, tuple[str, ...]]:
    """The arguments with values turned into the type that their parameter asks for, where there is only one reading."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return arguments, ()
    repaired: JsonObject = {}
    notes: list[str] = []
    kinds = _Kinds(schema)
    for name, value in arguments.items():
        wanted = kinds.of(properties.get(name))
        fixed = _coerce(value, wanted)
        optional_blank = (
            fixed == "" and value == "" and wanted and "string" not in wanted and name not in _required(schema)
        )
        if optional_blank:
            notes.append(f"`{name}` was blank and was left out")
            continue
        if type(fixed) is not type(value):
            notes.append(f"`{name}` was given as {kind_of(value)} and read as {kind_of(fixed)}")
        repaired[name] = fixed
    return repaired, tuple(notes)


def whole_numbers(arguments: JsonObject, tool: Tool) -> JsonObject:
    """The arguments with `3.0` written as `3` where only an integer is taken: JSON Schema knows no difference."""
    if b".0" not in orjson.dumps(arguments):
        return arguments
    schema = tool.parameters
    return cast("JsonObject", _whole(arguments, [schema], _Kinds(schema)))


def _whole(value: Json, schemas: list[Json], kinds: "_Kinds") -> Json:
    if isinstance(value, float):
        if kinds.is_tired:
            return value
        wanted = frozenset(name for schema in schemas for name in kinds.of(schema))
        exact = value.is_integer() and abs(value) < _EXACT
        return int(value) if exact and "integer" in wanted and "number" not in wanted else value
    if not isinstance(value, Mapping | list) or kinds.is_tired:
        return value
    parts = [part for schema in schemas for part in kinds.parts(schema)]
    if isinstance(value, list):
        items: list[Json] = [part["items"] for part in parts if "items" in part]
        return [_whole(item, items, kinds) for item in value]
    fixed: JsonObject = {}
    for key, item in cast("Mapping[str, Json]", value).items():
        inside: list[Json] = []
        for part in parts:
            named, others = part.get("properties"), part.get("additionalProperties")
            if isinstance(named, Mapping) and key in named:
                inside.append(named[key])
            elif isinstance(others, Mapping):
                inside.append(others)
        fixed[key] = _whole(item, inside, kinds)
    return fixed


def _required(schema: Mapping[str, Json]) -> frozenset[str]:
    names = schema.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


class _Kinds:
    """Types that parts of one schema take, as far as it says so plainly; looks only so far."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._left = _LOOKS_MAX

    @property
    def is_tired(self) -> bool:
        """Whether it has looked as far as it does: asking on would take its time for nothing."""
        return self._left <= 0

    def of(self, schema: Json, depth: int = 0) -> frozenset[str]:
        """The types; none if nothing is said of them."""
        if not isinstance(schema, Mapping) or not self._may_look(depth):
            return frozenset()
        kind = schema.get("type")
        if isinstance(kind, str):
            return frozenset({kind})
        if isinstance(kind, list):
            return frozenset(str(item) for item in kind)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            return frozenset(map(kind_of, values))
        found: frozenset[str] = frozenset()
        for narrower in (
            *self._of_options(schema, depth),
            *(self.of(part, depth + 1) for part in self._all_of(schema)),
        ):
            found = found & narrower if found and narrower else found or narrower
        return found

    def _of_options(self, schema: Mapping[str, Json], depth: int) -> Iterator[frozenset[str]]:
        """What each choice between schemas takes; none if one of them may take anything."""
        for key in ("anyOf", "oneOf"):
            options = schema.get(key)
            if isinstance(options, list):
                said = [self.of(option, depth + 1) for option in options]
                yield frozenset[str]().union(*said) if all(said) else frozenset()

    def parts(self, schema: Json, depth: int = 0) -> Iterator[Mapping[str, Json]]:
        """The schema, and those that it is put together of."""
        if not isinstance(schema, Mapping) or not self._may_look(depth):
            return
        yield schema
        inside = self._all_of(schema)
        for key in ("anyOf", "oneOf"):
            options = schema.get(key)
            inside += options if isinstance(options, list) else []
        for part in inside:
            yield from self.parts(part, depth + 1)

    def _all_of(self, schema: Mapping[str, Json]) -> list[Json]:
        """What a value has to fit besides: what the schema refers to, and its `allOf`."""
        parts = schema.get("allOf")
        found: list[Json] = list(parts) if isinstance(parts, list) else []
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            found.append(point(self._root, unquote(reference[1:])))
        return found

    def _may_look(self, depth: int) -> bool:
        self._left -= 1
        return self._left > 0 and depth < 16


def _coerce(value: Json, wanted: frozenset[str]) -> Json:
    """The value as one of the wanted types, or itself."""
    if isinstance(value, str) and "string" not in wanted:
        return _from_text(value.strip(), wanted, value)
    # Not a float: 3.10 and 3.1 are one number, and which of them was meant nobody can tell any more.
    if isinstance(value, int) and not isinstance(value, bool) and wanted == frozenset({"string"}):
        return orjson.dumps(value).decode()
    if "array" in wanted and value is not None and not isinstance(value, list) and wanted <= {"array", "null"}:
        return [value]
    return value


def _from_text(text: str, wanted: frozenset[str], value: str) -> Json:
    if "boolean" in wanted and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if not wanted & {"integer", "number", "object", "array", "null"}:
        return value
    try:
        parsed = cast("Json", orjson.loads(text))
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return [value] if wanted <= {"array", "null"} and text else value
    kinds = (
        {kind_of(parsed), "number"} if isinstance(parsed, int) and not isinstance(parsed, bool) else {kind_of(parsed)}
    )
    if isinstance(parsed, float) and parsed.is_integer() and abs(parsed) < _EXACT and not kinds & wanted:
        return int(parsed) if "integer" in wanted else value
    return parsed if kinds & wanted else value
