"""The feed: what really ran, by its real name, without what it was about."""

import json
import os
import stat
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import Recorder, bridged, core, crib, definition, github, model_call

from toolcrib.activity import Activity, Event, JsonlSink, Trace, shape_of
from toolcrib.errors import ConfigError
from toolcrib.settings import ActivitySettings, Settings, ToolSearchSettings, ToolsSettings

SECRET = "correct horse battery staple"


def with_file(path: Path, **options: Any) -> Settings:
    return Settings(
        tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical")),
        activity=ActivitySettings(file=str(path), **options),
    )


@pytest.mark.requirement("X15")
async def test_the_feed_says_what_ran_how_long_it_took_and_what_it_cost(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "activity.jsonl"
    shared = crib(core(), github(), settings=with_file(path))
    session = shared.session(principal="ann")
    session.assemble()
    await session.execute(
        [bridged("create_issue", {"owner": "o", "repo": "r", "title": SECRET}), bridged("nothing_here")]
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [json.loads(json.dumps(event.as_json())) for event in shared.activity.events]
    done = next(line for line in lines if line["stage"] == "done")
    assert (done["tool"], done["toolset"], done["route"], done["principal"]) == (
        "github__create_issue",
        "mcp-github",
        "bridge",
        "ann",
    )
    assert done["duration_ms"] >= 0
    assert done["tokens"] > 0
    refused = [line for line in lines if line["outcome"] == "refused"]
    assert refused[0]["code"] == "tool_not_available"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("X15")
async def test_arguments_results_and_queries_leave_only_their_shape(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    source = Recorder(
        "mcp-x",
        [definition("keep", "Keep.", secret={"type": "string"}, n={"type": "integer"})],
        prefix="x",
        answer=lambda call: SECRET,
    )
    shared = crib(core(), source, settings=with_file(path))
    session = shared.session()
    await session.execute(
        [
            bridged("keep", {"secret": SECRET, "n": 1}),
            bridged("keep", {"secret": [SECRET]}),
            bridged("keep", {"secret": SECRET, "n": SECRET}),
            model_call("tool_search", {"query": SECRET}),
            model_call("x__keep", {"secret": SECRET, "n": 2}),
        ]
    )
    assert "horse" not in path.read_text()
    dispatched = next(event for event in shared.activity.events if event.stage == "dispatch")
    assert dispatched.arguments == {"secret": f"string({len(SECRET)})", "n": "integer"}


async def test_values_are_shown_only_when_the_operator_asks_for_them(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    shared = crib(core(), github(), settings=with_file(path, arguments="values"))
    await shared.session().execute([bridged("create_issue", {"owner": "o", "repo": "r", "title": SECRET})])
    assert SECRET in path.read_text()


def test_a_full_file_is_rotated_and_the_newest_events_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sink = JsonlSink(path, max_bytes=500)
    for number in range(50):
        sink(Event(stage="x", call_id=str(number)))
    assert path.stat().st_size <= 500
    assert json.loads(path.read_text().splitlines()[-1])["call_id"] == "49"
    assert (tmp_path / "a.jsonl.1").stat().st_size <= 500


def test_the_memory_of_the_feed_is_bounded() -> None:
    activity = Activity(clock=lambda: 0.0, keep=3)
    for number in range(10):
        activity.record(Event(stage=str(number)))
    assert [event.stage for event in activity.events] == ["7", "8", "9"]


def test_stages_that_were_noted_together_are_events_of_their_own() -> None:
    activity = Activity(clock=lambda: 100.0, keep=10)
    trace = Trace(session="s", principal="p", call_id="c", tool="t", toolset="x", route="bridge")
    stages, seconds = ("scope", "dispatch", "done"), (0.25, 2.0, 2.25)
    activity.note_stages(trace, stages, seconds, "failed", {"a": "null"}, 7, "code")
    told: list[Event] = []
    activity.add_sink(told.append)
    activity.note_stages(trace, stages, seconds, "failed", {"a": "null"}, 7, "code")
    assert activity.events[:3] == activity.events[3:] == tuple(told)
    assert [(event.stage, event.outcome, event.duration_ms, event.at) for event in told] == [
        ("scope", "ok", 250.0, 98.0),
        ("dispatch", "ok", 2000.0, 100.0),
        ("done", "failed", 2250.0, 100.0),
    ]
    assert [(event.arguments, event.tokens, event.code) for event in told] == [
        (None, None, None),
        ({"a": "null"}, None, None),
        (None, 7, "code"),
    ]


@given(st.lists(st.integers(1, 4), max_size=12), st.integers(1, 6))
def test_the_feed_keeps_the_last_events_however_they_were_noted(sizes: list[int], keep: int) -> None:
    activity = Activity(clock=lambda: 0.0, keep=keep)
    trace = Trace(session="s", principal="p", call_id="c", tool="t", toolset=None, route="direct")
    names = [f"{number}.{place}" for number, size in enumerate(sizes) for place in range(size)]
    left = iter(names)
    for size in sizes:
        if size == 1:
            activity.record(Event(stage=next(left)))
        else:
            activity.note_stages(trace, [next(left) for _ in range(size)], [0.0] * size)
    assert [event.stage for event in activity.events] == names[-keep:]
    assert len(activity._noted) <= keep
    assert sum(map(len, activity._before)) + len(activity._noted) <= 9 * -(-keep // 8)


def test_what_another_thread_notes_while_a_part_of_the_feed_is_closed_is_told_once() -> None:
    activity = Activity(clock=lambda: 0.0, keep=16)
    others = ["other"]

    class Interrupted(deque[list[Any]]):
        def append(self, part: list[Any], /) -> None:
            super().append(part)
            if others:  # the interpreter turns to the other thread exactly here
                other = threading.Thread(target=activity.record, args=(Event(stage=others.pop()),))
                other.start()
                other.join()

    activity._before = Interrupted(maxlen=8)
    for number in range(3):
        activity.record(Event(stage=str(number)))
    assert sorted(event.stage for event in activity.events) == ["0", "1", "2", "other"]


def test_control_characters_cannot_forge_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    JsonlSink(path)(Event(stage="x", tool='evil\n{"stage":"forged"}\x1b[31m'))
    assert len(path.read_text().splitlines()) == 1


def test_a_feed_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "feed.jsonl", tmp_path):
        with pytest.raises(ConfigError, match=r"The feed cannot be written to .*: .*\. Change `activity\.file`\."):
            JsonlSink(path)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="a pipe has no path on this system")
def test_a_feed_can_go_into_a_pipe() -> None:
    read, write = os.pipe()
    try:
        JsonlSink(f"/dev/fd/{write}")(Event(stage="x", call_id="1"))
        assert json.loads(os.read(read, 4096))["call_id"] == "1"
    finally:
        os.close(read)
        os.close(write)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(min_size=1),
        lambda c: st.lists(c) | st.dictionaries(st.sampled_from("abc"), c),
        max_leaves=20,
    )
)
def test_a_shape_never_holds_a_value(value: Any) -> None:
    def leaves(shape: Any) -> Any:
        return [leaf for item in shape.values() for leaf in leaves(item)] if isinstance(shape, dict) else [shape]

    allowed = ("string(", "array(", "object(", "integer", "number", "boolean", "null")
    assert all(leaf.startswith(allowed) for leaf in leaves(shape_of(value)))


def test_a_shape_of_very_many_parts_stays_small_and_shows_the_outermost() -> None:
    value: Any = "x"
    for _ in range(3):
        value = {f"key {number}": value for number in range(60)}
    shape = shape_of(value)
    assert isinstance(shape, dict)
    assert len(shape) == 50
    assert len(json.dumps(shape)) < 50_000


@pytest.mark.requirement("X15", "X27")
@pytest.mark.parametrize("keep", [16, 10_000])
def test_whoever_looks_now_and_then_sees_every_note_once_and_learns_what_is_left_out(keep: int) -> None:
    feed = Activity(clock=lambda: 1.0, keep=keep)
    trace = Trace(session="s", principal="p", call_id="c", tool="t", toolset=None, route="direct")
    position, seen, missed = 0, 0, 0
    for number in range(100):
        feed.record(Event(stage=f"{number}"))
        feed.note_stages(trace, ("scope", "done"), (0.0, 0.0))
        if number % 9 == 0:
            news = feed.news(position, most=5)
            assert [event.stage for event in news.events][-3:] == [f"{number}", "scope", "done"]
            position, seen, missed = news.position, seen + len(news.events), missed + news.missed
    assert position == 200, "two notes each time"
    assert seen == 3 + 11 * 8 and missed == 200 - 2 - 11 * 5
    assert feed.news(position, most=5).events == []
    everything = feed.news(0, most=10_000)
    assert (everything.missed == 0) is (keep == 10_000)
    assert everything.position == position


async def test_a_call_by_a_name_that_nobody_can_write_is_in_the_file_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    shared = crib(core(), github(), settings=with_file(path))
    await shared.session().execute([{"type": "tool_use", "id": "1", "name": "delete\ud800", "input": {}}])
    refused = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["tool"] for line in refused} == {"delete?"}
    assert shared.activity.dropped == 0


def test_a_file_that_was_taken_away_is_made_anew_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    sink = JsonlSink(path)
    path.rename(tmp_path / "taken.jsonl")
    sink(Event(stage="search"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["stage"] == "search"
