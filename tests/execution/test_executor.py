"""The stages: one list for every way in, and everything sees the real tool."""

import asyncio
import datetime
import json
from typing import Any

import orjson
import pytest
from tests.factories import Recorder, bridged, core, crib, definition, github, model_call, weather

from toolcrib.definitions import Call, Result, Traits, text_result
from toolcrib.errors import ConfigError, HookRejected
from toolcrib.settings import ApprovalSettings, LimitSettings, Settings, ToolSearchSettings, ToolsSettings

ISSUE = {"owner": "o", "repo": "r", "title": "t"}


class Mute(Exception):
    """Cannot even say what is wrong."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def spoken(dialect: str, name: str, arguments: Any) -> Any:
    """A call in a dialect."""
    text = json.dumps(arguments)
    return {
        "openai_chat": model_call(name, arguments),
        "openai_responses": {"type": "function_call", "call_id": "c1", "name": name, "arguments": text},
        "anthropic": {"type": "tool_use", "id": "c1", "name": name, "input": arguments},
        "gemini": {"functionCall": {"name": name, "args": arguments}},
        "mcp": {"name": name, "arguments": arguments},
    }[dialect]


STAGES = [
    "scope",
    "validate",
    "guardrails",
    "hooks",
    "approval",
    "checkpoint",
    "dispatch",
    "limits",
    "hooks_after",
    "done",
]


class Spy:
    """A guardrail, hook, checkpoint and progress listener in one: writes down which tool each of them saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def guard(self, call: Call) -> str | None:
        self.seen.append(("guardrail", call.tool.name))
        return None

    async def before(self, call: Call) -> None:
        self.seen.append(("before", call.tool.name))

    async def after(self, call: Call, result: Result) -> None:
        self.seen.append(("after", call.tool.name))

    async def checkpoint(self, call: Call) -> None:
        self.seen.append(("checkpoint", call.tool.name))

    def progress(self, call: Call, done: float, total: float | None, message: str | None) -> None:
        self.seen.append(("progress", call.tool.name))

    async def approve(self, request: Any) -> bool:
        self.seen.append(("approval", request.call.tool.name))
        return True


def asking(**limits: Any) -> Settings:
    return Settings(
        tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical")),
        approvals=ApprovalSettings(default="ask"),
        limits=LimitSettings(**limits),
    )


def spied(spy: Spy, *sources: Any) -> Any:
    return crib(
        *sources,
        settings=asking(),
        guardrails=[spy.guard],
        hooks=[spy],
        checkpoints=[spy.checkpoint],
        progress=[spy.progress],
        approver=spy.approve,
    )


class Reporting(Recorder):
    async def call(self, call: Call, context: Any) -> Result:
        context.report(1.0, 2.0, "half")
        return await super().call(call, context)


@pytest.mark.requirement("S7", "X13")
@pytest.mark.parametrize("route", ["direct", "bridged", "parallel", "caller", "caller bridged"])
async def test_everything_around_a_call_sees_the_real_tool_on_every_route(route: str) -> None:
    spy = Spy()
    source = Reporting("mcp-github", [definition("create_issue", "Create.", title={"type": "string"})], prefix="github")
    session = spied(spy, core(), source).session()
    arguments = {"title": "t"}
    if route == "caller":
        await session.call("github__create_issue", arguments)
    elif route == "caller bridged":
        await session.call("tool_call", {"name": "github__create_issue", "arguments": arguments})
    else:
        call = (
            model_call("github__create_issue", arguments) if route == "direct" else bridged("create_issue", arguments)
        )
        (answer,) = await session.execute([call], mode="parallel" if route == "parallel" else "sequential")
        assert answer.call.raw == call
        assert answer.message["tool_call_id"] == "call-1"
        assert answer.tool is not None
        assert answer.tool.name == "github__create_issue"
    kinds = ["guardrail", "before", "approval", "checkpoint", "progress", "after"]
    assert spy.seen == [(kind, "github__create_issue") for kind in kinds]
    assert source.calls[0].arguments == arguments


