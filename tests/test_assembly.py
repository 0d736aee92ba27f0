"""The array: what is in it, and what it takes to change it."""

import json
import logging
import subprocess
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tests.factories import Recorder, core, crib, definition, github, model_call, settings, tool, weather

from toolcrib.assembly import merge_definitions, require_core
from toolcrib.bridge import bridge_tools
from toolcrib.core import CoreSet
from toolcrib.crib import Crib
from toolcrib.definitions import DialectName
from toolcrib.errors import AssemblyError
from toolcrib.inventory import Selection
from toolcrib.tokens import estimate_tokens

BRIDGE = ["tool_search", "tool_describe", "tool_call"]


def names(turn: Any) -> list[str]:
    return [item["function"]["name"] for item in turn.tools]


@pytest.mark.requirement("S2")
def test_the_bridge_stands_after_the_visible_tools_in_its_fixed_order() -> None:
    turn = crib().session().assemble()
    assert names(turn) == ["read_file", "terminal", *BRIDGE]
    assert turn.activated


@pytest.mark.requirement("S2")
def test_the_three_schemas_cost_at_most_three_hundred_tokens() -> None:
    chars = sum(len(json.dumps(json.loads(item.raw), separators=(",", ":"))) for item in bridge_tools())
    assert estimate_tokens(chars) <= 300


@pytest.mark.requirement("S12")
def test_below_the_threshold_every_tool_is_passed_through_unchanged() -> None:
    sources = (core(), github())
    turn = Crib(*sources, settings=settings()).session(model_context=200_000).assemble(dialect="mcp")
    assert not turn.activated
    given_ = [tool.definition | {"name": tool.name} for source in sources for tool in source.snapshot()[0].tools]
    assert turn.tools == given_
    assert turn.decision.reason == "below_threshold"


@pytest.mark.requirement("S11")
@pytest.mark.parametrize("enabled", ["on", "off"])
def test_an_assembly_of_its_own_output_is_the_same_output(enabled: str) -> None:
    session = crib(settings=settings(enabled=enabled)).session()
    once = session.assemble()
    twice = session.assemble(definitions=once.tools)
    assert twice.encoded == once.encoded


@pytest.mark.requirement("S11")
def test_a_stray_bridge_tool_is_dropped_and_the_hosts_order_is_kept() -> None:
    session = crib(core(), settings=settings(enabled="off")).session()
    stray = [json.loads(item.raw) for item in bridge_tools()]
    mine = {"type": "function", "function": {"name": "mine", "description": "Mine.", "parameters": {}}}
    turn = session.assemble(definitions=[stray[0], mine, *session.assemble().tools, stray[2]])
    assert names(turn) == ["mine", "read_file", "terminal"]
    assert turn.tools[0] == mine


@pytest.mark.requirement("S8")
def test_core_tools_are_added_to_a_hosts_array_that_lacks_them() -> None:
    assert names(crib().session().assemble(definitions=[])) == ["read_file", "terminal", *BRIDGE]


@pytest.mark.requirement("S8")
def test_an_assembly_that_would_lose_a_core_tool_raises() -> None:
    kept, lost = tool("read_file", origin="plugin"), tool("terminal", origin="plugin")
    require_core([kept, lost], [kept, lost], CoreSet.of())
    with pytest.raises(AssemblyError, match="terminal"):
        require_core([kept, lost], [kept], CoreSet.of())


@pytest.mark.requirement("S9")
def test_what_a_host_hands_in_without_a_source_stays_visible() -> None:
    session = crib(core(), github()).session()
    extra = {"type": "function", "function": {"name": "unknown_thing", "description": "?", "parameters": {}}}
    turn = session.assemble(definitions=[extra])
    assert names(turn)[0] == "unknown_thing"
    merged = merge_definitions(Selection(visible=(), catalog=session.catalog), [extra])
    assert merged.visible[0].origin == "host"


@pytest.mark.requirement("S9")
def test_a_plugin_cannot_take_a_core_name_down_into_the_crib() -> None:
    shadow = Recorder("shadow", [definition("read_file", "Mine now."), definition("other")], origin="plugin")
    alone = crib(shadow, github()).session()
    assert "read_file" in names(alone.assemble())
    both = crib(core(), shadow)
    assert both.session().assemble().assembly.tools[0].description == "Read a file."
    assert [(item.toolset, item.name) for item in both.skipped] == [("shadow", "read_file")]


@pytest.mark.requirement("S14")
def test_two_sessions_with_different_windows_in_one_process_get_different_arrays() -> None:
    many = Recorder("mcp-big", [definition(f"t{n}", "word " * 60) for n in range(100)], prefix="big")
    shared = Crib(core(), many, settings=settings())
    small, large = shared.session(model_context=32_000), shared.session(model_context=200_000)
    for _ in range(2):
        assert small.assemble().activated
        assert not large.assemble().activated
    assert small.assemble().decision.threshold == 3_200


