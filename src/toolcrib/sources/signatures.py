"""From a Python function to what a model needs to know of it: a JSON Schema, a description, and how to call it.

Types come from the hints, words from the docstring. A function without hints can be given types by parameter name,
which is how functions of the standard library become tools.
"""

import enum
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_origin, get_type_hints

import msgspec

from toolcrib.definitions import JsonObject
from toolcrib.errors import DefinitionError, InvalidArguments
from toolcrib.execution.dispatch import CallContext

_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?|See Also|Warnings?)\s*:?\s*$"
)
_GOOGLE = re.compile(r"^\s{2,}\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.+)$")
_NUMPY = re.compile(r"^(\w+)\s*:\s*\S.*$")

AnyCallable = Callable[..., Any]


class _Missing(enum.Enum):
    MISSING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionShape:
    """How a function is described, and how its arguments are handed over."""

    description: str
    schema: JsonObject
    arguments: type[msgspec.Struct]
    """The arguments as a structure: converts JSON into what the hints ask for."""
    parameters: tuple[inspect.Parameter, ...]
    context: str | None
    """The parameter that takes the call's context, if the function has one."""

    def bind(self, arguments: JsonObject, context: CallContext) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the function. Raises `InvalidArguments`."""
        try:
            values = msgspec.convert(arguments, self.arguments, strict=True)
        except msgspec.ValidationError as error:
            raise InvalidArguments(f"The arguments do not fit: {error}.", extra={"parameters": self.schema}) from None
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self.parameters:
            value = context if parameter.name == self.context else getattr(values, parameter.name, _Missing.MISSING)
            if value is _Missing.MISSING or value is msgspec.UNSET:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(cast("list[Any]", value))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            elif len(positional) == _position(self.parameters, parameter):
                positional.append(value)
            else:
                named[parameter.name] = value
        return positional, named


def read_function(
    function: AnyCallable, *, types: Mapping[str, Any] | None = None, description: str | None = None
) -> FunctionShape:
    """The shape of a function. Raises `DefinitionError` if JSON cannot carry its parameters."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise DefinitionError("the function has no signature that can be read") from None
    hints = _hints(function)
    words = inspect.getdoc(function) or ""
    about = parameter_words(words)
    overrides = types or {}
    fields: list[tuple[str, Any, Any]] = []
    taken: list[inspect.Parameter] = []
    context: str | None = None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        hint = overrides.get(parameter.name, hints.get(parameter.name, _type_of_default(parameter)))
        if hint is CallContext:
            context = parameter.name
            taken.append(parameter)
            continue
        if parameter.name == "self" and parameter.name not in overrides:
            raise DefinitionError("the function is a method without its object")
        fields.append(_field(parameter, hint, about.get(parameter.name)))
        taken.append(parameter)
    structure, schema = _structure(fields)
    return FunctionShape(
        description=description or summary_of(words),
        schema=schema,
        arguments=structure,
        parameters=tuple(taken),
        context=context,
    )


def summary_of(docstring: str) -> str:
    """The docstring up to its first section."""
    kept: list[str] = []
    for line in docstring.splitlines():
        if _SECTION.match(line) or _SPHINX.match(line):
            break
        kept.append(line)
    text = "\n".join(kept).strip()
    # Functions written in C begin with their own signature.
    head, _, rest = text.partition("\n--\n")
    return rest.strip() or head


def parameter_words(docstring: str) -> dict[str, str]:
    """What the docstring says of each parameter, in the styles of Google, Sphinx and NumPy."""
    found: dict[str, str] = {}
    section = ""
    lines = docstring.splitlines()
    for number, line in enumerate(lines):
        heading = _SECTION.match(line)
        if heading:
            section = heading.group(1)
            continue
        sphinx = _SPHINX.match(line)
        if sphinx:
            found[sphinx.group(1)] = sphinx.group(2).strip()
        elif section in {"Args", "Arguments", "Parameters"}:
            google = _GOOGLE.match(line)
            if google:
                found[google.group(1)] = google.group(2).strip()
            elif _NUMPY.match(line) and number + 1 < len(lines) and lines[number + 1].startswith((" ", "\t")):
                found[line.partition(":")[0].strip()] = lines[number + 1].strip()
    return found


def _hints(function: AnyCallable) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # one hint names what is not importable, often the returned type: the others still count
        written = cast("dict[str, Any]", getattr(function, "__annotations__", {}))
        return {name: hint for name, hint in written.items() if not isinstance(hint, str)}


def _type_of_default(parameter: inspect.Parameter) -> Any:  # noqa: ANN401
    """What a parameter without a hint takes: the type of its default, if that is a plain one."""
    kinds: tuple[type, ...] = (bool, int, float, str)
    return next((kind for kind in kinds if type(parameter.default) is kind), Any)


def _field(parameter: inspect.Parameter, hint: Any, words: str | None) -> tuple[str, Any, Any]:  # noqa: ANN401
    if parameter.kind is parameter.VAR_POSITIONAL:
        hint = list[hint] if hint is not Any else list[Any]
    if get_origin(hint) is Annotated:
        inner, *extra = hint.__metadata__[0:0] or (hint.__origin__, *hint.__metadata__)
        spoken = next((item for item in extra if isinstance(item, str)), None)
        meta = [item for item in extra if isinstance(item, msgspec.Meta)]
        words = spoken or words
        hint = Annotated[inner, meta[0]] if meta else inner
    if words:
        hint = Annotated[hint, msgspec.Meta(description=words)]
    if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
        return parameter.name, hint, msgspec.NODEFAULT
    if _is_plain(parameter.default):
        return parameter.name, hint, parameter.default
    return parameter.name, hint | msgspec.UnsetType if hint is not Any else hint, msgspec.UNSET


def _structure(fields: list[tuple[str, Any, Any]]) -> tuple[type[msgspec.Struct], JsonObject]:
    try:
        structure = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        whole = msgspec.json.schema(structure)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise DefinitionError(f"JSON cannot carry its parameters: {str(error).splitlines()[0]}") from None
    schema = cast("JsonObject", whole["$defs"].pop("Arguments"))
    schema.pop("title", None)
    if whole["$defs"]:
        schema["$defs"] = whole["$defs"]
    return structure, schema


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _position(parameters: tuple[inspect.Parameter, ...], wanted: inspect.Parameter) -> int:
    return next(index for index, parameter in enumerate(parameters) if parameter.name == wanted.name)
