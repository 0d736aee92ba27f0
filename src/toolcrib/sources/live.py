"""Definitions that a host keeps as plain dictionaries and may change at any time.

The list is compared at every assembly by encoding it once: exact in types, order and content, and an order of
magnitude cheaper than what it replaces. Only definitions whose bytes changed are frozen again. The comparison never
trusts identity: a dictionary that was changed in place is a changed dictionary.

With the compiled kernel a stretch is compared value by value with what was kept of it when it was last encoded, which
takes less than half as long. What it finds to be the same has the same bytes; of everything else the bytes decide.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeGuard

import orjson
from msgspec import Struct

from toolcrib.definitions import Call, Json, JsonObject, Origin, Result, Skipped, Tool, Toolset, ToolsetName, fitted
from toolcrib.errors import DefinitionError
from toolcrib.execution.dispatch import CallContext
from toolcrib.intake.freezing import freeze_plain, freeze_tool, name_of
from toolcrib.kernel import kernel
from toolcrib.sources.base import build_toolset

if TYPE_CHECKING:
    from toolcrib._kernel import Kept

_CHUNK = 64
"""Definitions compared at once: the encoded stretch stays small enough for the processor's cache."""

_KEPT_MAX_VALUES = 1 << 18
"""Values of a stretch that are kept for the next comparison, eight bytes each; with more of them it is encoded."""

Caller = Callable[[Call], Awaitable[Result]]
Grouping = Callable[[JsonObject], str]


class _Left(Struct, frozen=True, gc=False):
    """One definition of the list that was left out, as it was last seen."""

    toolset: str
    raw: bytes | None
    """Nothing if it cannot be encoded: then it is looked at every time."""
    skipped: Skipped


_TOOLSET = attrgetter("toolset")
_Entry = Tool | _Left
"""One definition of the list: the tool that was made of it, or what is known of one that was left out."""


class _Chunk:
    """A stretch of the list: compared as a whole, frozen again as a whole."""

    __slots__ = ("_encoded", "_kept", "entries")

    def __init__(self, entries: tuple[_Entry, ...], kept: "Kept | None" = None) -> None:
        self.entries = entries
        self._encoded: bytes | None = None
        self._kept = kept

    def still(self, part: Sequence[JsonObject]) -> bool:
        """Whether this is what the stretch looks like now."""
        if kernel is None:
            return self._is(_encode(part))
        if self._kept is not None and kernel.same(self._kept, part):
            return True
        now = _look(part)
        if now is None:
            return self._is(_encode(part))
        if not self._is(now[1]):
            return False
        # From now on the bytes are needed only where the values are no longer exactly these.
        self._kept, self._encoded = now[0], None
        return True

    def _is(self, encoded: bytes | None) -> bool:
        if encoded is None:
            return False
        if self._encoded is None:
            parts = [entry.raw for entry in self.entries if entry.raw is not None]
            if len(parts) < len(self.entries):
                return False
            # What an encoder makes of the stretch as a whole.
            self._encoded = b"[" + b",".join(parts) + b"]"
        return encoded == self._encoded


_Known = Mapping[tuple[str, bytes], _Entry]