@pytest.mark.requirement("S15")
def test_removing_a_server_returns_to_direct_exposure_on_the_next_assembly() -> None:
    many = Recorder("mcp-big", [definition(f"t{n}", "word " * 60) for n in range(100)], prefix="big")
    shared = Crib(core(), github(), many, settings=settings())
    session = shared.session(model_context=32_000)
    assert session.assemble().activated
    shared.remove("mcp-big")
    after = session.assemble()
    assert not after.activated
    assert "github__create_issue" in names(after)


@pytest.mark.requirement("S16")
def test_activation_leaves_one_log_line_with_its_figures(caplog: pytest.LogCaptureFixture) -> None:
    session = crib().session()
    with caplog.at_level(logging.INFO, "toolcrib"):
        session.assemble()
        session.assemble()
    lines = [record.getMessage() for record in caplog.records if "tool search active" in record.getMessage()]
    tokens = session.assemble().decision.tokens
    assert lines == [f"tool search active: 2 tools visible, 6 deferred, {tokens} tokens (threshold 20000)"]


@pytest.mark.requirement("S18")
def test_an_unchanged_crib_gives_the_same_assembly_object_and_a_changed_one_never_does() -> None:
    source = github()
    session = crib(core(), source).session()
    first = session.assemble()
    assert session.assemble().assembly is first.assembly
    source.define([definition("create_issue", "Create an issue, now differently.")])
    second = session.assemble()
    assert second.assembly is not first.assembly
    assert session.describe("create_issue")["description"] == "Create an issue, now differently."


@pytest.mark.requirement("S21")
def test_sessions_of_one_crib_do_not_see_each_other() -> None:
    shared = crib()
    one = shared.session(enabled_toolsets=["mcp-github"])
    other = shared.session(enabled_toolsets=["mcp-weather"])
    for _ in range(2):
        assert {item.toolset for item in one.catalog} == {"mcp-github"}
        assert {item.toolset for item in other.catalog} == {"mcp-weather"}
        assert one.search("search").body["total_available"] == 4
        assert other.search("search").body["total_available"] == 2
        one.begin_turn()
        other.begin_turn()
    assert b"github" not in other.assemble().encoded
    assert b"weather" not in one.assemble().encoded


async def test_the_models_copy_of_the_array_is_its_own() -> None:
    session = crib().session()
    turn = session.assemble()
    turn.tools[0]["cache_control"] = {"type": "ephemeral"}
    assert "cache_control" not in session.assemble().tools[0]
    assert b"cache_control" not in turn.encoded


@pytest.mark.requirement("X10")
def test_with_a_previous_turn_the_bytes_stay_and_the_notice_says_what_came_and_went() -> None:
    source = github()
    shared = crib(core(), source)
    session = shared.session()
    first = session.assemble()
    shared.add(weather())
    second = session.assemble(previous=first)
    assert second.encoded == first.encoded
    assert second.notice == (
        "Tools now available (through tool_search and tool_call): weather__forecast weather__search."
    )
    third = session.assemble(previous=second)
    assert third.notice is None
    shared.remove("mcp-weather")
    fourth = session.assemble(previous=third)
    assert fourth.notice == "No longer available; do not call them: weather__forecast weather__search."
    source.define([definition("create_issue", "Changed.")])
    fifth = session.assemble(previous=fourth)
    assert fifth.notice is not None
    assert "Changed; describe again before calling: github__create_issue." in fifth.notice
    assert fifth.encoded == first.encoded
    assert fifth.rebased().encoded != first.encoded
    assert fifth.rebased().notice is None


@pytest.mark.requirement("X10")
def test_an_array_without_a_bridge_advises_a_rebase_when_tools_come() -> None:
    shared = crib(core(), settings=settings(enabled="auto"))
    session = shared.session(model_context=200_000)
    first = session.assemble()
    shared.add(weather())
    second = session.assemble(previous=first)
    assert second.encoded == first.encoded
    assert second.rebase_advised
    assert "once the tool list is refreshed" in str(second.notice)
    assert not second.rebased().rebase_advised


@pytest.mark.requirement("X10")
@pytest.mark.parametrize("enabled", ["on", "off"])
def test_a_change_of_visible_tools_is_told_and_advises_a_rebase_where_only_that_shows_it(enabled: str) -> None:
    bench = core()
    session = crib(bench, github(), settings=settings(enabled=enabled)).session()
    first = session.assemble()
    bench.define([definition("read_file"), definition("terminal", "Run a command."), definition("patch")])
    second = session.assemble(previous=first)
    assert second.encoded == first.encoded
    assert second.notice == (
        "Tools now available (once the tool list is refreshed): patch. "
        "Changed (once the tool list is refreshed): read_file terminal."
    )
    assert [tool.name for tool in second.visible_changes.added] == ["patch"]
    assert second.rebase_advised
    assert not second.changes
    rebased = second.rebased()
    bench.define([definition("read_file"), definition("patch")])
    third = session.assemble(previous=rebased)
    assert third.notice == "No longer available; do not call them: terminal."
    assert not third.rebase_advised


