"""Anthropic messages: `input_schema`, `tool_use` and `tool_result` blocks."""

from toolcrib.definitions import DialectName, JsonObject, ModelCall, Result, Tool
from toolcrib.dialects.base import ToolParts, arguments_of, as_object, parts_of, plain_text, require_text, text_blocks

NAME: DialectName = "anthropic"


def read_tool(raw: JsonObject) -> ToolParts:
    """Reads a client tool."""
    return parts_of(raw, schema_key="input_schema")


def write_tool(tool: Tool) -> JsonObject:
    """Writes a client tool."""
    if tool.dialect == NAME:
        return {**tool.definition, "name": tool.name}
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def read_call(raw: JsonObject) -> ModelCall:
    """Reads a `tool_use` block."""
    return ModelCall(
        id=require_text(raw, "id"),
        name=require_text(raw, "name"),
        arguments=arguments_of(raw, "input"),
        dialect=NAME,
        raw=raw,
    )


def write_call(call: ModelCall) -> JsonObject:
    """Writes a `tool_use` block."""
    if call.dialect == NAME:
        return as_object(call.raw)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}


def read_result(raw: JsonObject) -> Result:
    """Reads a `tool_result` block."""
    return Result(content=text_blocks(raw.get("content")), is_error=raw.get("is_error") is True, dialect=NAME, raw=raw)


def write_result(call: ModelCall, result: Result) -> JsonObject:
    """Writes a `tool_result` block."""
    if result.dialect == NAME:
        return as_object(result.raw)
    blocks: list[JsonObject] = []
    for block in result.content:
        if block.get("type") == "image":
            source: JsonObject = {
                "type": "base64",
                "media_type": block.get("mimeType"),
                "data": block.get("data"),
            }
            blocks.append({"type": "image", "source": source})
        else:
            blocks.append({"type": "text", "text": plain_text(Result(content=(block,)))})
    if not blocks and result.structured is not None:
        blocks.append({"type": "text", "text": plain_text(result)})
    answer: JsonObject = {"type": "tool_result", "tool_use_id": call.id, "content": blocks}
    return {**answer, "is_error": True} if result.is_error else answer
