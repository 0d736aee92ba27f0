"""The array that the model sees, and what has changed since the last one.

An assembly is a pure function of the selection, the settings and the window: same input, same bytes, in any process
(X11). Given the previous turn it keeps that turn's bytes and says in a short notice what came and went, because an
array that changes costs the whole prompt cache (X10); when to take the new array is the host's decision.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import orjson
from msgspec import Struct

from toolcrib.bridge import LISTING_INTRO, bridge_tools
from toolcrib.catalog import Catalog
from toolcrib.core import CoreSet
from toolcrib.definitions import DialectName, JsonObject, Tool
from toolcrib.dialects import require_dialect
from toolcrib.errors import AssemblyError
from toolcrib.gate import GateDecision, decide_gate
from toolcrib.intake.freezing import freeze_tool, name_of
from toolcrib.intake.naming import is_reserved
from toolcrib.inventory import Selection
from toolcrib.limits import CACHE_CATALOGS
from toolcrib.listing import NO_LISTING, Listing, ListingRenderer
from toolcrib.settings import ToolSearchSettings
from toolcrib.tokens import estimate_tokens

LISTING_DEFAULT_TOKENS = 4_000
DEFAULT_DIALECT: DialectName = "openai_chat"

HOST_TOOLSET = "host"
"""Of tools that a host handed in without a source."""

_NAMES_IN_NOTICE = 12
"""Names per toolset that a notice spells out; more are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Assembly:
    """One array of tools, and the decision behind it. Shared by every session with the same input; immutable."""

    tools: tuple[Tool, ...]
    visible: tuple[Tool, ...]
    """Those of the tools that are never deferred."""
    decision: GateDecision
    catalog: Catalog
    listing: Listing
    bridge_tokens: int
    """The three schemas without the listing; 0 when the bridge is not in the array."""

    @property
    def activated(self) -> bool:
        """Whether the bridge stands for the deferrable tools."""
        return self.decision.defer

    @cached_property
    def account(self) -> str:
        """The decision in words, for the feed."""
        return str(self.decision)

    @cached_property
    def tokens(self) -> int:
        """What the array costs on every turn."""
        return estimate_tokens(sum(tool.chars for tool in self.tools))

    def encode(self, dialect: DialectName) -> bytes:
        """The array as JSON in a dialect; the same bytes every time."""
        arrays = self._encoded
        array = arrays.get(dialect)
        if array is None:
            write = require_dialect(dialect).write_tool
            array = arrays[dialect] = orjson.dumps([write(tool) for tool in self.tools])
        return array

    @cached_property
    def _encoded(self) -> dict[DialectName, bytes]:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Tools that came and went between two turns."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()
    changed: tuple[Tool, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


_NO_CHANGES = Changes()


class Turn(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What one turn gives to the model."""

    assembly: Assembly
    """The array in force: the previous turn's where one was given."""
    current: Assembly
    """What a fresh array would be. `rebased()` takes it."""
    dialect: DialectName
    changes: Changes
    """Deferrable tools that came and went since the previous turn."""
    visible_changes: Changes
    """The same for tools that are never deferred."""
    notice: str | None
    """What changed since the previous turn, for the end of the conversation; nothing if nothing did."""

    @cached_property
    def tools(self) -> list[JsonObject]:
        """The array for the model API: this turn's own copy."""
        return cast("list[JsonObject]", orjson.loads(self.encoded))

    @property
    def encoded(self) -> bytes:
        """The array as JSON bytes."""
        return self.assembly.encode(self.dialect)

    @property
    def activated(self) -> bool:
        """Whether the bridge is in the array."""
        return self.assembly.activated

    @property
    def decision(self) -> GateDecision:
        """What the gate says now."""
        return self.current.decision

    @property
    def rebase_advised(self) -> bool:
        """Whether only a new array can show what there is: visible tools came or changed, or any where no bridge is."""
        if self.assembly is self.current:
            return False
        shown = {tool.name: tool for tool in self.assembly.tools}
        if any(shown.get(tool.name) != tool for tool in self.current.visible):
            return True
        if self.assembly.activated:
            return False
        return self.current.activated or any(shown.get(tool.name) != tool for tool in self.current.catalog)

    def rebased(self) -> "Turn":
        """The same turn with the fresh array: costs the prompt cache once."""
        return _first_turn(self.current, self.dialect)


class Assemblies:
    """Assemblies by what they are made of. Dropping them changes nothing but time (S18)."""

    def __init__(
        self, settings: ToolSearchSettings, core: CoreSet, *, built: Callable[[Assembly], None] = lambda assembly: None
    ) -> None:
        """Every new assembly is told to `built`, once."""
        self._settings = settings
        self._core = core
        self._built = built
        self._renderer = ListingRenderer()
        self._kept: OrderedDict[tuple[Selection, int | None], Assembly] = OrderedDict()

    def get(
        self, selection: Selection, *, window: int | None, definitions: Sequence[JsonObject] | None = None
    ) -> Assembly:
        """The assembly of a selection for a window."""
        if definitions is not None:
            selection = merge_definitions(selection, definitions)
            return self._build(selection, window)
        key = (selection, window)
        assembly = self._kept.get(key)
        if assembly is None:
            assembly = self._kept[key] = self._build(selection, window)
            if len(self._kept) > CACHE_CATALOGS:
                self._kept.popitem(last=False)
        return assembly

    def _build(self, selection: Selection, window: int | None) -> Assembly:
        assembly = build_assembly(
            selection, settings=self._settings, window=window, core=self._core, renderer=self._renderer
        )
        self._built(assembly)
        return assembly


def build_assembly(
    selection: Selection,
    *,
    settings: ToolSearchSettings,
    window: int | None,
    core: CoreSet,
    renderer: ListingRenderer,
) -> Assembly:
    """The array for one selection. Raises `AssemblyError` rather than lose a core tool."""
    catalog = selection.catalog
    decision = decide_gate(settings, window=window, deferrable=catalog.size, chars=catalog.chars)
    listing = NO_LISTING
    bridge_cost = 0
    if decision.defer:
        budget = settings.listing_max_tokens or min(
            LISTING_DEFAULT_TOKENS, decision.threshold or LISTING_DEFAULT_TOKENS
        )
        listing = renderer.render(catalog, mode=settings.listing, max_chars=budget * 4 - len(LISTING_INTRO))
        tail = bridge_tools(listing.text)
        bridge_cost = estimate_tokens(sum(tool.chars for tool in bridge_tools()))
    else:
        tail = tuple(catalog)
    tools = (*selection.visible, *tail)
    require_core(selection.visible, tools, core)
    return Assembly(
        tools=tools,
        visible=selection.visible,
        decision=decision,
        catalog=catalog,
        listing=listing,
        bridge_tokens=bridge_cost,
    )


def merge_definitions(selection: Selection, definitions: Sequence[JsonObject]) -> Selection:
    """The selection with a host's own array merged in: its order first, nothing of ours lost.

    Bridge tools in it are dropped, so that an assembly run on its own output gives the same output (S11). What the
    session knows stands for itself; what nobody knows stays visible as it is (S9).
    """
    known: dict[str, Tool] = {tool.name: tool for tool in selection.visible}
    merged: dict[str, Tool] = {}
    for raw in definitions:
        name = name_of(raw)
        if is_reserved(name) or selection.catalog.get(name) is not None:
            continue
        tool = known.get(name) or freeze_tool(raw, toolset=HOST_TOOLSET, origin="host")
        merged[tool.name] = tool
    return Selection(visible=tuple({**merged, **known}.values()), catalog=selection.catalog)


def require_core(visible: Iterable[Tool], tools: Sequence[Tool], core: CoreSet) -> None:
    """Core tools are in the array, or nothing is (S8)."""
    names = {tool.name for tool in tools}
    lost = sorted(tool.name for tool in visible if tool.name in core and tool.name not in names)
    if lost:
        raise AssemblyError(f"The assembly would lose the core tool{'s' if len(lost) > 1 else ''} {', '.join(lost)}.")


def build_turn(
    current: Assembly, *, dialect: DialectName | None = None, previous: Turn | None, hosted: bool = False
) -> Turn:
    """The turn that follows `previous`: its array, and what changed since.

    `hosted` if the host said this time what it has in its array; otherwise nothing is known of that.
    """
    if previous is None:
        return _first_turn(current, dialect or DEFAULT_DIALECT)
    changes = compare_catalogs(previous.current.catalog, current.catalog)
    visible = _compare_visible(previous.current.visible, current.visible, hosted=hosted)
    if changes and visible:
        changes, visible = _without(changes, visible.added), _without(visible, changes.added)
    return Turn(
        assembly=previous.assembly,
        current=current,
        dialect=dialect or previous.dialect,
        changes=changes,
        visible_changes=visible,
        notice=write_notice(changes, visible, bridged=previous.assembly.activated) if changes or visible else None,
    )


def _first_turn(assembly: Assembly, dialect: DialectName) -> Turn:
    return Turn(
        assembly=assembly,
        current=assembly,
        dialect=dialect,
        changes=_NO_CHANGES,
        visible_changes=_NO_CHANGES,
        notice=None,
    )


def _compare_visible(before: tuple[Tool, ...], after: tuple[Tool, ...], *, hosted: bool) -> Changes:
    """What came, went and changed among tools that are never deferred."""
    if before == after:
        return _NO_CHANGES
    changes = _compare({tool.name: tool for tool in before}, {tool.name: tool for tool in after})
    if hosted:
        return changes
    return replace(changes, removed=tuple(tool for tool in changes.removed if tool.toolset != HOST_TOOLSET))


def _without(changes: Changes, elsewhere: tuple[Tool, ...]) -> Changes:
    """The changes without tools that did not go but are somewhere else now."""
    names = {tool.name for tool in elsewhere}
    return replace(changes, removed=tuple(tool for tool in changes.removed if tool.name not in names))


def compare_catalogs(before: Catalog, after: Catalog) -> Changes:
    """What came, went and changed. Toolsets that are the same object are not looked into."""
    if before is after:
        return _NO_CHANGES
    same = {id(toolset) for toolset in before.toolsets} & {id(toolset) for toolset in after.toolsets}
    old = _tools_by_name(before, same)
    new = _tools_by_name(after, same)
    return _compare(old, new)


def _compare(old: Mapping[str, Tool], new: Mapping[str, Tool]) -> Changes:
    return Changes(
        added=tuple(tool for name, tool in new.items() if name not in old),
        removed=tuple(tool for name, tool in old.items() if name not in new),
        changed=tuple(tool for name, tool in new.items() if name in old and old[name] != tool),
    )


def _tools_by_name(catalog: Catalog, without: set[int]) -> Mapping[str, Tool]:
    return {tool.name: tool for toolset in catalog.toolsets if id(toolset) not in without for tool in toolset.tools}


def write_notice(changes: Changes, visible: Changes, *, bridged: bool) -> str:
    """The notice in words that a model can act on."""
    behind = changes if bridged else _NO_CHANGES
    """What the bridge reaches at once; all else is for the next array to show."""
    shown = (visible,) if bridged else (visible, changes)
    later = " (once the tool list is refreshed)"
    parts = [
        ("Tools now available (through tool_search and tool_call)", behind.added),
        (f"Tools now available{later}", [tool for part in shown for tool in part.added]),
        ("No longer available; do not call them", [*changes.removed, *visible.removed]),
        ("Changed; describe again before calling", behind.changed),
        (f"Changed{later}", [tool for part in shown for tool in part.changed]),
    ]
    return " ".join(f"{head}: {_spell(tools)}." for head, tools in parts if tools)


def _spell(tools: Sequence[Tool]) -> str:
    groups: dict[str, list[str]] = {}
    for tool in tools:
        groups.setdefault(tool.toolset, []).append(tool.name)
    return "; ".join(
        " ".join(sorted(names)) if len(names) <= _NAMES_IN_NOTICE else f"{len(names)} tools of {toolset}"
        for toolset, names in sorted(groups.items())
    )
