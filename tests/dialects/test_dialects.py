"""Every dialect: reading and writing in the same shape loses nothing."""

from typing import Any

import pytest

from toolcrib.definitions import DialectName, ModelCall, Result, text_result
from toolcrib.dialects import DIALECTS, detect_tool_dialect, expand_definitions, read_call, require_dialect
from toolcrib.errors import ConfigError, DefinitionError, InvalidCall
from toolcrib.intake.freezing import freeze_tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "x-unit": "name"}},
    "required": ["city"],
}

TOOLS: dict[DialectName, dict[str, Any]] = {
    "openai_chat": {
        "type": "function",
        "function": {"name": "forecast", "description": "Weather.", "parameters": SCHEMA, "strict": True},
        "x-host": 1,
    },
    "openai_responses": {
        "type": "function",
        "name": "forecast",
        "description": "Weather.",
        "parameters": SCHEMA,
        "strict": False,
    },
    "anthropic": {
        "name": "forecast",
        "description": "Weather.",
        "input_schema": SCHEMA,
        "cache_control": {"type": "ephemeral"},
    },
    "gemini": {"name": "forecast", "description": "Weather.", "parametersJsonSchema": SCHEMA, "behavior": "BLOCKING"},
    "mcp": {
        "name": "forecast",
        "title": "Forecast",
        "description": "Weather.",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "vendorHint": "kept"},
        "_meta": {"a/b": [1, 2]},
        "icons": [],
        "x-unknown": {"deep": None},
    },
}

CALLS: dict[DialectName, dict[str, Any]] = {
    "openai_chat": {
        "id": "c1",
        "type": "function",
        "function": {"name": "forecast", "arguments": '{"city": "Rome"}'},
        "index": 0,
    },
    "openai_responses": {
        "type": "function_call",
        "id": "fc",
        "call_id": "c1",
        "name": "forecast",
        "arguments": '{"city":"Rome"}',
    },
    "anthropic": {
        "type": "tool_use",
        "id": "c1",
        "name": "forecast",
        "input": {"city": "Rome"},
        "caller": {"type": "direct"},
    },
    "gemini": {"functionCall": {"id": "c1", "name": "forecast", "args": {"city": "Rome"}}, "thoughtSignature": "s"},
    "mcp": {"id": "c1", "name": "forecast", "arguments": {"city": "Rome"}, "_meta": {"progressToken": 7}},
}

RESULTS: dict[DialectName, dict[str, Any]] = {
    "openai_chat": {"role": "tool", "tool_call_id": "c1", "content": "sunny", "x": 1},
    "openai_responses": {"type": "function_call_output", "call_id": "c1", "output": "sunny", "status": "completed"},
    "anthropic": {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "sunny"}],
        "is_error": False,
    },
    "gemini": {"functionResponse": {"id": "c1", "name": "forecast", "response": {"result": "sunny"}}, "x": 1},
    "mcp": {
        "content": [{"type": "text", "text": "sunny", "annotations": {"priority": 1}}],
        "resultType": "complete",
        "_meta": {"k": 1},
    },
}

NAMES = list(DIALECTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_definition_comes_back_as_it_was(name: DialectName) -> None:
    tool = freeze_tool(TOOLS[name], toolset="t", origin="mcp")
    assert detect_tool_dialect(TOOLS[name]) == name
    assert DIALECTS[name].write_tool(tool) == TOOLS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_comes_back_as_it_was_and_means_the_same_in_every_dialect(name: DialectName) -> None:
    call = read_call(CALLS[name])
    assert (call.id, call.name, call.dialect) == ("c1", "forecast", name)
    assert DIALECTS[name].write_call(call) == CALLS[name]
    for other in NAMES:
        again = read_call({**DIALECTS[other].write_call(call), **({"id": "c1"} if other == "mcp" else {})})
        assert (again.id, again.name) == ("c1", "forecast")


@pytest.mark.parametrize("name", NAMES)
def test_a_result_comes_back_as_it_was(name: DialectName) -> None:
    result = DIALECTS[name].read_result(RESULTS[name])
    assert result.text == "sunny"
    assert DIALECTS[name].write_result(read_call(CALLS[name]), result) == RESULTS[name]


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_a_definition_can_be_written_in_every_other_dialect(source: DialectName, target: DialectName) -> None:
    tool = freeze_tool(TOOLS[source], toolset="t", origin="mcp", prefix="w")
    again = freeze_tool(DIALECTS[target].write_tool(tool), toolset="t", origin="mcp")
    assert (again.name, again.description, again.parameters) == ("w__forecast", "Weather.", SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_result_is_marked_where_the_api_has_a_mark(name: DialectName) -> None:
    call = ModelCall(id="c1", name="forecast", arguments=None)
    written = DIALECTS[name].write_result(call, text_result("no such city", is_error=True))
    assert "no such city" in str(written)
    if name in {"anthropic", "mcp", "gemini"}:
        assert DIALECTS[name].read_result(written).is_error


def test_images_travel_where_they_can_and_are_named_where_they_cannot() -> None:
    result = Result(
        content=(
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "file:///x"},
        )
    )
    call = ModelCall(id="c1", name="draw", arguments=None)
    assert "image/png, 3 bytes" in str(DIALECTS["openai_chat"].write_result(call, result)["content"])
    assert DIALECTS["anthropic"].write_result(call, result)["content"][0]["source"]["data"] == "AAAA"
    assert "data:image/png;base64,AAAA" in str(DIALECTS["openai_responses"].write_result(call, result))
    assert DIALECTS["mcp"].write_result(call, result)["content"] == list(result.content)


def test_geminis_capital_types_are_read_as_json_schema_and_written_back_as_they_were() -> None:
    raw = {"name": "f", "description": "", "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}}
    tool = freeze_tool(raw, toolset="t", origin="mcp", dialect="gemini")
    assert tool.parameters == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert DIALECTS["gemini"].write_tool(tool) == raw


def test_definitions_are_found_inside_lists_and_wrappers() -> None:
    inner = TOOLS["gemini"]
    assert list(expand_definitions([{"functionDeclarations": [inner, inner]}, TOOLS["mcp"]])) == [
        inner,
        inner,
        TOOLS["mcp"],
    ]
    assert list(expand_definitions({"tools": [TOOLS["mcp"]]})) == [TOOLS["mcp"]]


def test_an_sdk_object_is_read_like_its_json() -> None:
    class Sdk:
        def model_dump(self, **_: object) -> dict[str, Any]:
            return CALLS["anthropic"]

    assert read_call(Sdk()).name == "forecast"


@pytest.mark.parametrize(
    "raw", [None, 7, "text", [], {}, {"function": 3}, {"id": "", "function": {"name": "x"}}, {"functionCall": []}]
)
def test_what_is_no_call_gets_a_sentence(raw: object) -> None:
    with pytest.raises(InvalidCall, match=r"A tool call"):
        read_call(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {"name": 3},
        {"name": ""},
        {"name": "a", "description": 3},
        {"name": "a", "inputSchema": []},
        {"type": "function", "function": {}},
    ],
)
def test_what_is_no_definition_gets_a_reason(raw: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        freeze_tool(raw, toolset="t", origin="mcp")


def test_an_unknown_dialect_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="openai_chat, openai_responses"):
        require_dialect("openai")
