"""Which tools a session may have: toolsets it was given, minus those it was denied.

A scope is a value. Narrowing only ever intersects, so a child never has more than its parent (S19). Core and
unclassified tools are outside of it: no scope drops them (S8).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from toolcrib.core import CoreSet, undeferrable
from toolcrib.definitions import Tool, Toolset
from toolcrib.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a session was granted."""

    enabled: frozenset[str] | None = None
    """Toolsets that are granted; `None` grants all."""
    disabled: frozenset[str] = frozenset()
    """Toolsets that are denied, whatever else says; deny wins."""
    tools: tuple[frozenset[str], ...] = ()
    """Each set of patterns must be met by a tool's name; narrowing adds a set."""
    read_only: bool = False
    """Only tools that say that they change nothing."""
    always_visible: frozenset[str] = frozenset()
    """Patterns of granted tools that stay in the array, whatever the gate says."""

    def keeps_visible(self, tool: Tool) -> bool:
        """Whether a granted tool stays in the array."""
        return any(fnmatchcase(tool.name, pattern) for pattern in self.always_visible)

    def allows_toolset(self, name: str) -> bool:
        """Whether the toolset is granted."""
        return name not in self.disabled and (self.enabled is None or name in self.enabled)

    def allows_tool(self, tool: Tool) -> bool:
        """Whether the tool is granted, given that its toolset is."""
        if self.read_only and tool.traits.read_only is not True:
            return False
        return all(any(fnmatchcase(tool.name, pattern) for pattern in patterns) for patterns in self.tools)

    def narrow(
        self,
        *,
        enabled: Iterable[str] | None = None,
        disabled: Iterable[str] = (),
        tools: Iterable[str] | None = None,
        read_only: bool = False,
    ) -> "Scope":
        """The intersection of this scope and what is given. Raises `ConfigError` for what is no list of names."""
        granted = self.enabled
        if enabled is not None:
            names = frozenset(require_names(enabled, "enabled_toolsets"))
            granted = names if granted is None else granted & names
        return Scope(
            enabled=granted,
            disabled=self.disabled | frozenset(require_names(disabled, "disabled_toolsets")),
            tools=self.tools if tools is None else (*self.tools, frozenset(require_names(tools, "tools"))),
            read_only=self.read_only or read_only,
            always_visible=self.always_visible,
        )


def require_names(given: Iterable[str], key: str) -> tuple[str, ...]:
    """The names of a list. Raises `ConfigError` for a string, whose letters would be names of one letter each."""
    names: tuple[object, ...] = () if isinstance(given, str) else tuple(cast("Iterable[object]", given))
    if isinstance(given, str) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f'`{key}` must be a list of names, such as ["name"], not {given!r}.')
    return cast("tuple[str, ...]", names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """One toolset as a scope sees it."""

    visible: tuple[Tool, ...]
    """Core and unclassified tools, which are in the array whatever the scope says, and granted ones that it keeps."""
    deferrable: Toolset | None
    """What search, describe and call may see of it, if anything."""


def part_toolset(toolset: Toolset, scope: Scope, core: CoreSet) -> Parted:
    """Parts a toolset into what stays in the array and what may be deferred."""
    granted = scope.allows_toolset(toolset.name)
    plain = granted and not scope.tools and not scope.read_only
    bench = undeferrable(toolset.tools, core)
    if plain and toolset.tools and not bench and not scope.always_visible:
        return Parted(visible=(), deferrable=toolset)
    visible: list[Tool] = []
    deferrable: list[Tool] = []
    stays = set(map(id, bench))
    for tool in toolset.tools:
        if id(tool) in stays:
            visible.append(tool)
        elif plain or (granted and scope.allows_tool(tool)):
            (visible if scope.always_visible and scope.keeps_visible(tool) else deferrable).append(tool)
    if not deferrable:
        return Parted(visible=tuple(visible), deferrable=None)
    if len(deferrable) == len(toolset.tools):
        return Parted(visible=(), deferrable=toolset)
    slice_ = Toolset(
        name=toolset.name,
        origin=toolset.origin,
        tools=tuple(deferrable),
        prefix=toolset.prefix,
        unavailable=toolset.unavailable,
    )
    return Parted(visible=tuple(visible), deferrable=slice_)
