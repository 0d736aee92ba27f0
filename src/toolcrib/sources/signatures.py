"""From a Python function to what a model needs to know of it: a JSON Schema, a description, and how to call it.

Types come from the hints, words from the docstring. A function without hints can be given types by parameter name,
which is how functions of the standard library become tools.
"""

import inspect
import logging
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, cast, get_origin, get_type_hints

import msgspec
import orjson

from toolcrib.definitions import JsonObject
from toolcrib.errors import DefinitionError, InvalidArguments
from toolcrib.execution.dispatch import CallContext
from toolcrib.limits import REFUSAL_SCHEMA_MAX_CHARS

logger = logging.getLogger("toolcrib")

_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?|See Also|Warnings?)\s*:?\s*$"
)
_GOOGLE = re.compile(r"^\s{2,}\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.+)$")
_NUMPY = re.compile(r"^(\w+)\s*:\s*\S.*$")

AnyCallable = Callable[..., Any]


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

    def read(self, arguments: JsonObject) -> msgspec.Struct:
        """The arguments as what the hints ask for. Raises `InvalidArguments`."""
        try:
            return msgspec.convert(arguments, self.arguments, strict=True)
        except msgspec.ValidationError as error:
            small = len(orjson.dumps(self.schema)) <= REFUSAL_SCHEMA_MAX_CHARS
            extra: JsonObject = {"parameters": self.schema} if small else {}
            raise InvalidArguments(f"The arguments do not fit: {error}.", extra=extra) from None

    def bind(self, arguments: JsonObject, context: CallContext) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the function. Raises `InvalidArguments`."""
        values = self.read(arguments)
        given: list[tuple[inspect.Parameter, Any]] = []
        through = 0
        """So many parameters have to be handed over by their place."""
        for parameter in self.parameters:
            value = context if parameter.name == self.context else getattr(values, parameter.name)
            given.append((parameter, value))
            if value is not msgspec.UNSET and (
                parameter.kind is parameter.POSITIONAL_ONLY or (parameter.kind is parameter.VAR_POSITIONAL and value)
            ):
                through = len(given)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for place, (parameter, value) in enumerate(given):
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(cast("list[Any]", value) if value is not msgspec.UNSET else ())
            elif place < through:
                # What was left out has its default there, or what follows would take its place.
                positional.append(parameter.default if value is msgspec.UNSET else value)
            elif value is not msgspec.UNSET:
                if parameter.kind is not parameter.KEYWORD_ONLY and len(positional) == place:
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
    hints = _hints(function, signature)
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


def _hints(function: AnyCallable, signature: inspect.Signature) -> dict[str, Any]:
    """The hints of the parameters; one that names what cannot be found costs only itself."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, type):
        written, home = _hints_of_class(function, signature)
    else:
        if not inspect.isroutine(function):
            function = getattr(function, "__call__", function)  # noqa: B004 - its hints, not whether it can be called
        written = cast("dict[str, Any]", getattr(function, "__annotations__", None) or {})
        home = getattr(inspect.unwrap(function), "__globals__", {})
    found: dict[str, Any] = {}
    for name, hint in written.items():
        if name == "return":
            continue
        try:
            alone = SimpleNamespace(__annotations__={name: hint})
            read: Any = get_type_hints(alone, globalns=home, include_extras=True)[name]
            found[name] = cast("Any", read).type if isinstance(read, InitVar) else read
        except Exception as error:  # whatever a hint written as text does when it is read
            logger.debug("the hint of `%s` cannot be read: %r", name, error)
    return found


def _hints_of_class(cls: type, signature: inspect.Signature) -> tuple[dict[str, Any], dict[str, Any]]:
    """What making an object takes, as the signature has it, and where the names in it are found."""
    taken = signature.parameters.items()
    written = {name: parameter.annotation for name, parameter in taken if parameter.annotation is not parameter.empty}
    module = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    return written, getattr(getattr(cls, "__init__", None), "__globals__", module)


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
