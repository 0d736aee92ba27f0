"""What a source is: it offers toolsets, and runs their tools.

A source hands out the same snapshot object as long as nothing changed, so that "has anything changed?" is a
question about identity. One broken definition is left out, counted and reported; it never costs its siblings (a
source of 200 tools with one bad schema has 199).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from toolcrib.definitions import Call, Origin, Result, Skipped, Tool, ToolName, Toolset, ToolsetName
from toolcrib.errors import ConfigError, DefinitionError
from toolcrib.execution.dispatch import CallContext
from toolcrib.intake.freezing import freeze_tool, name_of
from toolcrib.intake.naming import safe_prefix
from toolcrib.limits import TOOLS_PER_TOOLSET


class Source(Protocol):
    """Offers toolsets and runs their tools."""

    @property
    def name(self) -> str:
        """The name by which the source is added and removed."""
        ...

    def snapshot(self) -> Sequence[Toolset]:
        """The toolsets now. The same objects while nothing changed."""
        ...

    def watch(self, changed: Callable[[], None]) -> bool:
        """Whether the source calls `changed` when its snapshot changes; if not, it is asked at every assembly."""
        ...

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs one of its tools. May raise anything."""
        ...

    async def close(self) -> None:
        """Lets go of everything."""
        ...


@runtime_checkable
class Starting(Protocol):
    """A source that has to be started, because it holds a process or a connection."""

    async def start(self) -> None:
        """Begins; returns at once."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A source whose tools come some time after its start."""

    settled: asyncio.Event
    """Set once it knows its tools, or knows that it cannot be had now."""


def build_toolset(
    name: str,
    tools: Iterable[Tool],
    *,
    origin: Origin,
    prefix: str = "",
    skipped: Sequence[Skipped] = (),
    unavailable: str | None = None,
) -> Toolset:
    """A snapshot, with names that occur twice left out and reported, whichever came first."""
    given, problems = tuple(tools), list(skipped)
    kept = {tool.name: tool for tool in given}
    if len(kept) < len(given) or len(given) > TOOLS_PER_TOOLSET:
        kept = _single(name, given, problems)
    toolset = Toolset(
        name=ToolsetName(name),
        origin=origin,
        tools=given if len(kept) == len(given) else tuple(kept.values()),
        prefix=prefix,
        skipped=tuple(problems),
        unavailable=unavailable,
    )
    if not prefix:  # then an inventory asks for it at once, to see who else has these names
        vars(toolset)["by_name"] = kept
    return toolset


def _single(toolset: str, tools: Iterable[Tool], problems: list[Skipped]) -> dict[ToolName, Tool]:
    """The tools by name, as many as a toolset may have and without those whose names occur twice."""
    kept: dict[ToolName, Tool] = {}
    twice: set[ToolName] = set()
    for tool in tools:
        if tool.name in kept:
            twice.add(tool.name)
        elif len(kept) >= TOOLS_PER_TOOLSET:
            problems.append(_skip(toolset, tool.leaf, f"the toolset has more than {TOOLS_PER_TOOLSET} tools"))
        else:
            kept[tool.name] = tool
    problems.extend(_skip(toolset, kept.pop(double).leaf, "the name occurs more than once") for double in sorted(twice))
    return kept


def freeze_toolset(
    name: str,
    definitions: Iterable[object],
    *,
    origin: Origin,
    prefix: str | None = None,
) -> Toolset:
    """The toolset of these definitions; what cannot be used is left out and reported."""
    head = safe_prefix(name.removeprefix("mcp-")) if prefix is None else prefix
    tools: list[Tool] = []
    skipped: list[Skipped] = []
    for raw in definitions:
        try:
            tools.append(freeze_tool(raw, toolset=name, origin=origin, prefix=head))
        except DefinitionError as error:
            skipped.append(_skip(name, name_of(raw), str(error)))
    return build_toolset(name, tools, origin=origin, prefix=head, skipped=skipped)


def require_toolset_name(name: str) -> ToolsetName:
    """A toolset's name as configuration may give it. Raises `ConfigError`."""
    if not name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or not name.isascii():
        raise ConfigError(f"`{name}` is no name for a toolset: use letters, digits, `-`, `_` and `.`.")
    return ToolsetName(name)


def _skip(toolset: str, name: str, reason: str) -> Skipped:
    return Skipped(toolset=ToolsetName(toolset), name=name, reason=reason)