@pytest.mark.requirement("X10")
@pytest.mark.parametrize("enabled", ["on", "off"])
def test_a_definition_that_a_host_adds_is_told_and_one_that_it_does_not_repeat_is_not_gone(enabled: str) -> None:
    one, two = ({"name": name, "description": "Does.", "input_schema": {"type": "object"}} for name in ("one", "two"))
    session = crib(github(), settings=settings(enabled=enabled)).session()
    first = session.assemble(dialect="anthropic", definitions=[one])
    again = session.assemble(definitions=[one], previous=first)
    assert (again.notice, again.rebase_advised) == (None, False)
    second = session.assemble(definitions=[one, two], previous=again)
    assert second.notice == "Tools now available (once the tool list is refreshed): two."
    assert second.rebase_advised
    assert "two" in str(second.rebased().tools)
    assert session.assemble(previous=again).notice is None
    assert session.assemble(definitions=[], previous=again).notice == "No longer available; do not call them: one."


def test_a_turn_is_written_in_the_dialect_that_is_asked_for_or_in_the_one_of_the_previous_turn() -> None:
    session = crib().session()
    first = session.assemble(dialect="anthropic")
    assert session.assemble(previous=first).encoded == first.encoded
    other = session.assemble(dialect="openai_chat", previous=first)
    assert other.encoded == session.assemble(dialect="openai_chat").encoded
    assert other.notice is None


@pytest.mark.requirement("X10")
@profile(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sets(st.integers(0, 5), min_size=1)), max_size=12))
def test_over_any_sequence_of_changes_no_byte_changes_and_the_notices_add_up(steps: list[tuple[str, set[int]]]) -> None:
    shared = crib(core(), github())
    session = shared.session()
    turn = first = session.assemble()
    known = {item.name for item in session.catalog}
    present: set[str] = set()
    for name, tools in steps:
        if name in present:
            shared.remove(f"mcp-{name}")
            present.discard(name)
        else:
            shared.add(Recorder(f"mcp-{name}", [definition(f"t{n}") for n in tools], prefix=name))
            present.add(name)
        turn = session.assemble(previous=turn)
        assert turn.encoded == first.encoded
        known |= {item.name for item in turn.changes.added}
        known -= {item.name for item in turn.changes.removed}
        assert known == {item.name for item in session.catalog}
        for item in (*turn.changes.added, *turn.changes.removed):
            assert item.name in str(turn.notice)


@pytest.mark.requirement("X11")
def test_the_same_input_gives_the_same_bytes_under_every_hash_seed() -> None:
    script = (
        "from tests.factories import *\n"
        "import asyncio, hashlib\n"
        "s = crib().session()\n"
        "parts = [s.assemble(dialect=d).encoded for d in ('openai_chat', 'anthropic', 'mcp', 'gemini')]\n"
        "calls = [model_call('tool_search', {'query': q}) for q in ('issue', 'weather search')]\n"
        "parts += [answer.result.text.encode() for answer in asyncio.run(s.execute(calls))]\n"
        "print(hashlib.sha256(b''.join(parts)).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(digests) == 1


@pytest.mark.requirement("X9")
def test_every_deferred_name_is_visible_in_the_array_and_no_visible_tool_is_listed_as_deferred() -> None:
    session = crib().session()
    text = session.assemble().assembly.tools[2].description
    for item in session.catalog:
        assert item.leaf in text
    assert "read_file" not in text


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "anthropic", "gemini", "mcp"])
def test_the_array_is_written_in_the_dialect_of_the_model(dialect: DialectName) -> None:
    tools = crib().session().assemble(dialect=dialect).tools
    assert len(tools) == 5
    key = {
        "openai_chat": "function",
        "openai_responses": "parameters",
        "anthropic": "input_schema",
        "mcp": "inputSchema",
    }
    assert all(key.get(dialect, "name") in item for item in tools)
    assert orjson.loads(crib().session().assemble(dialect=dialect).encoded) == tools


async def test_a_tool_that_changed_between_search_and_call_runs_as_it_is_now() -> None:
    source = github()
    session = crib(core(), source).session()
    session.search("create issue")
    source.define([definition("create_issue", "Now without arguments.")])
    (answer,) = await session.execute([model_call("tool_call", {"name": "github__create_issue", "arguments": {}})])
    assert not answer.result.is_error