@pytest.mark.requirement("X13", "X15")
async def test_every_route_passes_the_same_stages_in_the_same_order() -> None:
    feeds = []
    for mode in ("sequential", "parallel"):
        for call in (model_call("github__create_issue", ISSUE), bridged("github__create_issue", ISSUE)):
            shared = crib()
            await shared.session().execute([call], mode=mode)
            events = [event for event in shared.activity.events if event.call_id]
            assert {event.tool for event in events} == {"github__create_issue"}
            feeds.append([event.stage for event in events])
    assert feeds == [STAGES] * 4


async def test_the_feed_keeps_the_stages_before_a_fault_of_our_own() -> None:
    def broken(executor: Any, run: Any) -> Any:
        raise RuntimeError("not foreseen")

    house = crib()
    stages = house.executor.stages
    house.executor.stages = tuple((name, broken if name == "approval" else step) for name, step in stages)
    with pytest.raises(RuntimeError):
        await house.session().execute([bridged("github__create_issue", ISSUE)])
    assert [event.stage for event in house.activity.events if event.call_id] == STAGES[:4]


@pytest.mark.requirement("X13")
async def test_a_hook_may_rewrite_arguments_which_are_checked_again() -> None:
    class Rewrite:
        def __init__(self, value: dict[str, Any]) -> None:
            self.value = value

        async def before(self, call: Call) -> Any:
            return self.value

        async def after(self, call: Call, result: Result) -> Result:
            return text_result(result.text.upper())

    source = github()
    session = crib(core(), source, hooks=[Rewrite({**ISSUE, "title": "changed"})]).session()
    (answer,) = await session.execute([bridged("github__create_issue", ISSUE)])
    assert source.calls[0].arguments["title"] == "changed"
    assert answer.result.text == "GITHUB__CREATE_ISSUE RAN"
    session = crib(core(), source, hooks=[Rewrite({"owner": 7})]).session()
    (answer,) = await session.execute([bridged("github__create_issue", ISSUE)])
    assert answer.result.code == "invalid_arguments"
    assert len(source.calls) == 1


@pytest.mark.requirement("X14")
@pytest.mark.parametrize("kind", ["guardrail", "before", "checkpoint"])
@pytest.mark.parametrize("fault", ["crashes", "says no"])
async def test_a_guard_that_crashes_or_says_no_keeps_the_tool_from_running(kind: str, fault: str) -> None:
    async def guard(call: Call) -> Any:
        if fault == "crashes":
            raise RuntimeError("secret detail")
        if kind == "before":
            raise HookRejected("Not on Sundays.")
        if kind == "checkpoint":
            raise OSError("disk full")
        return "Not on Sundays."

    class Hook:
        before = staticmethod(guard)

        async def after(self, call: Call, result: Result) -> None:
            raise AssertionError("nothing ran")

    source = github()
    options: Any = {
        "guardrail": {"guardrails": [guard]},
        "before": {"hooks": [Hook()]},
        "checkpoint": {"checkpoints": [guard]},
    }
    shared = crib(core(), source, **options[kind])
    (answer,) = await shared.session().execute([bridged("github__create_issue", ISSUE)])
    codes = {"guardrail": "guardrail_refused", "before": "hook_rejected", "checkpoint": "checkpoint_failed"}
    assert answer.result.code == codes[kind]
    assert source.calls == []
    assert "secret detail" not in answer.result.text
    if fault == "crashes":
        assert any("secret detail" in str(event.reason) for event in shared.activity.events)


