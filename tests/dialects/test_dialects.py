"""Every dialect: reading and writing in the same shape loses nothing."""

from typing import Any

import pytest

from toolcrib.definitions import DialectName, ModelCall, Result, text_result
from toolcrib.dialects import (
    DIALECTS,
    detect_tool_dialect,
    expand_definitions,
    read_call,
    require_dialect,
    salvage_call,
)
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


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic", "gemini"])
def test_the_text_of_an_embedded_resource_reaches_every_model(name: DialectName) -> None:
    call = ModelCall(id="c1", name="read", arguments=None)
    read = {"uri": "repo://readme", "mimeType": "text/markdown", "text": "The contents."}
    kept = {"uri": "repo://logo", "mimeType": "image/png", "blob": "AAAAAA=="}
    content = ({"type": "resource", "resource": read}, {"type": "resource", "resource": kept})
    written = str(DIALECTS[name].write_result(call, Result(content=content)))
    assert "The contents." in written
    both = str(DIALECTS[name].write_result(call, Result(content=content, structured={"files": 2})))
    assert "The contents." in both
    assert "[resource repo://logo image/png, 4 bytes: this model API takes text only]" in written


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", ["QUJDRA", "!!", 7, None])
def test_data_that_is_no_faultless_base64_is_an_answer_all_the_same(name: DialectName, data: Any) -> None:
    call = ModelCall(id="c1", name="listen", arguments=None)
    content = tuple({"type": kind, "data": data, "mimeType": "audio/wav"} for kind in ("audio", "image", "resource"))
    assert "audio/wav" in str(DIALECTS[name].write_result(call, Result(content=content)))


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


def test_lists_within_lists_are_opened_as_far_as_anybody_nests_them() -> None:
    nested: list[Any] = [TOOLS["mcp"]]
    assert list(expand_definitions([[[nested]]])) == nested
    for _ in range(2_000):
        nested = [nested]
    (found,) = expand_definitions(nested)
    assert isinstance(found, list)


@pytest.mark.parametrize("args", [{"city": "Rome"}, None])
def test_a_call_of_gemini_without_its_part_around_it_keeps_its_arguments(args: dict[str, str] | None) -> None:
    class FunctionCall:
        def __init__(self) -> None:
            self.args = args

        def model_dump(self, **_: object) -> dict[str, Any]:
            return {"id": "c1", "name": "forecast", **({"args": args} if args else {})}

    call = read_call(FunctionCall())
    assert (call.id, call.dialect, call.arguments) == ("c1", "gemini", args or {})
    assert DIALECTS["gemini"].write_call(call) == {
        "functionCall": {"id": "c1", "name": "forecast", "args": args or {}},
    }


@pytest.mark.parametrize(
    "raw",
    [
        {"name": "forecast", "parameters": {"city": "Rome"}},
        {"id": "c1", "function": {"name": "forecast", "parameters": {"city": "Rome"}}},
        {"type": "tool_use", "id": "c1", "name": "forecast", "arguments": {"city": "Rome"}},
        {"functionCall": {"name": "forecast", "arguments": {"city": "Rome"}}},
    ],
)
def test_no_call_loses_its_arguments_because_they_stand_under_another_key(raw: dict[str, Any]) -> None:
    with pytest.raises(InvalidCall, match="A tool call has its arguments in"):
        read_call(raw)


@pytest.mark.parametrize(
    ("raw", "identifier", "dialect"),
    [
        ({"id": "c9", "type": "function", "function": {"name": "", "arguments": "{}"}}, "c9", "openai_chat"),
        ({"id": "c9", "type": "function", "function": None}, "c9", "openai_chat"),
        ({"id": None, "type": "function", "function": {"name": "x"}}, "call", "openai_chat"),
        ({"type": "function_call", "id": "fc", "call_id": "c9", "name": None}, "c9", "openai_responses"),
        ({"type": "tool_use", "id": "c9", "name": "", "input": {}}, "c9", "anthropic"),
        ({"functionCall": {"id": "c9", "name": ""}}, "c9", "gemini"),
        ({"functionCall": {"name": "", "args": {}}}, "call", "gemini"),
        (7, "call", None),
    ],
)
def test_of_a_call_that_cannot_be_read_the_id_and_the_dialect_are_kept(
    raw: object, identifier: str, dialect: DialectName | None
) -> None:
    call = salvage_call(raw)
    assert (call.id, call.dialect) == (identifier, dialect)


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
