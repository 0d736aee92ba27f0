"""Python functions as tools: decorated, added, or taken from a module or an object.

Functions can be added and removed while sessions run; every change makes a new snapshot and counts the generation
on. What a function may be given can be bounded, because a harmless function is not harmless with every argument
(`factorial(10 ** 9)`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any, cast

import msgspec
import orjson

from toolcrib.definitions import Call, Json, JsonObject, Origin, Result, Skipped, Tool, Toolset, ToolsetName, Traits
from toolcrib.errors import DefinitionError, InvalidArguments
from toolcrib.execution.dispatch import CallContext, Checker
from toolcrib.intake.freezing import freeze_tool
from toolcrib.intake.naming import safe_prefix
from toolcrib.limits import FUNCTION_ITEMS
from toolcrib.sources.base import build_toolset, require_toolset_name
from toolcrib.sources.running import Threads, Yielded, run_function, take
from toolcrib.sources.signatures import AnyCallable, FunctionShape, read_function


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What functions may be given. Anything beyond is refused before they run."""

    number: float = float("inf")
    """Largest magnitude of a number."""
    text: int = 1_000_000
    """Characters of a string."""
    items: int = 100_000
    """Elements of a list or an object."""

    def require(self, value: Json, path: str = "") -> None:
        """Raises `InvalidArguments` if the value is beyond the bounds."""
        if isinstance(value, str):
            if len(value) > self.text:
                raise InvalidArguments(f"`{path}` has {len(value)} characters; at most {self.text} are taken.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if abs(value) > self.number:
                raise InvalidArguments(f"`{path}` is beyond ±{self.number:g}.")
        elif isinstance(value, Mapping | list):
            if len(value) > self.items:
                raise InvalidArguments(f"`{path}` has {len(value)} elements; at most {self.items} are taken.")
            inside = value.items() if isinstance(value, Mapping) else enumerate(value)
            for key, item in inside:
                self.require(item, f"{path}.{key}" if path else str(key))


@dataclass(frozen=True, slots=True)
class _Entry:
    function: AnyCallable
    shape: FunctionShape
    tool: Tool


class Functions(Checker):
    """A toolset of Python functions."""

    def __init__(self, name: str, *, prefix: str = "", origin: Origin = "plugin", bounds: Bounds | None = None) -> None:
        self._name = require_toolset_name(name)
        self._prefix = safe_prefix(prefix) if prefix else ""
        self._origin: Origin = origin
        self._bounds = bounds or Bounds()
        self._entries: dict[str, _Entry] = {}
        self._skipped: list[Skipped] = []
        self._changed: list[Callable[[], None]] = []
        self._threads = Threads()
        self._snapshot: tuple[Toolset, ...] | None = None
        self.generation = 0
        """Counts every change."""

    @classmethod
    def of(
        cls,
        owner: object,
        *,
        name: str | None = None,
        prefix: str | None = None,
        include: Iterable[str] = ("*",),
        exclude: Iterable[str] = (),
        types: Mapping[str, Any] | None = None,
        bounds: Bounds | None = None,
        traits: Traits | None = None,
    ) -> "Functions":
        """The public functions of a module or an object, filtered by name.

        Args:
            owner: A module, or an object whose methods become tools.
            name: The toolset's name; the owner's if not given.
            prefix: What the tools' names start with; the toolset's name if not given.
            include: Patterns of names to take.
            exclude: Patterns of names to leave out, whatever `include` says.
            types: Types by parameter name, for functions without hints.
            bounds: What the functions may be given.
            traits: How they all behave.
        """
        title = name or getattr(owner, "__name__", type(owner).__name__).replace(".", "_")
        toolset = cls(title, prefix=title if prefix is None else prefix, bounds=bounds)
        wanted, unwanted = tuple(include), tuple(exclude)
        for attribute in _public_names(owner):
            if attribute.startswith("_") or not _matches(attribute, wanted) or _matches(attribute, unwanted):
                continue
            function = getattr(owner, attribute)
            if callable(function) and not isinstance(function, type):
                toolset.add(function, name=attribute, types=types, traits=traits)
        return toolset

    @property
    def name(self) -> str:
        """The toolset's name."""
        return self._name

    def tool(
        self,
        function: AnyCallable | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        parallel: bool = False,
        aliases: Iterable[str] = (),
    ) -> Any:  # noqa: ANN401 - a decorator with and without arguments
        """Makes a tool of the decorated function, which stays as it is. Raises `DefinitionError`."""
        traits = Traits(read_only=read_only, destructive=destructive, parallel=parallel)

        def decorate(decorated: AnyCallable) -> AnyCallable:
            problem = self.add(decorated, name=name, description=description, traits=traits, aliases=aliases)
            if problem is not None:
                raise DefinitionError(f"`{problem.name}` cannot be a tool: {problem.reason}")
            return decorated

        return decorate if function is None else decorate(function)

    def add(
        self,
        function: AnyCallable,
        *,
        name: str | None = None,
        description: str | None = None,
        types: Mapping[str, Any] | None = None,
        traits: Traits | None = None,
        aliases: Iterable[str] = (),
    ) -> Skipped | None:
        """Makes a tool of a function, replacing one of the same name. Returns why not, if it cannot be one."""
        title = name or getattr(function, "__name__", "?")
        try:
            shape = read_function(function, types=types, description=description)
            raw = {"name": title, "description": shape.description, "inputSchema": shape.schema}
            tool = freeze_tool(
                raw,
                toolset=self._name,
                origin=self._origin,
                prefix=self._prefix,
                dialect="mcp",
                traits=traits or Traits(),
                aliases=aliases,
            )
        except DefinitionError as error:
            problem = Skipped(toolset=ToolsetName(self._name), name=title, reason=str(error))
            self._skipped.append(problem)
            self._note_change()
            return problem
        self._entries[tool.name] = _Entry(function, shape, tool)
        self._note_change()
        return None

    def remove(self, name: str) -> None:
        """Removes the tool of that exposed name. Raises `DefinitionError` if there is none."""
        if self._entries.pop(name, None) is None:
            raise DefinitionError(f"there is no tool `{name}` in `{self._name}`")
        self._note_change()

    def snapshot(self) -> Sequence[Toolset]:
        """The toolset now."""
        if self._snapshot is None:
            tools = sorted((entry.tool for entry in self._entries.values()), key=lambda tool: tool.name)
            toolset = build_toolset(self._name, tools, origin=self._origin, prefix=self._prefix, skipped=self._skipped)
            self._snapshot = (toolset,)
        return self._snapshot

    def watch(self, changed: Callable[[], None]) -> bool:
        """Calls `changed` after every change."""
        self._changed.append(changed)
        return True

    def check(self, call: Call) -> None:
        """Whether the function can be given these arguments. Raises `InvalidArguments`."""
        self._bounds.require(call.arguments)
        entry = self._entries.get(call.tool.name)
        if entry is not None:
            entry.shape.read(call.arguments)

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs the function: a coroutine where it is one, else in a thread of the toolset."""
        self._bounds.require(call.arguments)
        entry = self._entries[call.tool.name]
        positional, named = entry.shape.bind(call.arguments, context)
        return value_result(await run_function(entry.function, positional, named, self._threads))

    async def close(self) -> None:
        """Lets go of the threads."""
        self._threads.close()

    def _note_change(self) -> None:
        self._snapshot = None
        self.generation += 1
        for changed in self._changed:
            changed()


def value_result(value: object) -> Result:
    """What a function returned, as a result: a `Result` as it is, other values as JSON, or as text if they cannot."""
    if isinstance(value, Result):
        return value
    if isinstance(value, str):
        return Result(content=({"type": "text", "text": value},))
    if hasattr(value, "__next__"):
        value = take(cast("Iterator[object]", value))
    more = isinstance(value, Yielded) and value.more
    built = msgspec.to_builtins(value.items if isinstance(value, Yielded) else value, enc_hook=str, str_keys=True)
    structured = cast("JsonObject", built) if isinstance(built, dict) else None
    try:
        text = repr(built) if isinstance(built, float) else orjson.dumps(built).decode()
    except TypeError:  # numbers that are too large, or half a surrogate pair: text can say what they are
        text, structured = json.dumps(built, default=str), None
    content: list[JsonObject] = [{"type": "text", "text": text}]
    if more:
        content.append({"type": "text", "text": f"[only the first {FUNCTION_ITEMS:,} items were read]"})
    return Result(content=tuple(content), structured=structured)


def _public_names(owner: object) -> list[str]:
    """What an owner offers: a module's `__all__`, or what it defines itself; an object's attributes."""
    if not isinstance(owner, ModuleType):
        return sorted(dir(owner))
    declared: list[str] | None = getattr(owner, "__all__", None)
    if declared is not None:
        return sorted(declared)
    # The parts that are written in C say that they come from a module with an underscore.
    homes = {owner.__name__, f"_{owner.__name__}"}
    return sorted(name for name, value in vars(owner).items() if getattr(value, "__module__", None) in homes)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
