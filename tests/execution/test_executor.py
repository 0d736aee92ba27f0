"""The stages: one list for every way in, and everything sees the real tool."""

import asyncio
import json
from typing import Any

import pytest
from tests.factories import Recorder, bridged, core, crib, definition, github, model_call, weather

from toolcrib.definitions import Call, Result, Traits, text_result
from toolcrib.errors import HookRejected
from toolcrib.settings import ApprovalSettings, LimitSettings, Settings, ToolSearchSettings, ToolsSettings

ISSUE = {"owner": "o", "repo": "r", "title": "t"}
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
            ],
            mode="parallel",
        )
    )
    assert [answer.result.is_error for answer in answers] == [False, True, True, False]