@pytest.mark.requirement("X14")
async def test_an_observer_that_crashes_changes_nothing_and_runs_nothing_twice() -> None:
    class Broken:
        async def before(self, call: Call) -> None:
            return None

        async def after(self, call: Call, result: Result) -> None:
            raise RuntimeError("observer")

    def progress(*_: Any) -> None:
        raise RuntimeError("listener")

    source = Reporting("mcp-github", [definition("create_issue")], prefix="github")
    shared = crib(core(), source, hooks=[Broken()], progress=[progress])
    shared.activity.add_sink(lambda event: 1 / 0)
    (answer,) = await shared.session().execute([bridged("create_issue")])
    assert answer.result.text == "github__create_issue ran"
    assert len(source.calls) == 1
    assert shared.activity.dropped > 0


async def test_a_hook_cannot_hand_back_anything_but_arguments() -> None:
    class Wrong:
        async def before(self, call: Call) -> Any:
            return call

        async def after(self, call: Call, result: Result) -> None:
            return None

    source = github()
    (answer,) = await crib(core(), source, hooks=[Wrong()]).session().execute([bridged("github__create_issue", ISSUE)])
    assert answer.result.code == "hook_rejected"
    assert source.calls == []


@pytest.mark.requirement("S20")
async def test_a_tool_that_went_away_while_somebody_was_asked_does_not_run() -> None:
    source = github()
    shared: Any = None

    async def approve(request: Any) -> bool:
        shared.remove("mcp-github")
        return True

    shared = crib(core(), source, settings=asking(), approver=approve)
    (answer,) = await shared.session().execute([bridged("github__create_issue", ISSUE)])
    assert answer.result.code == "tool_not_available"
    assert source.calls == []


@pytest.mark.requirement("S20")
async def test_a_call_outside_the_scope_reaches_no_guardrail_hook_or_checkpoint() -> None:
    spy = Spy()
    session = spied(spy, core(), github(), weather()).session(enabled_toolsets=["mcp-weather"])
    (answer,) = await session.execute([bridged("github__create_issue", ISSUE)])
    assert answer.result.code == "tool_not_available"
    assert "not available in this session" in answer.result.text
    assert spy.seen == []


async def test_only_tools_that_say_they_are_read_only_are_spared_the_checkpoint() -> None:
    spy = Spy()
    harmless = Recorder("mcp-a", [definition("look")], prefix="a", traits=Traits(read_only=True))
    unsaid = Recorder("mcp-b", [definition("touch")], prefix="b")
    session = spied(spy, core(), harmless, unsaid).session()
    await session.execute([bridged("a__look"), bridged("b__touch")])
    assert [name for kind, name in spy.seen if kind == "checkpoint"] == ["b__touch"]


