"""Native reveal: what is sent fits the SDKs' own types, and a refusal falls back to the bridge once."""

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import MessageParam, ToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam
from pydantic import TypeAdapter
from tests.agent.talk import issues, talk, weather
from tests.fakes.scripted_model import Recorded, Refuse, Say, call, refusal_of, search

from toolcrib.agent.models import open_model
from toolcrib.agent.reveal import choose_reveal
from toolcrib.dialects.reveal import anthropic_tools, is_native
from toolcrib.errors import ConfigError, ModelRefused
from toolcrib.intake.freezing import freeze_tool
from toolcrib.settings import AgentSettings, ToolSearchSettings

NATIVE = ("anthropic", "openai_responses")


def require_types(request: Recorded) -> None:
    """The request is what the official SDK's own types allow, unknown keys included."""
    if request.path.endswith("/messages"):
        tools, items = TypeAdapter(list[ToolUnionParam]), TypeAdapter(list[MessageParam])
    else:
        tools, items = TypeAdapter(list[ToolParam]), TypeAdapter(list[ResponseInputItemParam])
    tools.validate_python(request.tools)
    items.validate_python(request.messages)


def deferred(tools: list[dict[str, Any]]) -> set[str]:
    return {tool["name"] for tool in tools if tool.get("defer_loading")}


@pytest.mark.requirement("X12")
@pytest.mark.parametrize("api", NATIVE)
async def test_a_search_loads_tools_that_are_then_called_by_their_own_names(api: str, tmp_path: Path) -> None:
    script = [search("open an issue"), call("tracker__create_issue", {"title": "Leak"}), Say("Open.")]
    async with talk(script, tmp_path, api=api, reveal="native") as it:
        report = await it.agent.run("Open an issue.")
        assert report.outcome == "completed"
        assert it.ran() == ["tracker__create_issue"]
        assert it.endpoint.finished
        for request in it.endpoint.requests:
            require_types(request)
            assert "tool_call" not in request.names
        stages = [event.stage for event in it.events if event.tool == "tracker__create_issue"]
        assert stages == ["scope", "validate", "guardrails", "hooks", "approval", "checkpoint", "dispatch", "limits", "hooks_after", "done"]  # fmt: skip


@pytest.mark.requirement("X12")
async def test_anthropic_is_sent_deferred_definitions_and_answered_with_references(tmp_path: Path) -> None:
    script = [search("open an issue"), Say("I see it.")]
    async with talk(script, tmp_path, api="anthropic", reveal="native") as it:
        await it.agent.run("Open an issue.")
        first, second = it.endpoint.requests
        catalog = {tool.name for tool in it.session.catalog}
        assert deferred(first.tools) == catalog
        assert {"clarify", "terminal", "tool_search"} <= set(first.names) - catalog, "not everything is deferred"
        result = second.messages[-1]["content"][0]
        assert result["content"][0] == {"type": "tool_reference", "tool_name": "tracker__create_issue"}


@pytest.mark.requirement("X12")
async def test_openai_is_answered_with_one_namespace_for_each_toolset(tmp_path: Path) -> None:
    script = [search("open an issue\nweather in a city"), Say("I see them.")]
    async with talk(script, tmp_path, api="openai_responses", reveal="native") as it:
        await it.agent.run("Look.")
        first, second = it.endpoint.requests
        assert [tool["execution"] for tool in first.tools if tool["type"] == "tool_search"] == ["client"]
        output = next(item for item in second.messages if item.get("type") == "tool_search_output")
        groups = {group["name"]: [tool["name"] for tool in group["tools"]] for group in output["tools"]}
        assert "tracker__create_issue" in groups["tracker"]
        assert groups["weather"] == ["weather__forecast"]
        assert first.bytes_of("tools") == second.bytes_of("tools")


@pytest.mark.requirement("X12")
@pytest.mark.parametrize("api", NATIVE)
async def test_a_search_that_finds_nothing_says_so_in_words(api: str, tmp_path: Path) -> None:
    lexical = ToolSearchSettings(enabled="on", retrieval="lexical")
    script = [search("zyxwv qponm"), Say("There is none.")]
    async with talk(script, tmp_path, api=api, reveal="native", search=lexical) as it:
        await it.agent.run("Zyxwv.")
        require_types(it.endpoint.requests[-1])
        assert "No tool of this session seems to do this" in json.dumps(it.endpoint.requests[-1].messages)


@pytest.mark.requirement("X12")
async def test_a_tool_that_went_away_stays_declared_once_it_was_referred_to(tmp_path: Path) -> None:
    script = [
        search("weather"),
        call("weather__forecast", {"city": "Bern"}),
        Say("Sun."),
        call("weather__forecast", {"city": "Bern"}),
        Say("It is gone."),
    ]
    async with talk(script, tmp_path, api="anthropic", reveal="native", sources=[weather()]) as it:
        await it.agent.run("Weather?")
        it.crib.remove("weather")
        it.crib.add(issues())
        report = await it.agent.run("Again?")
        assert report.outcome == "completed", "a reference without a definition would have been refused"
        last = it.endpoint.requests[-1]
        assert {"weather__forecast", "tracker__create_issue"} <= deferred(last.tools)
        assert "not available in this session" in last.results[-1]
        kept = [[tool for tool in request.tools if "defer_loading" not in tool] for request in it.endpoint.requests]
        assert all(tools == kept[0] for tools in kept), "what is in the prompt never changes"


