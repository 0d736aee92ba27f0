"""Gemini: function declarations, `functionCall` and `functionResponse` parts.

Declarations may hold a JSON Schema (`parametersJsonSchema`) or an OpenAPI subset (`parameters`) whose types are
written in capitals; the second is read as the JSON Schema that it means, and written back as it was.
"""

from collections.abc import Mapping

from toolcrib.definitions import DialectName, Json, JsonObject, ModelCall, Result, Tool
from toolcrib.dialects.base import ToolParts, arguments_of, as_object, parts_of, plain_text, require_text, text_blocks
from toolcrib.errors import InvalidCall

NAME: DialectName = "gemini"


def read_tool(raw: JsonObject) -> ToolParts:
    """Reads one function declaration."""
    for key in ("parametersJsonSchema", "parameters_json_schema"):
        if key in raw:
            return parts_of(raw, schema_key=key)
    return parts_of({**raw, "parameters": _json_schema(raw.get("parameters"))}, schema_key="parameters")


def write_tool(tool: Tool) -> JsonObject:
    """Writes one function declaration."""
    if tool.dialect == NAME:
        return {**tool.definition, "name": tool.name}
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}


def read_call(raw: JsonObject) -> ModelCall:
    """Reads a `functionCall` part, or what is inside it. Older models send no id: the name stands in."""
    call = raw.get("functionCall", raw.get("function_call", raw if "args" in raw else None))
    if not isinstance(call, Mapping):
        raise InvalidCall("A tool call needs `functionCall`: an object with `name` and `args`.")
    name = require_text(call, "name")
    identifier = call.get("id")
    return ModelCall(
        id=identifier if isinstance(identifier, str) and identifier else name,
        name=name,
        arguments=arguments_of(call, "args"),
        dialect=NAME,
        raw=raw,
    )


def write_call(call: ModelCall) -> JsonObject:
    """Writes a `functionCall` part."""
    if call.dialect == NAME:
        raw = as_object(call.raw)
        return {"functionCall": raw} if "args" in raw else raw
    return {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments or {}}}


def read_result(raw: JsonObject) -> Result:
    """Reads a `functionResponse` part."""
    response = as_object(as_object(raw.get("functionResponse", raw.get("function_response"))).get("response"))
    if "error" in response:
        return Result(content=text_blocks(str(response["error"])), is_error=True, dialect=NAME, raw=raw)
    output = response.get("result", response)
    if isinstance(output, str):
        return Result(content=text_blocks(output), dialect=NAME, raw=raw)
    return Result(structured=output, dialect=NAME, raw=raw)


def write_result(call: ModelCall, result: Result) -> JsonObject:
    """Writes a `functionResponse` part."""
    if result.dialect == NAME:
        return as_object(result.raw)
    if result.is_error or not isinstance(result.structured, Mapping):
        response: JsonObject = {"error" if result.is_error else "result": plain_text(result)}
    else:
        response = {"result": result.structured}
        # Text says the same as the structured value; other blocks may say more.
        others = tuple(block for block in result.content if block.get("type") != "text")
        if others:
            response["content"] = plain_text(Result(content=others))
        if result.notes:
            response["note"] = "; ".join(result.notes)
    return {"functionResponse": {"id": call.id, "name": call.name, "response": response}}


def _json_schema(value: Json) -> Json:
    """The same schema with types in lower case, as JSON Schema writes them."""
    if isinstance(value, Mapping):
        return {
            key: item.lower() if key == "type" and isinstance(item, str) else _json_schema(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_json_schema(item) for item in value]
    return value
