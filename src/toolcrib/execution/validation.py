"""Arguments are checked before anything runs, and a wrong call is repaired in one turn (X5).

The check is offline (nothing is ever fetched), linear in time (patterns cannot backtrack) and compiled once per
schema. What a model commonly gets wrong but means clearly ("42" for an integer, an object as a JSON string) is
repaired and said so. A schema that cannot be compiled checks nothing: a source's mistake must not make its tool
unusable.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

import jsonschema_rs
import orjson
from msgspec import Struct

from toolcrib.bridge import read_arguments
from toolcrib.definitions import Json, JsonObject, Tool
from toolcrib.errors import InvalidArguments
from toolcrib.execution.complexity import Work, measure_work
from toolcrib.execution.repair import repair, whole_numbers
from toolcrib.limits import CACHE_VALIDATORS, REFUSAL_SCHEMA_MAX_CHARS
from toolcrib.retrieval.signature import build_signature, compact_parameters

_ERRORS_SHOWN = 5
_MESSAGE_MAX_CHARS = 600
_TOLD_VISITS_MAX, _TOLD_MAX_BYTES = 10_000, 16_384
"""Schemas and arguments up to which every error is looked for."""


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
            return Checked(arguments=whole_numbers(arguments, tool))
        compiled = cast("_Compiled", self._compile(tool.schema))
        repaired, notes = repair(arguments, tool.parameters)
        # What was a string is held to the bounds of all arguments, and to what may be checked by this schema.
        if notes and self.fits(tool, repaired := read_arguments(repaired)):
            return Checked(arguments=whole_numbers(repaired, tool), notes=notes)
        raise self._refusal(tool, compiled, arguments)

    def fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """Whether `check` would let the arguments pass as they are, or has nothing to check them by."""
        compiled = self._compile(tool.schema)
        if compiled is None or not _allows(compiled.work, arguments):
            return True
        return compiled.validator.is_valid(arguments)

    def check_of(self, tool: Tool) -> Callable[[JsonObject], bool] | None:
        """What `fits` asks of the tool's arguments, for whoever checks them often; nothing if it asks nothing."""
        compiled = self._compile(tool.schema)
        if compiled is None or not compiled.work.allows(1):
            return None
        is_plain = compiled.work.recursions <= 1 and compiled.work.is_plain
        return compiled.validator.is_valid if is_plain else partial(self.fits, tool)

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

    def _refusal(self, tool: Tool, compiled: _Compiled, arguments: JsonObject) -> InvalidArguments:
        errors = _errors_of(compiled, arguments)
        text = "; ".join(_problem(error) for error in errors)[:_MESSAGE_MAX_CHARS]
        return InvalidArguments(
            f"`{tool.name}` was not run: {text}. Send the call again with arguments that fit the schema.",
            # The operator's text names places and constraints, never values.
            detail="; ".join(f"{_path(error) or 'arguments'}: {error.schema_path[-1]}" for error in errors),
            extra=_told_parameters(tool, arguments, errors),
        )


def _compile(schema: bytes) -> _Compiled | None:
    """The compiled schema, or nothing if it cannot be checked. A pattern beyond linear time is left out, not obeyed."""
    parsed = cast("JsonObject", orjson.loads(schema))
    # Every keyword that refers to something ends alike, unless it is written in escapes.
    work = measure_work(parsed) if b'ef"' in schema or b"\\u" in schema else Work(1, 0)
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


def _told_parameters(tool: Tool, arguments: JsonObject, errors: Sequence[jsonschema_rs.ValidationError]) -> JsonObject:
    """What the arguments must fit: the whole schema, or as much of it as a refusal may cost."""
    whole = compact_parameters(tool)
    if len(orjson.dumps(whole)) <= REFUSAL_SCHEMA_MAX_CHARS:
        return {"parameters": whole}
    properties, required = whole.get("properties"), whole.get("required")
    wrong = {str(error.instance_path[0]) for error in errors if error.instance_path}
    if isinstance(required, list):
        wrong |= {name for name in required if isinstance(name, str) and name not in arguments}
    if isinstance(properties, Mapping):
        part: JsonObject = {
            "type": "object",
            "properties": {key: properties[key] for key in properties if key in wrong},
        }
        encoded = orjson.dumps(part)
        if part["properties"] and len(encoded) <= REFUSAL_SCHEMA_MAX_CHARS and b'ef"' not in encoded:
            return {"parameters": part, "complete": False}
    return {"signature": build_signature(tool).text[:REFUSAL_SCHEMA_MAX_CHARS], "complete": False}


def _errors_of(compiled: _Compiled, arguments: JsonObject) -> list[jsonschema_rs.ValidationError]:
    """What is wrong with arguments that do not fit: the first few errors, or the first where there may be very many.

    The validator makes all of them before it gives the first, each with a copy of the value that is wrong.
    """
    if compiled.work.visits <= _TOLD_VISITS_MAX and len(orjson.dumps(arguments)) <= _TOLD_MAX_BYTES:
        return list(islice(compiled.validator.iter_errors(arguments), _ERRORS_SHOWN))
    try:
        compiled.validator.validate(arguments)
    except jsonschema_rs.ValidationError as error:
        return [error]
    return []


def _allows(work: Work, arguments: JsonObject) -> bool:
    # How deep the arguments are matters only to a schema that leads back into itself, how many to one that is large.
    depth = _depth(arguments) if work.recursions > 1 else 1
    return work.allows(depth) if work.is_plain else work.allows(depth, _count(arguments))


def _count(value: Json) -> int:
    """Values in a value, itself included."""
    if isinstance(value, Mapping):
        return 1 + sum([_count(item) for item in value.values()])
    return 1 + sum([_count(item) for item in value]) if isinstance(value, list) else 1


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
