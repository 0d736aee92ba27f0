"""MCP: the definitions of `tools/list`, the parameters of `tools/call` and its result."""

from collections.abc import Mapping
from typing import cast

import orjson

from toolcrib.definitions import BRIDGE_NAMES, DialectName, Json, JsonObject, ModelCall, Result, Tool
from toolcrib.dialects.base import ToolParts, arguments_of, as_object, parts_of, require_text

NAME: DialectName = "mcp"

_TOOL_CALL = BRIDGE_NAMES[2]


def read_tool(raw: JsonObject) -> ToolParts:
    """Reads an entry of `tools/list`."""
    return parts_of(raw, schema_key="inputSchema", annotations=raw.get("annotations"))


def write_tool(tool: Tool) -> JsonObject:
    """Writes an entry of `tools/list`; unknown fields, annotations and `_meta` survive."""
    if tool.dialect == NAME:
        return {**tool.definition, "name": tool.name}
    definition: JsonObject = {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
    if tool.name == _TOOL_CALL:
        # Whoever stands between client and gateway sees the real tool in a header (X18).
        properties = cast("dict[str, JsonObject]", cast("JsonObject", definition["inputSchema"])["properties"])
        properties["name"]["x-mcp-header"] = "Tool"
    annotations = _annotations_of(tool)
    return {**definition, "annotations": annotations} if annotations else definition


def _annotations_of(tool: Tool) -> JsonObject:
    traits = tool.traits
    hints: dict[str, bool | None] = {
        "readOnlyHint": traits.read_only,
        "destructiveHint": traits.destructive,
        "idempotentHint": traits.idempotent,
        "openWorldHint": traits.open_world,
    }
    return {key: value for key, value in hints.items() if value is not None}


def read_call(raw: JsonObject) -> ModelCall:
    """Reads the parameters of `tools/call`; an `id` beside them is the caller's own."""
    identifier = raw.get("id")
    return ModelCall(
        id=str(identifier) if isinstance(identifier, str | int) and identifier != "" else "call",
        name=require_text(raw, "name"),
        arguments=arguments_of(raw, "arguments"),
        dialect=NAME,
        raw=raw,
    )


def write_call(call: ModelCall) -> JsonObject:
    """Writes the parameters of `tools/call`."""
    if call.dialect == NAME:
        return as_object(call.raw)
    return {"name": call.name, "arguments": call.arguments or {}}


def read_result(raw: JsonObject) -> Result:
    """Reads the result of `tools/call`."""
    content = raw.get("content")
    blocks = tuple(dict(block) for block in content if isinstance(block, Mapping)) if isinstance(content, list) else ()
    return Result(
        content=blocks,
        structured=raw.get("structuredContent"),
        is_error=raw.get("isError") is True,
        meta=as_object(raw.get("_meta")),
        dialect=NAME,
        raw=raw,
    )


def open_result(result: Result) -> Result:
    """The result with its content read, if it still was the bytes that a server sent."""
    if result.encoded is None:
        return result
    raw = cast("Json", orjson.loads(result.encoded))
    return read_result(as_object(raw))


def write_result(call: ModelCall, result: Result) -> JsonObject:
    """Writes the result of `tools/call`."""
    result = open_result(result)
    if result.dialect == NAME:
        return as_object(result.raw)
    answer: JsonObject = {"content": list(result.content)}
    if result.structured is not None:
        answer["structuredContent"] = result.structured
    if result.is_error:
        answer["isError"] = True
    if result.meta:
        answer["_meta"] = result.meta
    return answer