def concurrent(name: str, peak: list[int], *, parallel: bool, size: int) -> Recorder:
    running = 0

    async def answer(call: Call) -> str:
        nonlocal running
        running += 1
        peak.append(running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1
        return call.tool.name

    return Recorder(
        name,
        [definition(f"t{n}") for n in range(size)],
        prefix=name[4:],
        traits=Traits(parallel=parallel),
        answer=answer,
    )


@pytest.mark.requirement("X13")
async def test_parallel_runs_at_once_only_what_the_real_tools_allow_and_answers_in_order() -> None:
    safe_peak: list[int] = []
    unsafe_peak: list[int] = []
    safe, unsafe = (
        concurrent("mcp-safe", safe_peak, parallel=True, size=4),
        concurrent("mcp-one", unsafe_peak, parallel=False, size=2),
    )
    session = crib(core(), safe, unsafe).session()
    calls = [
        bridged("safe__t0", call_id="a"),
        bridged("safe__t1", call_id="b"),
        model_call("tool_search", {"query": "t1"}, call_id="s"),
        bridged("one__t0", call_id="c"),
        bridged("one__t1", call_id="d"),
        model_call("safe__t2", call_id="e"),
        bridged("safe__t3", call_id="f"),
    ]
    answers = await session.execute(calls, mode="parallel")
    assert [answer.call.id for answer in answers] == ["a", "b", "s", "c", "d", "e", "f"]
    assert [answer.result.text for answer in answers if answer.tool] == [
        "safe__t0",
        "safe__t1",
        "one__t0",
        "one__t1",
        "safe__t2",
        "safe__t3",
    ]
    assert max(safe_peak) == 2
    assert max(unsafe_peak) == 1
    safe_peak.clear()
    await session.execute(calls, mode="sequential")
    assert max(safe_peak) == 1


async def test_concurrency_is_limited_per_session_and_a_full_queue_says_so() -> None:
    peak: list[int] = []
    source = concurrent("mcp-safe", peak, parallel=True, size=20)
    session = crib(core(), source, settings=asking(concurrency_per_session=3)).session()
    shared_calls = [bridged(f"safe__t{n}", call_id=str(n)) for n in range(20)]
    session._crib.approvals.policy = type(session._crib.approvals.policy)()
    answers = await session.execute(shared_calls, mode="parallel")
    assert max(peak) == 3
    assert not any(answer.result.is_error for answer in answers)


async def test_a_tool_that_does_not_answer_in_time_is_given_up_and_frees_its_place() -> None:
    async def hang(call: Call) -> str:
        await asyncio.Event().wait()
        return "never"

    source = Recorder("mcp-slow", [definition("hang")], prefix="slow", answer=hang)
    shared = crib(
        core(),
        source,
        github(),
        settings=Settings(
            tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical")),
            limits=LimitSettings(call_deadline_s=0.5, concurrency_per_session=1),
        ),
    )
    session = shared.session()
    first, second = await session.execute([bridged("slow__hang"), bridged("github__create_issue", ISSUE)])
    assert first.result.code == "deadline_exceeded"
    assert "0.5 s" in first.result.text
    assert not second.result.is_error


async def test_a_cancelled_turn_cancels_the_tool_and_frees_its_place() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(call: Call) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    source = Recorder("mcp-slow", [definition("hang")], prefix="slow", answer=hang)
    shared = crib(core(), source)
    session = shared.session()
    turn = asyncio.create_task(session.execute([bridged("slow__hang")]))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert cancelled.is_set()
    assert session.places.free == shared.settings.limits.concurrency_per_session
    assert shared.activity.events[-1].reason == "cancelled"


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyError("x"), OSError(2, "No such file"), ValueError()])
async def test_whatever_a_tool_throws_becomes_one_line_for_the_model(error: Exception) -> None:
    def fail(call: Call) -> str:
        raise error

    source = Recorder("mcp-bad", [definition("fail")], prefix="bad", answer=fail)
    (answer,) = await crib(core(), source).session().execute([bridged("bad__fail")])
    body = json.loads(answer.result.text)
    assert body["code"] == "tool_failed"
    assert type(error).__name__ in body["error"]
    assert "Traceback" not in body["error"]


async def test_a_long_result_is_cut_with_an_honest_note() -> None:
    source = Recorder("mcp-long", [definition("dump")], prefix="long", answer=lambda call: "x" * 50_000)
    (answer,) = await crib(core(), source).session().execute([bridged("long__dump")])
    blocks = answer.result.content
    assert blocks[0]["text"] == "x" * 20_000
    assert "the first 20,000 of 50,000 characters" in str(blocks[1]["text"])


async def test_a_repaired_argument_is_mentioned_with_the_result() -> None:
    source = weather()
    (answer,) = (
        await crib(core(), source).session().execute([bridged("weather__forecast", {"city": "Rome", "days": "3"})])
    )
    assert source.calls[0].arguments == {"city": "Rome", "days": 3}
    assert "`days` was given as string and read as integer" in answer.result.text


