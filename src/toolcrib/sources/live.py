"""Definitions that a host keeps as plain dictionaries and may change at any time.

The list is compared at every assembly by encoding it once: exact in types, order and content, and an order of
magnitude cheaper than what it replaces. Only definitions whose bytes changed are frozen again. The comparison never
trusts identity: a dictionary that was changed in place is a changed dictionary.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

import orjson

from toolcrib.definitions import Call, Json, JsonObject, Origin, Result, Skipped, Tool, Toolset, ToolsetName
from toolcrib.errors import DefinitionError
from toolcrib.execution.dispatch import CallContext
from toolcrib.intake.freezing import freeze_tool, name_of
from toolcrib.sources.base import build_toolset

Caller = Callable[[Call], Awaitable[Result]]
Grouping = Callable[[JsonObject], str]


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
        self._encoded = b""
        self._tools: dict[tuple[str, bytes], Tool | Skipped] = {}
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
        try:
            encoded = orjson.dumps(definitions)
        except TypeError:
            # Some definition is no JSON: freezing finds out which, and the rest is served.
            encoded = b""
        if not encoded or encoded != self._encoded:
            self._snapshot = self._freeze(definitions)
            self._encoded = encoded
        return self._snapshot

    async def call(self, call: Call, context: CallContext) -> Result:
        """Runs a tool through the host."""
        return await self._call(call)

    async def close(self) -> None:
        """Holds nothing."""

    def _freeze(self, definitions: Sequence[JsonObject]) -> tuple[Toolset, ...]:
        known, self._tools = self._tools, {}
        groups: dict[str, list[Tool | Skipped]] = {}
        for raw in definitions:
            toolset = self._group(raw)
            groups.setdefault(toolset, []).append(self._freeze_one(raw, toolset, known))
        old = {toolset.name: toolset for toolset in self._snapshot}
        return tuple(self._keep(old.get(ToolsetName(name)), name, items) for name, items in groups.items())

    def _group(self, raw: object) -> str:
        if self._toolset_of is None or not isinstance(raw, Mapping):
            return self._name
        return self._toolset_of(cast("JsonObject", raw))

    def _freeze_one(
        self, raw: JsonObject, toolset: str, known: Mapping[tuple[str, bytes], Tool | Skipped]
    ) -> Tool | Skipped:
        try:
            key = (toolset, orjson.dumps(raw))
        except TypeError:
            return self._frozen(raw, toolset)
        item = known.get(key)
        if item is None or (isinstance(item, Skipped) and b"null" in key[1]):
            # A NaN is encoded like null: what was left out for one is looked at again.
            item = self._frozen(raw, toolset)
        self._tools[key] = item
        return item

    def _frozen(self, raw: JsonObject, toolset: str) -> Tool | Skipped:
        try:
            return freeze_tool(raw, toolset=toolset, origin=self._origin)
        except DefinitionError as error:
            return Skipped(toolset=ToolsetName(toolset), name=name_of(raw), reason=str(error))

    def _keep(self, old: Toolset | None, name: str, items: list[Tool | Skipped]) -> Toolset:
        """The toolset, as the same object if nothing in it changed."""
        tools = [item for item in items if isinstance(item, Tool)]
        skipped = [item for item in items if isinstance(item, Skipped)]
        new = build_toolset(name, tools, origin=self._origin, skipped=skipped)
        # Identity, not equality: equal definitions may still be written in another order.
        if old is not None and _same(old.tools, new.tools) and old.skipped == new.skipped:
            return old
        return new


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def json_result(value: Json) -> Result:
    """A value as a result: text as it is, everything else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    structured = value if isinstance(value, Mapping) else None
    return Result(content=({"type": "text", "text": text},), structured=structured)
