"""Small true things to test with: tools that run, a source that counts, a crib in one line."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from toolcrib.crib import Crib
from toolcrib.definitions import Call, JsonObject, Origin, Result, Tool, Toolset, Traits, text_result
from toolcrib.execution.dispatch import CallContext
from toolcrib.intake.freezing import freeze_tool
from toolcrib.settings import Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.base import build_toolset


def definition(name: str, description: str = "", **properties: Any) -> JsonObject:
    """An MCP definition; properties ending in `_` are optional."""
    schema: JsonObject = {
        "type": "object",
        "properties": {key.rstrip("_"): value for key, value in properties.items()},
        "required": [key for key in properties if not key.endswith("_")],
    }
    return {"name": name, "description": description or f"Does {name.replace('_', ' ')}.", "inputSchema": schema}


TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}


class Recorder:
    """A source whose tools really run: they echo, and every run is counted."""

    def __init__(
        self,
        name: str,
        definitions: Sequence[JsonObject],
        *,
        origin: Origin = "mcp",
        prefix: str = "",
        traits: Traits | None = None,
        answer: Callable[[Call], Any] | None = None,
    ) -> None:
        self.name = name
        self.calls: list[Call] = []
        self._origin: Origin = origin
        self._prefix = prefix
        self._traits = traits
        self._answer = answer
        self._changed: list[Callable[[], None]] = []
        self._toolset: Toolset
        self.define(definitions)

    def define(self, definitions: Sequence[JsonObject], *, unavailable: str | None = None) -> None:
        tools = [
            freeze_tool(raw, toolset=self.name, origin=self._origin, prefix=self._prefix, traits=self._traits)
            for raw in definitions
        ]
        self._toolset = build_toolset(
            self.name, tools, origin=self._origin, prefix=self._prefix, unavailable=unavailable
        )
        for changed in self._changed:
            changed()

    def snapshot(self) -> tuple[Toolset, ...]:
        return (self._toolset,)

    def watch(self, changed: Callable[[], None]) -> bool:
        self._changed.append(changed)
        return True

    async def call(self, call: Call, context: CallContext) -> Result:
        self.calls.append(call)
        value = self._answer(call) if self._answer else f"{call.tool.name} ran"
        if asyncio.iscoroutine(value):
            value = await value
        return value if isinstance(value, Result) else text_result(str(value))

    async def close(self) -> None:
        self.name = f"{self.name} (closed)"


def github(**options: Any) -> Recorder:
    definitions = [
        definition(
            "create_issue", "Create a new issue in a repository.", owner=TEXT, repo=TEXT, title=TEXT, body_=TEXT
        ),
        definition("list_issues", "List the issues of a repository.", owner=TEXT, repo=TEXT),
        definition("delete_repo", "Delete a repository for good.", owner=TEXT, repo=TEXT),
        definition("search", "Search code, issues and people.", query=TEXT),
    ]
    return Recorder("mcp-github", definitions, prefix="github", **options)


def weather(**options: Any) -> Recorder:
    definitions = [
        definition("forecast", "Weather forecast for a city.", city=TEXT, days_=NUMBER),
        definition("search", "Search for a weather station.", query=TEXT),
    ]
    return Recorder("mcp-weather", definitions, prefix="weather", **options)


def core(**options: Any) -> Recorder:
    definitions = [
        definition("read_file", "Read a file.", path=TEXT),
        definition("terminal", "Run a command.", command=TEXT),
    ]
    return Recorder("core", definitions, origin="plugin", **options)


def settings(**search: Any) -> Settings:
    return Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(**{"retrieval": "lexical", **search})))


def crib(*sources: Any, **options: Any) -> Crib:
    """A crib with the bridge always on, over `sources` or over the three above."""
    options.setdefault("settings", settings(enabled="on"))
    return Crib(*(sources or (core(), github(), weather())), **options)


def model_call(name: str, arguments: Any = None, call_id: str = "call-1") -> JsonObject:
    """A call as OpenAI chat completions give it."""
    import json

    text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def bridged(name: str, arguments: Any = None, call_id: str = "call-1") -> JsonObject:
    return model_call("tool_call", {"name": name, "arguments": arguments if arguments is not None else {}}, call_id)


def tool(
    name: str,
    description: str = "",
    *,
    toolset: str = "mcp-t",
    origin: Origin = "mcp",
    prefix: str = "",
    **properties: Any,
) -> Tool:
    return freeze_tool(definition(name, description, **properties), toolset=toolset, origin=origin, prefix=prefix)


def toolset(name: str, *tools: Tool, prefix: str = "", origin: Origin = "mcp") -> Toolset:
    return build_toolset(name, tools, origin=origin, prefix=prefix)