async def test_a_broken_call_among_good_ones_costs_only_itself() -> None:
    answers = (
        await crib()
        .session()
        .execute(
            [
                model_call("read_file", {"path": "a"}),
                7,
                model_call("read_file", "{broken"),
                bridged("weather__forecast", {"city": "x"}),
                {"type": "tool_use", "id": "toolu_1", "name": "", "input": {}},
            ],
            mode="parallel",
        )
    )
    assert [answer.result.is_error for answer in answers] == [False, True, True, False, True]
    assert answers[-1].message["tool_use_id"] == "toolu_1"


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda: text_result("half a pair: \udcff"),
        lambda: Result(structured={"name": "\udcff", 1: {2}}),
        lambda: Result(structured=[[[]] * 3]),
        lambda: Result(content=("text",)),
        lambda: Result(content=None),
        lambda: "text",
        lambda: {"content": []},
        lambda: None,
        lambda: (_ for _ in ()).throw(OSError("no file \udcff")),
    ],
)
async def test_whatever_a_source_gives_is_an_answer_that_can_be_written(mode: Any, answer: Any) -> None:
    class Source(Recorder):
        async def call(self, call: Call, context: Any) -> Any:
            return answer()

    odd = Source("mcp-odd", [definition("odd")], traits=Traits(parallel=True))
    session = crib(core(traits=Traits(parallel=True)), odd).session()
    answers = await session.execute([bridged("odd"), model_call("read_file", {"path": "a"}, "call-2")], mode=mode)
    assert answers[1].result.text == "read_file ran"
    assert orjson.dumps([answer.message for answer in answers])


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize("kind", ["tool", "guardrail", "before", "after", "checkpoint", "approver"])
@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), Mute()])
async def test_what_others_do_to_themselves_costs_one_call_and_nobody_elses(
    mode: Any, kind: str, error: BaseException
) -> None:
    async def fails(*_: Any) -> Any:
        raise error

    class Hook:
        async def before(self, call: Call) -> None:
            if kind == "before" and call.tool.name == "mcp_odd":
                await fails()

        async def after(self, call: Call, result: Result) -> None:
            if kind == "after":
                await fails()

    async def guard(call: Call) -> None:
        if call.tool.leaf == "odd":
            await fails()

    odd = Recorder(
        "mcp-odd",
        [definition("odd")],
        traits=Traits(parallel=True),
        answer=(lambda call: fails()) if kind == "tool" else None,
    )
    options: dict[str, Any] = {"hooks": [Hook()]}
    if kind == "guardrail":
        options["guardrails"] = [guard]
    if kind == "checkpoint":
        options["checkpoints"] = [guard]
    if kind == "approver":
        options |= {"approver": fails, "settings": asking()}
        options["settings"].approvals.rules["read_file"] = "allow"
    session = crib(core(traits=Traits(parallel=True)), odd, **options).session()
    answers = await session.execute([bridged("odd"), model_call("read_file", {"path": "a"}, "call-2")], mode=mode)
    assert answers[1].result.text == "read_file ran"
    assert answers[0].result.is_error is (kind not in {"before", "after"})
    assert orjson.dumps([answer.message for answer in answers])


@pytest.mark.parametrize(
    ("changed", "ran"),
    [
        ({"text": datetime.date(2026, 1, 2)}, {"text": "2026-01-02"}),
        ({"text": b"abc"}, None),
        ({"text": "\udcff"}, None),
        ({1: 2}, None),
        ({"text": float("nan")}, None),
    ],
)
async def test_what_a_hook_hands_back_runs_as_json_or_not_at_all(changed: Any, ran: Any) -> None:
    class Hook:
        async def before(self, call: Call) -> Any:
            return changed

        async def after(self, call: Call, result: Result) -> Any:
            return "no result"

    source = Recorder("mcp-notes", [definition("add", text={"type": "string"})])
    (answer,) = await crib(source, hooks=[Hook()]).session().execute([bridged("add", {"text": "a"})])
    assert [call.arguments for call in source.calls] == ([] if ran is None else [ran])
    assert answer.result.code == ("hook_rejected" if ran is None else None)