@pytest.mark.requirement("X12")
@pytest.mark.parametrize("api", NATIVE)
async def test_a_refusal_falls_back_to_the_bridge_once_and_visibly(api: str, tmp_path: Path) -> None:
    script = [search("open an issue"), call("tool_call", {"name": "create_issue", "arguments": {"title": "x"}}), Say("Open.")]  # fmt: skip
    async with talk(script, tmp_path, api=api, reveal="native", native=False) as it:
        report = await it.agent.run("Open an issue.")
        assert report.outcome == "completed"
        assert it.ran() == ["tracker__create_issue"]
        refused, *rest = it.endpoint.requests
        assert "tool_call" not in refused.names
        assert all(request.names[-3:] == ["tool_search", "tool_describe", "tool_call"] for request in rest)
        assert sum("refused" in note for note in it.notes.notes) == 1


@pytest.mark.requirement("X12")
@pytest.mark.parametrize("api", NATIVE)
async def test_a_refusal_in_the_middle_turns_the_whole_conversation_into_one_over_the_bridge(
    api: str, tmp_path: Path
) -> None:
    script = [
        search("open an issue"),
        call("tracker__create_issue", {"title": "a"}),
        Refuse(400, "deferred tools are no longer supported"),
        call("tool_call", {"name": "tracker__create_issue", "arguments": {"title": "b"}}),
        Say("Both are open."),
    ]
    async with talk(script, tmp_path, api=api, reveal="native") as it:
        report = await it.agent.run("Open two issues.")
        assert report.outcome == "completed"
        last = it.endpoint.requests[-1]
        require_types(last)
        for word in ("tool_reference", "tool_search_output", "tool_search_call", "namespace", "defer_loading"):
            assert word.encode() not in last.body
        assert '"matches"' in last.results[0], "the search has the answer that the bridge would have given"


@pytest.mark.requirement("X12")
@pytest.mark.parametrize("api", NATIVE)
async def test_a_second_refusal_is_an_error(api: str, tmp_path: Path) -> None:
    script = [Refuse(400, "no"), Refuse(400, "still no")]
    async with talk(script, tmp_path, api=api, reveal="native") as it:
        with pytest.raises(ModelRefused, match="still no"):
            await it.agent.run("Hi.")
        assert len(it.endpoint.requests) == 2


@pytest.mark.requirement("X12")
@pytest.mark.parametrize(
    ("api", "model", "endpoint", "native"),
    [
        ("anthropic", "claude-sonnet-4-5", "https://api.anthropic.com", True),
        ("anthropic", "claude-haiku-4-5-20251001", "https://api.anthropic.com", True),
        ("anthropic", "claude-opus-5", "https://api.anthropic.com", True),
        ("anthropic", "claude-3-5-haiku", "https://api.anthropic.com", False),
        ("anthropic", "claude-sonnet-4-5", "https://openrouter.example/api", False),
        ("anthropic", "claude-sonnet-4-5", "https://api.anthropic.com.evil.example", False),
        ("openai_responses", "gpt-5.4", "https://api.openai.com/v1", True),
        ("openai_responses", "gpt-5.1", "https://api.openai.com/v1", False),
        ("openai_responses", "gpt-5.4", "http://localhost:8000/v1", False),
        ("openai_chat", "gpt-5.4", "https://api.openai.com/v1", False),
        ("gemini", "gemini-3", "https://generativelanguage.example", False),
    ],
)
def test_auto_is_native_only_where_it_is_known_to_work(api: Any, model: str, endpoint: str, native: bool) -> None:
    assert is_native(api, endpoint=endpoint, model=model) is native


@pytest.mark.requirement("X12")
async def test_native_is_refused_where_the_wire_format_has_no_way(tmp_path: Path) -> None:
    async with talk([], tmp_path) as it:
        model = open_model(AgentSettings(model="m", endpoint="http://127.0.0.1:1/v1"))
        with pytest.raises(ConfigError, match="native"):
            choose_reveal("native", model, it.session)
        await model.close()


@pytest.mark.requirement("X12")
def test_a_deferred_tool_never_carries_what_the_api_refuses_beside_it() -> None:
    raw = {
        "name": "send",
        "input_schema": {"type": "object"},
        "cache_control": {"type": "ephemeral"},
        "input_examples": [{}],
    }
    tool = freeze_tool(raw, toolset="mail", origin="mcp")
    *_, written = anthropic_tools([], [tool])
    assert written["defer_loading"] is True
    assert not {"cache_control", "input_examples"} & set(written)


@pytest.mark.requirement("X12")
@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/v1/messages", {"tools": [{"name": "a", "defer_loading": True}], "messages": []}, "At least one tool"),
        (
            "/v1/messages",
            {"tools": [{"name": "s"}, {"name": "a", "defer_loading": True, "cache_control": {}}], "messages": []},
            None,
        ),
        (
            "/v1/messages",
            {"tools": [{"name": "s"}, {"name": "a", "defer_loading": True, "cache_control": {"type": "e"}}], "messages": []},
            "cache_control",
        ),
        ("/v1/responses", {"tools": [{"type": "function", "name": "a", "defer_loading": True}], "input": []}, "tool_search"),
    ],
)  # fmt: skip
def test_the_scripted_endpoint_refuses_what_the_real_apis_refuse(
    path: str, body: dict[str, Any], refusal: str | None
) -> None:
    answer = refusal_of(path, body, native=True)
    assert (answer is None) if refusal is None else (answer is not None and refusal in answer)
