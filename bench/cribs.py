"""Cribs to measure with: over a list of plain dictionaries, and over servers that hand out frozen records."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from toolcrib.crib import Crib
from toolcrib.definitions import Call, JsonObject, Result, Toolset, text_result
from toolcrib.intake.freezing import freeze_tool
from toolcrib.session import Session
from toolcrib.settings import Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.base import freeze_toolset
from toolcrib.sources.live import LiveDefinitions


def settings(retrieval: str = "lexical") -> Settings:
    """Always deferred, no words about the gate."""
    search = ToolSearchSettings(enabled="on", retrieval=retrieval)  # pyright: ignore[reportArgumentType]
    return Settings(tools=ToolsSettings(tool_search=search))


async def _run(call: Call) -> Result:
    return text_result("ok")


def name_of(raw: JsonObject) -> str:
    return cast("dict[str, str]", raw["function"])["name"]


def server_of(raw: Any) -> str:
    return "mcp-" + raw["function"]["name"].partition("__")[0]


def with_description(raw: JsonObject, text: str) -> JsonObject:
    """The same tool with other words."""
    return {**raw, "function": {**cast("JsonObject", raw["function"]), "description": text}}


def live_crib(tools: list[JsonObject], retrieval: str = "lexical") -> Crib:
    """A crib over a list that somebody else owns: compared at every assembly."""
    source = LiveDefinitions("live", lambda: tools, _run, toolset_of=server_of, origin="mcp")
    return Crib(source, settings=settings(retrieval))


def live(tools: list[JsonObject], retrieval: str = "lexical") -> Session:
    return live_crib(tools, retrieval).session(model_context=200_000)


class Servers:
    """A source of one toolset per server, as the connections to MCP servers hand them over: frozen, and announced."""

    name = "servers"

    def __init__(self, tools: list[JsonObject]) -> None:
        groups: dict[str, list[JsonObject]] = {}
        for raw in tools:
            groups.setdefault(server_of(raw), []).append(raw)
        self._toolsets = {name: freeze_toolset(name, raws, origin="mcp") for name, raws in groups.items()}
        self._changed: Callable[[], None] = lambda: None
        self._snapshot = tuple(self._toolsets.values())

    def snapshot(self) -> tuple[Toolset, ...]:
        return self._snapshot

    def watch(self, changed: Callable[[], None]) -> bool:
        self._changed = changed
        return True

    async def call(self, call: Call, context: object) -> Result:
        return text_result("ok")

    async def close(self) -> None:
        return None

    @property
    def names(self) -> list[str]:
        return list(self._toolsets)

    def change(self, raw: JsonObject) -> None:
        """One server announces one tool with other words."""
        old = self._toolsets[server_of(raw)]
        new = freeze_tool(raw, toolset=old.name, origin="mcp", prefix=old.prefix)
        self._put(replace(old, tools=tuple(new if tool.name == new.name else tool for tool in old.tools)))

    def flap(self, name: str, toolset: Toolset | None) -> Toolset:
        """Takes a server away, or gives it back."""
        old = self._toolsets.pop(name) if toolset is None else toolset
        if toolset is not None:
            self._toolsets[name] = toolset
        self._snapshot = tuple(self._toolsets.values())
        self._changed()
        return old

    def _put(self, toolset: Toolset) -> None:
        self._toolsets[toolset.name] = toolset
        self._snapshot = tuple(self._toolsets.values())
        self._changed()


def frozen(source: Servers, retrieval: str = "lexical", **scope: object) -> Session:
    return Crib(source, settings=settings(retrieval)).session(model_context=200_000, **scope)  # pyright: ignore[reportArgumentType]
