"""What every adapter stands on: an array that stays, and news that ride with the next result."""

import asyncio
import io
import json
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from tests.agent.talk import issues, weather
from tests.fakes.scripted_model import Say, ScriptedModel, search, through_bridge

from toolcrib.adapters.anthropic_sdk import run_turn as anthropic_turn
from toolcrib.adapters.bench import Bench
from toolcrib.adapters.json_lines import JsonLines, main, serve
from toolcrib.adapters.openai_sdk import as_messages
from toolcrib.adapters.openai_sdk import run_turn as openai_turn
from toolcrib.adapters.turns import Turns
from toolcrib.crib import Crib
from toolcrib.limits import JSON_LINE_MAX_BYTES
from toolcrib.settings import Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.functions import Functions

ON = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on")))
OFF = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="off")))
BRIDGE = ["tool_search", "tool_describe", "tool_call"]


@pytest.mark.requirement("X10")
async def test_the_array_stays_and_news_ride_with_the_next_result() -> None:
    async with Crib(weather(), settings=ON) as crib:
        bench = Bench(crib.session())
        before = bench.tools()
        assert [tool.name for tool in before] == BRIDGE
        crib.add(issues())
        text = await bench.run("tool_call", '{"name": "weather__forecast", "arguments": {"city": "Bern"}}')
        assert text.startswith("Bern: sun for 1 days\n[notice from the host: Tools now available")
        again = await bench.run("tool_call", {"name": "tracker__create_issue", "arguments": {"title": "Leak"}})
        assert "notice" not in again
        assert bench.tools() == before


@pytest.mark.requirement("X10")
async def test_news_are_told_beside_a_new_array_too() -> None:
    async with Crib(weather(), settings=OFF) as crib:
        bench = Bench(crib.session())
        assert [tool.name for tool in bench.tools()] == ["weather__forecast"]
        crib.add(issues())
        text = await bench.run("weather__forecast", {"city": "Bern"})
        assert "[notice from the host: Tools now available" in text
        assert "tracker__create_issue" in {tool.name for tool in bench.tools()}


@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_a_turn_that_is_cancelled_while_tools_run_leaves_a_conversation_that_can_go_on(api: str) -> None:
    started, gate = asyncio.Event(), asyncio.Event()
    slow = Functions("slow")

    @slow.tool
    async def wait() -> str:
        """Waits."""
        started.set()
        await gate.wait()
        return "done"

    async def reply(**_: Any) -> Any:
        if api == "anthropic":
            block = SimpleNamespace(type="tool_use", id="c1", name="wait", input={})
            block.model_dump = lambda **_: {"type": "tool_use", "id": "c1", "name": "wait", "input": {}}
            return SimpleNamespace(content=[block])
        call = {"id": "c1", "type": "function", "function": {"name": "wait", "arguments": "{}"}}
        message = SimpleNamespace(content=None, tool_calls=[call])
        message.model_dump = lambda **_: {"role": "assistant", "tool_calls": [call]}
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    create = SimpleNamespace(create=reply)
    client: Any = SimpleNamespace(messages=create, chat=SimpleNamespace(completions=create))
    messages = as_messages("Wait.")
    run: Any = openai_turn if api == "openai" else anthropic_turn
    turn = asyncio.create_task(run(client, Crib(slow, settings=OFF).session(), model="m", messages=messages))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert messages == as_messages("Wait.")


async def test_a_refusal_is_an_answer() -> None:
    async with Crib(weather(), settings=ON) as crib:
        bench = Bench(crib.session())
        assert "not available in this session" in await bench.run("tool_call", {"name": "deploy"})
        assert "invalid_arguments" in await bench.run("tool_call", {"name": "weather__forecast", "arguments": {}})


