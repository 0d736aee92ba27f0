"""The inventory: every toolset that the sources of a crib offer at one moment, and what a scope leaves of it.

It is replaced, never changed. All that is derived from it (parted toolsets, catalogs) is kept by identity of
immutable values, so a cache hit is always right and dropping the cache changes nothing (S18).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from toolcrib.alongside import Alongside
from toolcrib.catalog import Catalog
from toolcrib.core import CoreSet
from toolcrib.definitions import Skipped, Tool, Toolset
from toolcrib.limits import CACHE_CATALOGS
from toolcrib.scope import Scope, part_toolset


@dataclass(frozen=True, kw_only=True, eq=False)
class Inventory:
    """All toolsets, in the order in which their sources were added."""

    toolsets: tuple[Toolset, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """Tools left out because another toolset has their name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """What one scope makes of an inventory."""

    visible: tuple[Tool, ...]
    catalog: Catalog


def build_inventory(toolsets: Sequence[Toolset]) -> Inventory:
    """Puts toolsets together; where two use one name, the earlier keeps it and the later is reported.

    Prefixes are unique, so only toolsets without one can meet.
    """
    taken: dict[str, Tool] = {}
    kept: list[Toolset] = []
    skipped: list[Skipped] = []
    prefixes = {toolset.prefix for toolset in toolsets if toolset.prefix}
    for toolset in toolsets:
        if toolset.prefix:
            kept.append(toolset)
            continue
        # Sets of names are compared as a whole: nearly always there is nothing to look into.
        clashes: dict[str, str] = {name: taken[name].toolset for name in taken.keys() & toolset.by_name.keys()}
        if prefixes:
            borrowed = (name for name in toolset.by_name if "__" in name and name.partition("__")[0] in prefixes)
            clashes = {**dict.fromkeys(borrowed, "a prefix"), **clashes}
        if not clashes:
            taken.update(toolset.by_name)
        else:
            taken.update((tool.name, tool) for tool in toolset.tools if tool.name not in clashes)
            skipped.extend(
                Skipped(toolset=toolset.name, name=name, reason=f"the name is taken by `{owner}`")
                for name, owner in sorted(clashes.items())
            )
            toolset = replace(toolset, tools=tuple(tool for tool in toolset.tools if tool.name not in clashes))
        kept.append(toolset)
    return Inventory(toolsets=tuple(kept), skipped=tuple(skipped))


class _Part(NamedTuple):
    """What a scope makes of one toolset. Never holds the toolset itself, or the cache would keep it alive."""

    visible: tuple[Tool, ...]
    deferrable: Toolset | None
    whole: bool
    """All of the toolset is deferrable."""


def _part(toolset: Toolset, scope: Scope, core: CoreSet) -> _Part:
    part = part_toolset(toolset, scope, core)
    whole = part.deferrable is toolset
    return _Part(part.visible, None if whole else part.deferrable, whole)


class Selector:
    """Applies scopes to inventories, and keeps what did not change."""

    def __init__(self, core: CoreSet) -> None:
        self.core = core
        self._parts: OrderedDict[Scope, Alongside[Toolset, _Part]] = OrderedDict()
        self._selections: OrderedDict[tuple[Inventory, Scope], Selection] = OrderedDict()
        self._last: tuple[Inventory, Scope, Selection] | None = None

    def select(self, inventory: Inventory, scope: Scope) -> Selection:
        """What the scope grants of the inventory."""
        last = self._last
        if last is not None and last[0] is inventory and last[1] is scope:
            return last[2]
        key = (inventory, scope)
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = self._build(inventory, scope)
            if len(self._selections) > CACHE_CATALOGS:
                self._selections.popitem(last=False)
        else:
            self._selections.move_to_end(key)
        self._last = (inventory, scope, selection)
        return selection

    def _build(self, inventory: Inventory, scope: Scope) -> Selection:
        parts = self._parts_under(scope).of(inventory.toolsets)
        deferrable = [
            part.deferrable or toolset
            for part, toolset in zip(parts, inventory.toolsets, strict=True)
            if part.whole or part.deferrable is not None
        ]
        return Selection(
            visible=tuple([tool for part in parts for tool in part.visible]),
            catalog=Catalog(toolsets=tuple(sorted(deferrable, key=attrgetter("name")))),
        )

    def _parts_under(self, scope: Scope) -> Alongside[Toolset, _Part]:
        parts = self._parts.get(scope)
        if parts is None:
            parts = self._parts[scope] = Alongside(lambda toolset: _part(toolset, scope, self.core))
            if len(self._parts) > CACHE_CATALOGS:
                self._parts.popitem(last=False)
        return parts