async def test_a_result_of_a_hook_that_is_not_made_of_objects_takes_no_result_away() -> None:
    class Hook:
        async def before(self, call: Call) -> None:
            return None

        async def after(self, call: Call, result: Result) -> Any:
            return Result(content=("text",))

    source = Recorder("mcp-notes", [definition("add", text={"type": "string"})])
    (answer,) = await crib(source, hooks=[Hook()]).session().execute([bridged("add", {"text": "a"})])
    assert answer.result.text == "add ran"


async def test_arguments_that_a_hook_changes_in_place_are_checked_and_the_transcript_keeps_its_own() -> None:
    class Hook:
        value: Any = "x"

        async def before(self, call: Call) -> None:
            call.arguments["place"]["n"] = self.value

        async def after(self, call: Call, result: Result) -> None:
            return None

    async def guard(call: Call) -> None:
        call.arguments.clear()

    source = Recorder("mcp-t", [definition("t", place={"type": "object", "properties": {"n": {"type": "integer"}}})])
    hook = Hook()
    session = crib(source, hooks=[hook], guardrails=[guard], checkpoints=[guard]).session()
    raw = {"type": "tool_use", "id": "1", "name": "tool_call", "input": {"name": "t", "arguments": {"place": {"n": 1}}}}
    (answer,) = await session.execute([raw])
    assert answer.result.code == "invalid_arguments"
    hook.value = 2
    await session.execute([raw])
    assert [call.arguments for call in source.calls] == [{"place": {"n": 2}}]
    assert raw["input"]["arguments"] == {"place": {"n": 1}}


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "anthropic", "gemini", "mcp"])
@pytest.mark.parametrize("kind", ["structured", "both", "resource"])
async def test_no_part_of_a_result_is_beyond_the_limit(dialect: str, kind: str) -> None:
    big = "x" * 50_000
    results = {
        "structured": Result(structured={"rows": big}),
        "both": Result(content=({"type": "text", "text": "one row"},), structured={"rows": big}),
        "resource": Result(content=({"type": "resource", "resource": {"uri": "u://x", "text": big}},)),
    }
    source = Recorder("mcp-t", [definition("rows")], answer=lambda call: results[kind])
    (answer,) = await crib(source).session().execute([spoken(dialect, "tool_call", {"name": "rows", "arguments": {}})])
    written = orjson.dumps(answer.message).decode()
    assert len(written) < 21_000
    assert "[truncated: " in written
    assert ("one row" if kind == "both" else "xxx") in written


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "anthropic", "gemini", "mcp"])
@pytest.mark.parametrize("rows", [3, "x" * 50_000])
async def test_a_repair_is_told_beside_a_structured_result(dialect: str, rows: Any) -> None:
    result = Result(structured={"rows": rows})
    source = Recorder("mcp-t", [definition("rows", n={"type": "integer"})], answer=lambda call: result)
    call = spoken(dialect, "tool_call", {"name": "rows", "arguments": {"n": "5"}})
    (answer,) = await crib(source).session().execute([call])
    written = orjson.dumps(answer.message).decode()
    assert "`n` was given as string" in written
    assert "rows" in written.partition("note")[0]


def test_a_crib_serves_one_event_loop_after_another_and_says_so_to_a_second_at_once() -> None:
    source = Recorder("mcp-t", [definition("t")])
    session = crib(source).session()
    for _ in range(2):
        assert not asyncio.run(session.call("t")).is_error
    refused: list[BaseException] = []

    def elsewhere() -> None:
        try:
            asyncio.run(session.execute([bridged("t"), bridged("t")], mode="parallel"))
        except ConfigError as error:
            refused.append(error)

    async def answer() -> str:
        await asyncio.to_thread(elsewhere)
        return "ran"

    waiting = Recorder("mcp-t", [definition("t")], answer=lambda call: answer())
    session = crib(waiting).session()
    assert asyncio.run(session.call("t")).text == "ran"
    assert "one event loop at a time" in str(refused[0])
    assert len(waiting.calls) == 1
