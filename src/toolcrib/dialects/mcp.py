"""MCP: the definitions of `tools/list`, the parameters of `tools/call` and its result."""

from collections.abc import Mapping

from toolcrib.definitions import DialectName, JsonObject, ModelCall, Result, Tool
from toolcrib.dialects.base import ToolParts, as_object, parts_of, require_text

NAME: DialectName = "mcp"


def read_tool(raw: JsonObject) -> ToolParts:
    """Reads an entry of `tools/list`."""
    return parts_of(raw, schema_key="inputSchema", annotations=raw.get("annotations"))


def write_tool(tool: Tool) -> JsonObject:
    """Writes an entry of `tools/list`; unknown fields, annotations and `_meta` survive."""
    if tool.dialect == NAME:
        return {**tool.definition, "name": tool.name}
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}


def read_call(raw: JsonObject) -> ModelCall:
    """Reads the parameters of `tools/call`; an `id` beside them is the caller's own."""
    identifier = raw.get("id")
    return ModelCall(
        id=str(identifier) if isinstance(identifier, str | int) and identifier != "" else "call",
        name=require_text(raw, "name"),
        arguments=raw.get("arguments"),
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


def write_result(call: ModelCall, result: Result) -> JsonObject:
    """Writes the result of `tools/call`."""
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
