"""OpenAI chat completions: `{"type": "function", "function": {...}}`, and the servers that speak it."""

from toolcrib.definitions import DialectName, JsonObject, ModelCall, Result, Tool
from toolcrib.dialects.base import (
    ToolParts,
    arguments_of,
    as_object,
    compact,
    parts_of,
    plain_text,
    require_text,
    text_blocks,
)
from toolcrib.errors import InvalidCall

NAME: DialectName = "openai_chat"


def read_tool(raw: JsonObject) -> ToolParts:
    """Reads a function tool."""
    function = raw.get("function")
    return parts_of(function if isinstance(function, dict) else as_object(function), schema_key="parameters")


def write_tool(tool: Tool) -> JsonObject:
    """Writes a function tool."""
    if tool.dialect == NAME:
        raw = tool.definition
        return {**raw, "function": {**as_object(raw.get("function")), "name": tool.name}}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def read_call(raw: JsonObject) -> ModelCall:
    """Reads one of a message's `tool_calls`."""
    function = raw.get("function")
    if not isinstance(function, dict):
        raise InvalidCall("A tool call needs `function`: an object with `name` and `arguments`.")
    return ModelCall(
        id=require_text(raw, "id"),
        name=require_text(function, "name"),
        arguments=arguments_of(function, "arguments"),
        dialect=NAME,
        raw=raw,
    )


def write_call(call: ModelCall) -> JsonObject:
    """Writes an entry of `tool_calls`."""
    if call.dialect == NAME:
        return as_object(call.raw)
    arguments = call.arguments if isinstance(call.arguments, str) else compact(call.arguments or {})
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def read_result(raw: JsonObject) -> Result:
    """Reads a message with the role `tool`."""
    return Result(content=text_blocks(raw.get("content")), dialect=NAME, raw=raw)


def write_result(call: ModelCall, result: Result) -> JsonObject:
    """Writes a message with the role `tool`."""
    if result.dialect == NAME:
        return as_object(result.raw)
    return {"role": "tool", "tool_call_id": call.id, "content": plain_text(result)}