@pytest.mark.requirement("X10")
@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_a_loop_over_an_official_sdk_keeps_the_array_over_turns(api: str) -> None:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

    script = [
        search("weather in a city"),
        through_bridge("weather__forecast", city="Bern"),
        Say("Sun."),
        through_bridge("tracker__create_issue", title="Leak"),
        Say("Open."),
    ]
    with ScriptedModel(script) as endpoint:
        async with Crib(weather(), settings=ON) as crib:
            session = crib.session()
            messages: list[Any] = as_messages("Weather?")
            if api == "openai":
                turns = Turns(session, dialect="openai_chat")
                async with AsyncOpenAI(base_url=endpoint.openai_url, api_key="none") as client:
                    assert await openai_turn(client, session, model="m", messages=messages, turns=turns) == "Sun."
                    crib.add(issues())
                    messages.append({"role": "user", "content": "Open one."})
                    assert await openai_turn(client, session, model="m", messages=messages, turns=turns) == "Open."
            else:
                turns = Turns(session, dialect="anthropic")
                async with AsyncAnthropic(base_url=endpoint.url, api_key="none") as client:
                    assert await anthropic_turn(client, session, model="m", messages=messages, turns=turns) == "Sun."
                    crib.add(issues())
                    messages.append({"role": "user", "content": "Open one."})
                    assert await anthropic_turn(client, session, model="m", messages=messages, turns=turns) == "Open."
        assert len({request.bytes_of("tools") for request in endpoint.requests}) == 1
        assert "Tools now available" in json.dumps(endpoint.requests[-1].messages)
        assert endpoint.finished


async def test_json_lines_answer_every_line_and_survive_wrong_ones() -> None:
    call = {"id": "1", "name": "weather__forecast", "arguments": {"city": "Bern"}}
    lines = [
        {"id": 1, "op": "tools", "dialect": "anthropic"},
        {"id": 2, "op": "execute", "calls": [call], "mode": "sequential"},
        {"id": 3, "op": "search", "query": "weather"},
        {"id": 4, "op": "search", "query": " "},
        {"id": 5, "op": "begin_turn"},
        {"id": 6, "op": "execute"},
        {"id": 7, "op": "tools", "dialect": "morse"},
    ]
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    text += b"\n[1]\n{nonsense\n" + b"x" * (JSON_LINE_MAX_BYTES + 10) + b"\n" + b'{"id": 8, "op": "begin_turn"}'
    out = io.BytesIO()
    async with Crib(weather(), settings=ON) as crib:
        await serve(crib.session(), io.BytesIO(text), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5, 6, 7, None, None, None, 8]
    assert [tool["name"] for tool in answers[0]["tools"]] == BRIDGE
    assert answers[1]["results"][0]["tool"] == "weather__forecast"
    assert answers[2]["answer"]["matches"][0]["name"] == "weather__forecast"
    assert all("error" in answers[place] for place in (3, 5, 6, 7, 8, 9))


async def test_json_lines_answer_with_what_can_be_written_whatever_the_id_or_the_tool_says() -> None:
    odd = Functions("odd")

    @odd.tool
    def names() -> str:
        """Gives names."""
        return "report-\udcff.txt"

    host = JsonLines(Crib(odd, settings=OFF).session())
    nested = b'{"id":' + b"[" * 600 + b"]" * 600 + b',"op":"begin_turn"}'
    calls = b'{"id":1,"op":"execute","calls":[{"id":"1","name":"names","arguments":{}}, {"id":"2","name":""}]}'
    for line in (nested, calls):
        assert orjson.dumps(await host.answer(line))


async def test_json_lines_tell_what_changed() -> None:
    async with Crib(weather(), settings=ON) as crib:
        host = JsonLines(crib.session())
        first = await host.answer(b'{"id": 1, "op": "tools"}')
        crib.add(issues())
        second = await host.answer(b'{"id": 2, "op": "tools"}')
        assert second["tools"] == first["tools"]
        assert "Tools now available" in str(second["notice"])


def test_a_wrong_configuration_is_one_sentence(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(tmp_path / "none.yaml")]) == 2
    assert capsys.readouterr().err.startswith("toolcrib: ")
