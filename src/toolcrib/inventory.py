"""The inventory: every toolset that the sources of a crib offer at one moment, and what a scope leaves of it.

It is replaced, never changed. All that is derived from it (parted toolsets, catalogs) is kept by identity of
immutable values, so a cache hit is always right and dropping the cache changes nothing (S18).
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from toolcrib.alongside import Alongside, common_ends, spliced
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
    given: tuple[Toolset, ...] = ()
    """The toolsets before anything was left out."""
    bare: bool = False
    """Whether some of them have no prefix."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """What one scope makes of an inventory."""

    visible: tuple[Tool, ...]
    catalog: Catalog


def build_inventory(toolsets: tuple[Toolset, ...], previous: Inventory | None = None) -> Inventory:
    """Puts toolsets together; where two use one name, the earlier keeps it and the later is reported.

    Prefixes are unique, so only toolsets without one can meet. While there is none, or while what has a prefix stands
    in for what had the same, nobody's names are taken.
    """
    if previous is not None:
        head, tail = common_ends(previous.given, toolsets)
        old, new = previous.given[head : len(previous.given) - tail], toolsets[head : len(toolsets) - tail]
        prefixes = [toolset.prefix for toolset in new]
        if all(prefixes) and (not previous.bare or prefixes == [toolset.prefix for toolset in old]):
            kept = spliced(previous.toolsets, head, tail, new)
            return Inventory(toolsets=kept, skipped=previous.skipped, given=toolsets, bare=previous.bare)
    return _put_together(toolsets)


def _put_together(toolsets: tuple[Toolset, ...]) -> Inventory:
    taken: dict[str, Tool] = {}
    kept: list[Toolset] = []
    skipped: list[Skipped] = []
    prefixes = {toolset.prefix for toolset in toolsets if toolset.prefix}
    if not prefixes and _are_apart(toolsets):
        return Inventory(toolsets=toolsets, given=toolsets, bare=bool(toolsets))
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
    bare = any(not toolset.prefix for toolset in toolsets)
    return Inventory(toolsets=tuple(kept), skipped=tuple(skipped), given=toolsets, bare=bare)


def _are_apart(toolsets: tuple[Toolset, ...]) -> bool:
    """Whether no two tools have one name: as it nearly always is."""
    names: dict[str, Tool] = {}
    for toolset in toolsets:
        names.update(toolset.by_name)
    return len(names) == sum([len(toolset.tools) for toolset in toolsets])


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


class _Grant:
    """What a scope makes of one inventory after the other."""

    __slots__ = ("_last", "_parts")

    def __init__(self, scope: Scope, core: CoreSet) -> None:
        self._parts: Alongside[Toolset, _Part] = Alongside(lambda toolset: _part(toolset, scope, core))
        self._last: tuple[tuple[Toolset, ...], tuple[_Part, ...], Selection] = ((), (), _NOTHING)

    def select(self, toolsets: tuple[Toolset, ...]) -> Selection:
        """What is granted of these toolsets; of those that were there the last time nothing is looked at again."""
        before, then, selection = self._last
        parts = self._parts.of(toolsets)
        head, tail = common_ends(before, toolsets)
        gone = then[head : len(then) - tail], before[head : len(before) - tail]
        come = parts[head : len(parts) - tail], toolsets[head : len(toolsets) - tail]
        selection = _amended(selection, gone, come) or _gathered(parts, toolsets)
        self._last = (toolsets, parts, selection)
        return selection


_Parts = tuple[tuple[_Part, ...], tuple[Toolset, ...]]
"""What was made of some toolsets, and the toolsets."""
_NOTHING = Selection(visible=(), catalog=Catalog(toolsets=()))
_FEW_TOOLSETS = 32
"""Toolsets that are exchanged one by one; more are put together anew."""


def _gathered(parts: tuple[_Part, ...], toolsets: tuple[Toolset, ...]) -> Selection:
    return Selection(
        visible=tuple([tool for part in parts for tool in part.visible]),
        catalog=Catalog(toolsets=tuple(sorted(_deferrable(parts, toolsets), key=attrgetter("name")))),
    )


def _amended(selection: Selection, gone: _Parts, come: _Parts) -> Selection | None:
    """The selection with some toolsets for others, if they are few and none has tools that are visible."""
    parts = (*gone[0], *come[0])
    if len(parts) > _FEW_TOOLSETS or any(part.visible for part in parts):
        return None
    catalog = selection.catalog.amended(_deferrable(*gone), _deferrable(*come))
    return None if catalog is None else Selection(visible=selection.visible, catalog=catalog)


def _deferrable(parts: tuple[_Part, ...], toolsets: tuple[Toolset, ...]) -> list[Toolset]:
    return [
        part.deferrable or toolset
        for part, toolset in zip(parts, toolsets, strict=True)
        if part.whole or part.deferrable is not None
    ]


class Selector:
    """Applies scopes to inventories, and keeps what did not change."""

    def __init__(self, core: CoreSet) -> None:
        self.core = core
        self._grants: OrderedDict[Scope, _Grant] = OrderedDict()
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
            selection = self._selections[key] = self._grant(scope).select(inventory.toolsets)
            if len(self._selections) > CACHE_CATALOGS:
                self._selections.popitem(last=False)
        else:
            self._selections.move_to_end(key)
        self._last = (inventory, scope, selection)
        return selection

    def _grant(self, scope: Scope) -> _Grant:
        grant = self._grants.get(scope)
        if grant is None:
            grant = self._grants[scope] = _Grant(scope, self.core)
            if len(self._grants) > CACHE_CATALOGS:
                self._grants.popitem(last=False)
        return grant
