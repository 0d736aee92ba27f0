"""The crib: sources come and go, sessions get what they were granted."""

import gc
import json
from typing import Any
from weakref import ref

import pytest
from tests.factories import Recorder, bridged, core, crib, definition, github, weather

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError, RequiredToolsMissing
from toolcrib.sources.functions import Functions
from toolcrib.sources.live import LiveDefinitions


@pytest.mark.requirement("S22")
def test_a_missing_required_tool_fails_before_any_model_is_called() -> None:
    shared = crib()
    shared.session(required_tools=["read_file", "github__create_issue"])
    with pytest.raises(RequiredToolsMissing, match="`exec`") as caught:
        shared.session(required_tools=["read_file", "exec"])
    assert caught.value.missing == ("exec",)
    with pytest.raises(RequiredToolsMissing, match="github__create_issue"):
        shared.session(enabled_toolsets=["mcp-weather"], required_tools=["github__create_issue"])


@pytest.mark.requirement("S22")
def test_a_required_tool_that_goes_away_fails_the_next_turn() -> None:
    shared = crib()
    session = shared.session(required_tools=["github__create_issue"])
    session.assemble()
    shared.remove("mcp-github")
    with pytest.raises(RequiredToolsMissing):
        session.assemble()


@pytest.mark.requirement("S19")
async def test_a_narrowed_session_has_its_own_smaller_crib_and_its_own_bridge() -> None:
    parent = crib().session(enabled_toolsets=["mcp-github", "mcp-weather"])
    child = parent.narrow(enabled_toolsets=["mcp-weather", "mcp-secrets"])
    grandchild = child.narrow(enabled_toolsets=["mcp-github", "mcp-weather"], tools=["*forecast"])
    assert {tool.name for tool in child.catalog} == {"weather__forecast", "weather__search"}
    assert {tool.name for tool in grandchild.catalog} == {"weather__forecast"}
    assert [tool["function"]["name"] for tool in grandchild.assemble().tools][-1] == "tool_call"
    (refused,) = await grandchild.execute([bridged("github__list_issues", {"owner": "o", "repo": "r"})])
    assert refused.result.code == "tool_not_available"
    assert grandchild.principal == "local/1/1"
    assert parent.catalog.size == 6


def test_a_read_only_session_has_only_tools_that_say_so() -> None:
    raw = [
        {**definition("look"), "annotations": {"readOnlyHint": True}},
        definition("touch"),
        {**definition("break"), "annotations": {"readOnlyHint": False}},
    ]
    session = crib(core(), Recorder("mcp-x", raw, prefix="x")).session(read_only=True)
    assert [tool.name for tool in session.catalog] == ["x__look"]


def test_an_unknown_toolset_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="There is no toolset `mcp-gihub`: did you mean `mcp-github`"):
        crib().session(enabled_toolsets=["mcp-gihub"])
    with pytest.raises(ConfigError, match="There is no toolset `zzz`"):
        crib().session(disabled_toolsets=["zzz"])


def test_names_of_sources_and_toolsets_are_taken_once() -> None:
    shared = crib()
    with pytest.raises(ConfigError, match="There is a source `mcp-github` already"):
        shared.add(github())
    with pytest.raises(ConfigError, match="did you mean `mcp-github`"):
        shared.remove("mcp-githu")


def test_every_change_counts_the_generation_on() -> None:
    shared = crib()
    shared.inventory  # noqa: B018
    first = shared.generation
    shared.inventory  # noqa: B018
    assert shared.generation == first
    shared.remove("mcp-weather")
    shared.inventory  # noqa: B018
    assert shared.generation == first + 1
    shared.add(weather())
    shared.inventory  # noqa: B018
    assert shared.generation == first + 2


def test_what_was_left_out_is_reported_with_its_reason() -> None:
    toolset = Functions("mine")
    toolset.add(int.__add__)
    toolset.add(print)
    shared = Crib(toolset)
    assert {item.name for item in shared.skipped} >= {"__add__"}
    assert all(item.reason for item in shared.skipped)


