"""Arguments are checked before anything runs, and a wrong call is repaired in one turn (X5).

The check is offline (nothing is ever fetched), linear in time (patterns cannot backtrack) and compiled once per
schema. What a model commonly gets wrong but means clearly ("42" for an integer, an object as a JSON string) is
repaired and said so. A schema that cannot be compiled checks nothing: a source's mistake must not make its tool
unusable.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

import jsonschema_rs
import orjson
from msgspec import Struct

from toolcrib.definitions import Json, JsonObject, Tool
from toolcrib.dialects.base import kind_of
from toolcrib.errors import InvalidArguments
from toolcrib.execution.complexity import Work, measure_work
from toolcrib.limits import CACHE_VALIDATORS
from toolcrib.retrieval.signature import compact_parameters

_ERRORS_SHOWN = 5
_MESSAGE_MAX_CHARS = 600


class Checked(Struct, frozen=True, kw_only=True):
    """Arguments that fit, and what was repaired in them."""

    arguments: JsonObject
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compiled:
    validator: jsonschema_rs.Validator
    work: Work


class Validator:
    """Checks arguments against schemas, compiled once per content."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[bytes, _Compiled | None] = OrderedDict()

    def check(self, tool: Tool, arguments: JsonObject) -> Checked:
        """The arguments to run with. Raises `InvalidArguments` with what is wrong, where, and the schema."""
        if self.fits(tool, arguments):
            return Checked(arguments=arguments)
        validator = cast("_Compiled", self._compile(tool.schema)).validator
        repaired, notes = _repair(arguments, tool.parameters)
        if notes and validator.is_valid(repaired):
            return Checked(arguments=repaired, notes=notes)
        raise self._refusal(tool, validator, arguments)

    def fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """Whether `check` would let the arguments pass as they are, or has nothing to check them by."""
        compiled = self._compile(tool.schema)
        # How deep the arguments are matters only to a schema that leads back into itself.
        if compiled is None or not compiled.work.allows(_depth(arguments) if compiled.work.recursions > 1 else 1):
            return True
        return compiled.validator.is_valid(arguments)

    def check_of(self, tool: Tool) -> Callable[[JsonObject], bool] | None:
        """What `fits` asks of the tool's arguments, for whoever checks them often; nothing if it asks nothing."""
        compiled = self._compile(tool.schema)
        if compiled is None or not compiled.work.allows(1):
            return None
        return partial(self.fits, tool) if compiled.work.recursions > 1 else compiled.validator.is_valid

    def is_checkable(self, tool: Tool) -> bool:
        """Whether the tool's arguments can be checked at all."""
        compiled = self._compile(tool.schema)
        return compiled is not None and compiled.work.allows(1)

    def _compile(self, schema: bytes) -> _Compiled | None:
        known = self._compiled.get(schema)
        if known is not None or schema in self._compiled:
            self._compiled.move_to_end(schema)
            return known
        compiled = self._compiled[schema] = _compile(schema)
        if len(self._compiled) > CACHE_VALIDATORS:
            self._compiled.popitem(last=False)
        return compiled

    def _refusal(self, tool: Tool, compiled: "jsonschema_rs.Validator", arguments: JsonObject) -> InvalidArguments:
        errors = list(islice(compiled.iter_errors(arguments), _ERRORS_SHOWN))
        text = "; ".join(_problem(error) for error in errors)[:_MESSAGE_MAX_CHARS]
        return InvalidArguments(
            f"`{tool.name}` was not run: {text}. Send the call again with arguments that fit the schema.",
            # The operator's text names places and constraints, never values.
            detail="; ".join(f"{_path(error) or 'arguments'}: {error.schema_path[-1]}" for error in errors),
            extra={"parameters": compact_parameters(tool)},
        )


def _compile(schema: bytes) -> _Compiled | None:
    """The compiled schema, or nothing if it cannot be checked. A pattern beyond linear time is left out, not obeyed."""
    parsed = cast("JsonObject", orjson.loads(schema))
    work = measure_work(parsed) if b'"$ref"' in schema else Work(1, 0)
    for candidate in (parsed, _without_patterns(parsed)):
        try:
            return _Compiled(
                jsonschema_rs.validator_for(candidate, offline=True, pattern_options=jsonschema_rs.RegexOptions()),
                work,
            )
        except (ValueError, jsonschema_rs.ReferencingError):
            continue
    return None


def _without_patterns(value: Any) -> Any:  # noqa: ANN401 - walks any JSON
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _without_patterns(item) for key, item in items if not (key == "pattern" and isinstance(item, str))}
    return [_without_patterns(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _depth(value: Json) -> int:
    """Levels of nesting; `bridge` has bounded them."""
    if isinstance(value, Mapping):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    return 1 + max((_depth(item) for item in value), default=0) if isinstance(value, list) else 0


def _problem(error: jsonschema_rs.ValidationError) -> str:
    path = _path(error)
    message = error.message if len(error.message) <= 200 else f"{error.message[:199]}…"
    return f"`{path}`: {message}" if path else message


def _path(error: jsonschema_rs.ValidationError) -> str:
    return ".".join(str(part) for part in error.instance_path)


def _repair(arguments: JsonObject, schema: Mapping[str, Json]) -> tuple[JsonObject, tuple[str, ...]]:
    """The arguments with values turned into the type that their parameter asks for, where there is only one reading."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return arguments, ()
    repaired: JsonObject = {}
    notes: list[str] = []
    for name, value in arguments.items():
        wanted = _types(properties.get(name))
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


def _required(schema: Mapping[str, Json]) -> frozenset[str]:
    names = schema.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def _types(schema: Json) -> frozenset[str]:
    """Types that a parameter takes, as far as its schema says so plainly."""
    if not isinstance(schema, Mapping):
        return frozenset()
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(str(item) for item in kind)
    found: frozenset[str] = frozenset()
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list):
            found |= frozenset(name for option in options for name in _types(option))
    return found


def _coerce(value: Json, wanted: frozenset[str]) -> Json:
    """The value as one of the wanted types, or itself."""
    if isinstance(value, str) and "string" not in wanted:
        return _from_text(value.strip(), wanted, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and wanted == frozenset({"string"}):
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
    return parsed if kinds & wanted else value
