"""The array that the model sees, and what has changed since the last one.

An assembly is a pure function of the selection, the settings and the window: same input, same bytes, in any process
(X11). Given the previous turn it keeps that turn's bytes and says in a short notice what came and went, because an
array that changes costs the whole prompt cache (X10); when to take the new array is the host's decision.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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

_NAMES_IN_NOTICE = 12
"""Names per toolset that a notice spells out; more are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Assembly:
    """One array of tools, and the decision behind it. Shared by every session with the same input; immutable."""

    tools: tuple[Tool, ...]
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
    """Deferrable tools that came and went between two turns."""

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
        """Whether the array in force hides tools that only a new one can show: it has no bridge, and tools came."""
        if self.assembly is self.current or self.assembly.activated:
            return False
        known = {tool.name for tool in self.assembly.tools}
        return any(tool.name not in known for tool in self.current.catalog) or self.current.activated

    def rebased(self) -> "Turn":
        """The same turn with the fresh array: costs the prompt cache once."""
        return Turn(assembly=self.current, current=self.current, dialect=self.dialect, changes=_NO_CHANGES, notice=None)


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
    return Assembly(tools=tools, decision=decision, catalog=catalog, listing=listing, bridge_tokens=bridge_cost)


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
        tool = known.get(name) or freeze_tool(raw, toolset="host", origin="host")
        merged[tool.name] = tool
    return Selection(visible=tuple({**merged, **known}.values()), catalog=selection.catalog)


def require_core(visible: Iterable[Tool], tools: Sequence[Tool], core: CoreSet) -> None:
    """Core tools are in the array, or nothing is (S8)."""
    names = {tool.name for tool in tools}
    lost = sorted(tool.name for tool in visible if tool.name in core and tool.name not in names)
    if lost:
        raise AssemblyError(f"The assembly would lose the core tool{'s' if len(lost) > 1 else ''} {', '.join(lost)}.")


def build_turn(current: Assembly, *, dialect: DialectName, previous: Turn | None) -> Turn:
    """The turn that follows `previous`: its bytes, and what changed since."""
    if previous is None:
        return Turn(assembly=current, current=current, dialect=dialect, changes=_NO_CHANGES, notice=None)
    changes = compare_catalogs(previous.current.catalog, current.catalog)
    return Turn(
        assembly=previous.assembly,
        current=current,
        dialect=previous.dialect,
        changes=changes,
        notice=write_notice(changes, bridged=previous.assembly.activated) if changes else None,
    )


def compare_catalogs(before: Catalog, after: Catalog) -> Changes:
    """What came, went and changed. Toolsets that are the same object are not looked into."""
    if before is after:
        return _NO_CHANGES
    same = {id(toolset) for toolset in before.toolsets} & {id(toolset) for toolset in after.toolsets}
    old = _tools_by_name(before, same)
    new = _tools_by_name(after, same)
    return Changes(
        added=tuple(tool for name, tool in new.items() if name not in old),
        removed=tuple(tool for name, tool in old.items() if name not in new),
        changed=tuple(tool for name, tool in new.items() if name in old and old[name] != tool),
    )


def _tools_by_name(catalog: Catalog, without: set[int]) -> Mapping[str, Tool]:
    return {tool.name: tool for toolset in catalog.toolsets if id(toolset) not in without for tool in toolset.tools}


def write_notice(changes: Changes, *, bridged: bool) -> str:
    """The notice in words that a model can act on."""
    way = "through tool_search and tool_call" if bridged else "once the tool list is refreshed"
    parts = [
        ("Tools now available", f" ({way})", changes.added),
        ("No longer available", "; do not call them", changes.removed),
        ("Changed", "; describe again before calling", changes.changed),
    ]
    return " ".join(f"{head}{tail}: {_spell(tools)}." for head, tail, tools in parts if tools)


def _spell(tools: Sequence[Tool]) -> str:
    groups: dict[str, list[str]] = {}
    for tool in tools:
        groups.setdefault(tool.toolset, []).append(tool.name)
    return "; ".join(
        " ".join(sorted(names)) if len(names) <= _NAMES_IN_NOTICE else f"{len(names)} tools of {toolset}"
        for toolset, names in sorted(groups.items())
    )