async def test_a_closed_crib_closes_its_sources_and_opens_no_session() -> None:
    source = github()
    async with crib(core(), source) as shared:
        pass
    assert source.name.endswith("(closed)")
    with pytest.raises(ConfigError, match="closed"):
        shared.session()


@pytest.mark.requirement("S19")
@pytest.mark.parametrize("key", ["enabled_toolsets", "disabled_toolsets", "tools", "required_tools"])
@pytest.mark.parametrize("value", ["mcp-*", [7]])
def test_what_is_no_list_of_names_never_grants_anything(key: str, value: Any) -> None:
    parent = crib().session()
    for open_session in (crib().session, parent.narrow):
        with pytest.raises(ConfigError, match=f"`{key}` must be a list of names"):
            open_session(**{key: value})


@pytest.mark.requirement("S19")
def test_a_slip_in_a_denied_toolset_grants_nothing_and_tells_nothing_of_what_is_elsewhere() -> None:
    parent = crib().session(enabled_toolsets=["mcp-github"])
    with pytest.raises(ConfigError, match=r"no toolset `mcp-githup`: did you mean `mcp-github`\?"):
        parent.narrow(disabled_toolsets=["mcp-githup"])
    for name in ("mcp-weather", "mcp-weathex"):
        with pytest.raises(ConfigError) as refused:
            parent.narrow(disabled_toolsets=[name])
        assert str(refused.value) == f"There is no toolset `{name}`."
    child = parent.narrow(disabled_toolsets=["mcp-github"])
    assert child.narrow(disabled_toolsets=["mcp-github"]).catalog.size == 0


@pytest.mark.parametrize("window", [-1, True, "128000", float("nan")])
def test_a_window_that_is_no_number_of_tokens_is_an_error(window: Any) -> None:
    with pytest.raises(ConfigError, match="model_context"):
        crib().session(model_context=window)


def test_an_unknown_mode_or_dialect_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no dialect"):
        crib().session().assemble(dialect="klingon")


async def test_the_crib_is_usable_as_the_facade_shows(tmp_path: Any) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text(
        "tools:\n  tool_search:\n    enabled: on\n    retrieval: lexical\n  core: [read_file]\n"
        "python:\n  maths:\n    module: math\n    include: [sqrt, gcd]\n"
    )
    async with Crib.from_config(path) as shared:
        session = shared.session(model_context=200_000, enabled_toolsets=["maths"])
        turn = session.assemble(dialect="openai_chat")
        assert turn.activated
        (answer,) = await session.execute([bridged("maths__gcd", {"integers": [12, 18]})], mode="parallel")
        assert json.loads(answer.result.text) == 6


def over_a_list() -> Crib:
    async def run(call: Any) -> Any:
        raise AssertionError("nobody calls")

    tools = [definition("open_door", "Opens a door."), definition("close_door", "Closes it.")]
    return Crib(LiveDefinitions("live", lambda: tools, run, origin="mcp"))


def test_a_crib_over_a_list_that_nobody_holds_any_more_is_gone_without_the_collector() -> None:
    shared = over_a_list()
    session = shared.session()
    session.assemble()
    session.search("open a door")
    gone = [ref(shared), ref(shared.executor), ref(shared.discovery), ref(session.catalog)]
    gc.collect()
    gc.disable()
    try:
        del shared, session
        assert [each() for each in gone] == [None] * 4
    finally:
        gc.enable()


def test_the_first_source_is_asked_when_somebody_looks_and_a_later_one_for_its_names_at_once() -> None:
    asked: list[str] = []

    def listed(name: str) -> LiveDefinitions:
        def definitions() -> list[Any]:
            asked.append(name)
            return [definition(f"{name}_tool")]

        async def run(call: Any) -> Any:
            raise AssertionError("nobody calls")

        return LiveDefinitions(name, definitions, run)

    shared = Crib(listed("one"))
    assert not asked
    shared.add(listed("two"))
    assert asked == ["one", "two"]
    assert [toolset.name for toolset in shared.inventory.toolsets] == ["one", "two"]