class LiveDefinitions:
    """A source over a list of definitions that somebody else owns."""

    def __init__(
        self,
        name: str,
        definitions: Callable[[], Sequence[JsonObject]],
        call: Caller,
        *,
        toolset_of: Grouping | None = None,
        origin: Origin = "plugin",
    ) -> None:
        self._name = name
        self._definitions = definitions
        self._call = call
        self._toolset_of = toolset_of
        self._origin: Origin = origin
        self._chunks: list[_Chunk] = []
        self._snapshot: tuple[Toolset, ...] = ()

    @property
    def name(self) -> str:
        """The name by which the source is added and removed."""
        return self._name

    def watch(self, changed: Callable[[], None]) -> bool:
        """The list tells nobody when it changes."""
        return False

    def snapshot(self) -> Sequence[Toolset]:
        """The toolsets of the list as it is now."""
        definitions = self._definitions()
        old, new = self._chunks, list[_Chunk]()
        shifted = len(definitions) != sum(len(chunk.entries) for chunk in old)
        everything: _Known | None = None
        for number, start in enumerate(range(0, len(definitions), _CHUNK)):
            part = definitions[start : start + _CHUNK]
            before = old[number] if number < len(old) else None
            if before is not None and before.still(part):
                new.append(before)
                continue
            if shifted and everything is None:
                everything = _known(old)
            known = everything if everything is not None else _known([before] if before else [])
            new.append(self._chunk(part, known))
        if len(new) != len(old) or any(one is not other for one, other in zip(new, old, strict=True)):
            self._chunks = new
            self._snapshot = self._toolsets(old)
        return self._snapshot

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs a tool through the host."""
        return await self._call(call)

    async def close(self) -> None:
        """Holds nothing."""

    def _chunk(self, part: Sequence[JsonObject], known: _Known) -> _Chunk:
        """A stretch as it is now; with the compiled kernel encoded as a whole, and kept for the next comparison."""
        # Before anything is encoded: the host's own function might change what it looks at.
        groups = self._groups(part)
        fresh = None
        if not known and isinstance(part, list):
            fresh = freeze_plain(part, groups, origin=self._origin, most=_KEPT_MAX_VALUES)
            if fresh is not None and _are_tools(fresh[2]):
                return _Chunk(tuple(fresh[2]), fresh[0])
        kept, finite, encoded = fresh or _items(part)
        entries = [
            own if isinstance(own, Tool) else self._entry(raw, group, known, own, plain=finite)
            for raw, group, own in zip(part, groups, encoded, strict=True)
        ]
        return _Chunk(tuple(entries), kept)

    def _entry(self, raw: JsonObject, toolset: str, known: _Known, encoded: bytes | None, *, plain: bool) -> _Entry:
        entry = known.get((toolset, encoded)) if known and encoded is not None else None
        # A NaN is encoded like null: what was left out for one is looked at again.
        if entry is None or (isinstance(entry, _Left) and encoded is not None and b"null" in encoded):
            entry = self._frozen(raw, toolset, encoded, plain=plain)
        return entry

    def _groups(self, part: Sequence[JsonObject]) -> list[str]:
        """The toolset of each definition; whatever is none of those is the source's own."""
        name, toolset_of = self._name, self._toolset_of
        if toolset_of is None:
            return [name] * len(part)
        return [
            # Anything may stand in somebody else's list, and nearly always it is a plain dictionary.
            toolset_of(raw) if type(raw) is dict or isinstance(raw, Mapping) else name  # pyright: ignore[reportUnnecessaryIsInstance]
            for raw in part
        ]

    def _frozen(self, raw: JsonObject, toolset: str, encoded: bytes | None, *, plain: bool) -> _Entry:
        try:
            return freeze_tool(raw, toolset=toolset, origin=self._origin, encoded=encoded, plain=plain)
        except DefinitionError as error:
            skipped = Skipped(toolset=ToolsetName(toolset), name=name_of(raw), reason=str(error))
            return _Left(toolset, encoded, skipped)

    def _toolsets(self, old: Sequence[_Chunk]) -> tuple[Toolset, ...]:
        """All toolsets; those that no changed chunk has a part in are the same objects."""
        touched = _touched(old, self._chunks) if self._snapshot else frozenset[str]()
        before = {toolset.name: toolset for toolset in self._snapshot}
        groups: dict[str, list[_Entry]] = {}
        for name, entries in groupby(chain.from_iterable([chunk.entries for chunk in self._chunks]), _TOOLSET):
            groups.setdefault(name, []).extend(entries)
        return tuple(
            self._build(name, entries, before.get(ToolsetName(name)), changed=name in touched)
            for name, entries in groups.items()
        )

    def _build(self, name: str, entries: list[_Entry], before: Toolset | None, *, changed: bool) -> Toolset:
        if before is not None and not changed:
            return before
        tools, skipped = (entries, ()) if _are_tools(entries) else _parted(entries)
        toolset = build_toolset(name, tools, origin=self._origin, skipped=skipped)
        # Identity, not equality: equal definitions may still be written in another order.
        if before is not None and _same(before.tools, toolset.tools) and before.skipped == toolset.skipped:
            return before
        return toolset


def _are_tools(entries: Sequence[object]) -> TypeGuard[Sequence[Tool]]:
    """Whether nothing was left out: what is nearly always so is seen at one look."""
    return set(map(type, entries)) <= {Tool}


def _parted(entries: Sequence[_Entry]) -> tuple[list[Tool], list[Skipped]]:
    """The tools, and what is known of definitions that were left out."""
    tools = [entry for entry in entries if isinstance(entry, Tool)]
    return tools, [entry.skipped for entry in entries if isinstance(entry, _Left)]


def _touched(old: Sequence[_Chunk], new: Sequence[_Chunk]) -> frozenset[str]:
    """The toolsets that have a part in what is not in both."""
    same = {id(chunk) for chunk in new} & {id(chunk) for chunk in old}
    return frozenset(entry.toolset for chunk in (*old, *new) if id(chunk) not in same for entry in chunk.entries)


def _known(chunks: Sequence[_Chunk]) -> _Known:
    """What was seen in these stretches, by toolset and content."""
    return {(entry.toolset, entry.raw): entry for chunk in chunks for entry in chunk.entries if entry.raw}


def _look(part: Sequence[JsonObject]) -> "tuple[Kept, bytes, bool] | None":
    """What the compiled kernel keeps of a stretch, the stretch encoded, and whether all numbers are finite."""
    if kernel is None:
        return None
    try:
        return kernel.keep(part, orjson.dumps, _KEPT_MAX_VALUES)
    except TypeError:  # plain values that JSON has no place for
        return None


def _items(part: Sequence[JsonObject]) -> "tuple[Kept | None, bool, Sequence[bytes | None]]":
    """What is kept of a stretch, whether all numbers are finite, and each definition encoded, if it can be."""
    if kernel is not None and (seen := _look(part)) is not None and (items := kernel.items(seen[1])) is not None:
        return seen[0], seen[2], items
    return None, False, [_encode(raw) for raw in part]


def _encode(value: object) -> bytes | None:
    """In memory of its own size, to be kept."""
    try:
        return fitted(orjson.dumps(value))
    except TypeError:
        # Some definition is no JSON: freezing finds out which, and the rest is served.
        return None


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def json_result(value: Json) -> Result:
    """A value as a result: text as it is, everything else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    structured = value if isinstance(value, Mapping) else None
    return Result(content=({"type": "text", "text": text},), structured=structured)
