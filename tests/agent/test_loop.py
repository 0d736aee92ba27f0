"""Whole conversations over HTTP, in every wire format."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from tests.agent.talk import APIS, issues, talk, weather
from tests.fakes.scripted_model import CallTools, Drop, Refuse, Say, Stop, call, search, through_bridge

from toolcrib.errors import ModelError, RequiredToolsMissing
from toolcrib.limits import AGENT_CALLS_PER_REPLY
from toolcrib.settings import ToolSearchSettings

CORE = ["terminal", "read_file", "write_file", "patch", "search_files", "todo", "memory", "clarify", "delegate_task", "execute_code"]  # fmt: skip


@pytest.mark.requirement("X28", "S7")
@pytest.mark.parametrize("api", APIS)
async def test_a_model_searches_describes_and_calls_and_the_transcript_keeps_its_own_entries(
    api: str, tmp_path: Path
) -> None:
    script = [
        search("open an issue"),
        call("tool_describe", {"name": "tracker__create_issue"}),
        through_bridge("tracker__create_issue", title="Leak", priority=1),
        Say("Issue 1 is open."),
    ]
    async with talk(script, tmp_path, api=api) as it:
        report = await it.agent.run("Open an issue about the leak.")
        assert (report.text, report.outcome, report.steps) == ("Issue 1 is open.", "completed", 4)
        assert it.ran() == ["tracker__create_issue"]
        last = it.endpoint.requests[-1]
        found = json.loads(last.results[0])
        assert found["matches"][0]["name"] == "tracker__create_issue"
        assert "parameters" in json.loads(last.results[1])
        assert json.loads(last.results[2])["number"] == 1
        assert b"tool_call" in last.body, "the model's own entry is in the transcript"
        assert it.endpoint.finished


@pytest.mark.requirement("X28", "X3")
@pytest.mark.parametrize("api", APIS)
async def test_a_search_can_end_in_a_call_without_a_description(api: str, tmp_path: Path) -> None:
    script = [search("weather in a city"), through_bridge("weather__forecast", city="Bern"), Say("Sun.")]
    async with talk(script, tmp_path, api=api) as it:
        report = await it.agent.run("Weather in Bern?")
        assert report.steps == 3
        assert it.endpoint.requests[-1].results[-1] == "Bern: sun for 1 days"
        assert it.agent.found["weather__forecast"] == "weather in a city"


@pytest.mark.requirement("X28", "X6")
@pytest.mark.parametrize("api", APIS)
async def test_a_deferred_tool_may_be_called_by_its_own_name(api: str, tmp_path: Path) -> None:
    async with talk([call("weather__forecast", {"city": "Bern"}), Say("Sun.")], tmp_path, api=api) as it:
        await it.agent.run("Weather in Bern?")
        assert it.ran() == ["weather__forecast"]


@pytest.mark.requirement("X28", "S6")
@pytest.mark.parametrize("api", APIS)
async def test_a_core_tool_through_the_bridge_is_answered_with_the_direct_call(api: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    script = [
        through_bridge("read_file", path="notes.txt"),
        call("read_file", {"path": "notes.txt"}),
        Say("It says hello."),
    ]
    async with talk(script, tmp_path, api=api) as it:
        await it.agent.run("Read notes.txt")
        refused, answered = it.endpoint.requests[-1].results
        assert "call `read_file` directly" in refused
        assert "hello" in answered
        assert it.ran() == ["read_file"]


@pytest.mark.requirement("X28", "X5")
@pytest.mark.parametrize("api", APIS)
async def test_a_wrong_argument_is_repaired_in_one_turn(api: str, tmp_path: Path) -> None:
    script = [
        through_bridge("tracker__create_issue", name="Leak"),
        through_bridge("tracker__create_issue", title="Leak", priority="1"),
        Say("Done."),
    ]
    async with talk(script, tmp_path, api=api) as it:
        await it.agent.run("Open an issue.")
        refused, answered = it.endpoint.requests[-1].results
        assert json.loads(refused)["parameters"]["required"] == ["title"]
        assert '"priority":1' in answered
        assert "note:" in answered, "the model is told that the text was read as a number"


@pytest.mark.requirement("X28", "X13")
@pytest.mark.parametrize("api", APIS)
async def test_parallel_calls_are_answered_in_call_order(api: str, tmp_path: Path) -> None:
    calls = CallTools((
        ("tool_call", {"name": "weather__forecast", "arguments": {"city": "Bern"}}),
        ("tool_search", {"query": "list the issues"}),
        ("weather__forecast", {"city": "Oslo"}),
    ))  # fmt: skip
    async with talk([calls, Say("Both are sunny.")], tmp_path, api=api) as it:
        await it.agent.run("Compare Bern and Oslo.")
        first, second, third = it.endpoint.requests[-1].results
        assert first.startswith("Bern")
        assert "tracker__list_issues" in second
        assert third.startswith("Oslo")


@pytest.mark.requirement("X28", "S8")
@pytest.mark.parametrize("api", APIS)
async def test_the_core_tools_are_in_every_array_and_clarify_asks_the_person(api: str, tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(question: str, options: object) -> str:
        asked.append(question)
        return "blue"

    script = [call("clarify", {"question": "Which colour?", "options": ["red", "blue"]}), Say("Blue it is.")]
    async with talk(script, tmp_path, api=api, asker=answer) as it:
        await it.agent.run("Paint it.")
        for request in it.endpoint.requests:
            assert set(CORE) <= set(request.names)
            assert request.names[-3:] == ["tool_search", "tool_describe", "tool_call"]
        assert asked == ["Which colour?"]
        assert it.endpoint.requests[-1].results == ["blue"]


@pytest.mark.requirement("X10")
@pytest.mark.parametrize("api", APIS)
async def test_consecutive_requests_extend_the_same_bytes_while_a_source_comes_and_another_goes(
    api: str, tmp_path: Path
) -> None:
    script = [
        search("weather"),
        through_bridge("weather__forecast", city="Bern"),
        Say("Sun."),
        search("open an issue"),
        through_bridge("tracker__create_issue", title="Leak"),
        Say("Open."),
        through_bridge("weather__forecast", city="Bern"),
        Say("It is gone."),
    ]
    conversation = "input" if api == "openai_responses" else "messages"
    async with talk(script, tmp_path, api=api, sources=[weather()]) as it:
        await it.agent.run("Weather?")
        it.crib.add(issues())
        await it.agent.run("Open an issue.")
        it.crib.remove("weather")
        await it.agent.run("Weather?")
        requests = it.endpoint.requests
        assert len(requests) == 8
        assert len({request.bytes_of("tools") for request in requests}) == 1
        for before, after in pairwise(requests):
            assert after.bytes_of(conversation).startswith(before.bytes_of(conversation)[:-1])
        assert "tracker__create_issue" in json.dumps(requests[3].messages)
        assert sum("Tools now available" in json.dumps(message) for message in requests[-1].messages) == 1
        assert sum("No longer available" in json.dumps(message) for message in requests[-1].messages) == 1
        assert "not available in this session" in requests[-1].results[-1]


@pytest.mark.requirement("X10", "S15")
async def test_a_list_without_a_bridge_is_renewed_when_tools_come_that_it_cannot_reach(tmp_path: Path) -> None:
    small = ToolSearchSettings(enabled="auto")
    async with talk([Say("Hello."), Say("Hello again.")], tmp_path, sources=[weather()], search=small) as it:
        await it.agent.run("Hi.")
        it.crib.add(issues())
        await it.agent.run("Hi again.")
        first, second = it.endpoint.requests
        assert "weather__forecast" in first.names
        assert "tracker__create_issue" not in first.names
        assert "tracker__create_issue" in second.names
        assert any("renewed" in note for note in it.notes.notes)


@pytest.mark.requirement("X28")
async def test_a_model_that_never_ends_is_stopped(tmp_path: Path) -> None:
    async with talk(lambda request: search("weather"), tmp_path, max_steps=12) as it:
        report = await it.agent.run("Weather?")
        assert report.outcome == "step_limit"
        assert len(it.endpoint.requests) == 12
        assert "search_refused" in it.endpoint.requests[-1].results[-1], "the progress guard said stop long before"


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("arguments", ["{not json", "", "[1, 2]", '"text"', "null"])
async def test_malformed_arguments_are_answered_and_the_loop_goes_on(arguments: str, api: str, tmp_path: Path) -> None:
    async with talk([call("tool_call", arguments), call("x", {}), Say("I give up.")], tmp_path, api=api) as it:
        report = await it.agent.run("Do something.")
        assert report.outcome == "completed"
        assert all("error" in result for result in it.endpoint.requests[-1].results)


@pytest.mark.requirement("X28")
async def test_arguments_that_the_sdk_itself_cannot_read_are_an_error_of_the_endpoint(tmp_path: Path) -> None:
    async with talk([call("tool_call", "{not json")], tmp_path, api="anthropic") as it:
        with pytest.raises(ModelError):
            await it.agent.run("Do something.")


@pytest.mark.requirement("X28")
async def test_a_spray_of_calls_is_cut_and_every_call_gets_an_answer(tmp_path: Path) -> None:
    many = CallTools(tuple(("weather__forecast", {"city": f"city {number}"}) for number in range(40)))
    async with talk([many, Say("Done.")], tmp_path) as it:
        await it.agent.run("All cities.")
        assert len(it.endpoint.requests[-1].results) == 40
        assert len(it.ran()) == AGENT_CALLS_PER_REPLY


@pytest.mark.requirement("S22")
async def test_a_missing_required_tool_fails_before_the_model_is_asked(tmp_path: Path) -> None:
    with pytest.raises(RequiredToolsMissing, match="deploy"):
        async with talk([Say("Never.")], tmp_path, session_options={"required_tools": ["deploy"]}):
            pass


@pytest.mark.requirement("S14")
async def test_the_window_that_the_endpoint_tells_is_the_one_that_counts(tmp_path: Path) -> None:
    async with talk([], tmp_path) as it:
        assert it.session.window == 32_000


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("api", APIS)
async def test_an_endpoint_that_refuses_is_an_error_with_its_own_words(api: str, tmp_path: Path) -> None:
    async with talk([Refuse(400, "no such model")], tmp_path, api=api) as it:
        with pytest.raises(ModelError, match="400: no such model"):
            await it.agent.run("Hi.")


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("api", APIS)
async def test_a_connection_that_breaks_is_an_error_and_the_conversation_can_go_on(api: str, tmp_path: Path) -> None:
    script = [search("weather"), Drop(), Say("Here I am again.")]
    async with talk(script, tmp_path, api=api) as it:
        with pytest.raises(ModelError):
            await it.agent.run("Weather?")
        report = await it.agent.run("Are you there?")
        assert report.text == "Here I am again."
        assert '"matches"' in it.endpoint.requests[-1].results[0], "what was found before the break is still there"


CUT = {"openai_chat": "length", "openai_responses": "max_output_tokens", "anthropic": "max_tokens"}


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("api", APIS)
async def test_a_call_in_which_a_reply_was_cut_is_answered_and_not_run(api: str, tmp_path: Path) -> None:
    cut = CallTools((
        ("tracker__create_issue", {"title": "Whole"}),
        ("tracker__create_issue", '{"title": "Leak", "body": "Water in the'),
    ))  # fmt: skip
    async with talk([Stop(cut, CUT[api]), Say("Shorter next time.")], tmp_path, api=api) as it:
        report = await it.agent.run("Open two issues.")
        assert it.ran() == ["tracker__create_issue"]
        assert "cut at the bound" in it.endpoint.requests[-1].results[1]
        assert [answer.result.code for answer in report.answers] == [None, "invalid_call"]


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_ends_without_a_reason_is_an_error_and_runs_nothing(api: str, tmp_path: Path) -> None:
    half = call("tracker__create_issue", '{"title": "Leak"')
    async with talk([Stop(half), Stop(Say("Half a")), Say("Whole.")], tmp_path, api=api) as it:
        for _ in range(2):
            with pytest.raises(ModelError):
                await it.agent.run("Open an issue.")
        assert it.ran() == []
        assert (await it.agent.run("Once more.")).text == "Whole."


@pytest.mark.requirement("X28")
async def test_half_arguments_in_a_reply_that_ended_well_are_not_filled_in(tmp_path: Path) -> None:
    half = call("tracker__create_issue", '{"title": "Leak", "body": "Wat')
    async with talk([half, Say("I see.")], tmp_path, api="anthropic") as it:
        await it.agent.run("Open an issue.")
        assert it.ran() == []
        assert "error" in it.endpoint.requests[-1].results[0]


@pytest.mark.requirement("X28")
@pytest.mark.parametrize(
    ("api", "step", "outcome"),
    [
        ("anthropic", Stop(Say(""), "refusal"), "declined"),
        ("anthropic", Say(" "), "empty"),
        ("anthropic", Stop(Say("Half"), "max_tokens"), "cut"),
        ("openai_chat", Stop(Say("No."), "content_filter"), "declined"),
        ("openai_chat", Say(""), "empty"),
        ("openai_responses", Stop(Say("No."), "content_filter"), "declined"),
        ("openai_responses", Say(""), "empty"),
    ],
)
async def test_a_turn_that_ends_without_an_answer_is_not_completed(
    api: str, step: Say | Stop, outcome: str, tmp_path: Path
) -> None:
    async with talk([step, Say("Hello.")], tmp_path, api=api) as it:
        assert (await it.agent.run("Hi.")).outcome == outcome
        assert it.notes.notes
        assert (await it.agent.run("Hi?")).outcome == "completed"


@pytest.mark.requirement("X28")
async def test_a_reply_that_pauses_is_asked_to_go_on(tmp_path: Path) -> None:
    async with talk([Stop(Say("Thinking."), "pause_turn"), Say("Done.")], tmp_path, api="anthropic") as it:
        report = await it.agent.run("Think.")
        assert (report.text, report.outcome, report.steps) == ("Done.", "completed", 2)


@pytest.mark.requirement("X28")
async def test_the_account_knows_what_everything_attached_would_have_cost(tmp_path: Path) -> None:
    script = [search("weather"), through_bridge("weather__forecast", city="Bern"), Say("Sun.")]
    async with talk(script, tmp_path) as it:
        await it.agent.run("Weather?")
        account = it.agent.account
        assert (account.requests, account.searches, account.calls) == (3, 1, 1)
        assert account.tokens > 0
        assert account.attached_tokens % 2 == 0, "the request that only searched would not have been made"
