"""OpenAI Responses: flat function tools, `function_call` and `function_call_output` items."""

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

NAME: DialectName = "openai_responses"


def read_tool(raw: JsonObject) -> ToolParts:
    """Reads a function tool; a bare `{name, description, parameters}` too."""
    return parts_of(raw, schema_key="parameters")


def write_tool(tool: Tool) -> JsonObject:
    """Writes a function tool. Left out, `strict` would make every optional parameter required."""
    if tool.dialect == NAME:
        return {"type": "function", **tool.definition, "name": tool.name}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def read_call(raw: JsonObject) -> ModelCall:
    """Reads a `function_call` item, or the `tool_search_call` of a search that the client runs."""
    searched = raw.get("type") == "tool_search_call"
    return ModelCall(
        id=require_text(raw, "call_id"),
        name="tool_search" if searched else require_text(raw, "name"),
        arguments=arguments_of(raw, "arguments"),
        dialect=NAME,
        raw=raw,
    )


def write_call(call: ModelCall) -> JsonObject:
    """Writes a `function_call` item."""
    if call.dialect == NAME:
        return as_object(call.raw)
    arguments = call.arguments if isinstance(call.arguments, str) else compact(call.arguments or {})
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def read_result(raw: JsonObject) -> Result:
    """Reads a `function_call_output` item."""
    return Result(content=text_blocks(raw.get("output")), dialect=NAME, raw=raw)


def write_result(call: ModelCall, result: Result) -> JsonObject:
    """Writes a `function_call_output` item; images travel as data addresses."""
    if result.dialect == NAME:
        return as_object(result.raw)
    if not any(block.get("type") == "image" for block in result.content):
        return {"type": "function_call_output", "call_id": call.id, "output": plain_text(result)}
    parts: list[JsonObject] = []
    for block in result.content:
        if block.get("type") == "image":
            parts.append(
                {
                    "type": "input_image",
                    "image_url": f"data:{block.get('mimeType')};base64,{block.get('data')}",
                }
            )
        else:
            parts.append({"type": "input_text", "text": plain_text(Result(content=(block,)))})
    return {"type": "function_call_output", "call_id": call.id, "output": parts}
