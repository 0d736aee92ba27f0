"""Definitions that a host keeps as dictionaries: every change is seen, and only changes cost."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tests.factories import core, crib, definition, settings

from toolcrib.definitions import Call, Result, text_result
from toolcrib.sources import live as live_module
from toolcrib.sources.live import LiveDefinitions


async def run(call: Call) -> Result:
    return text_result(f"{call.tool.name} ran")


def live(definitions: list[Any], **options: Any) -> LiveDefinitions:
    return LiveDefinitions("mine", lambda: definitions, run, **options)


def openai(name: str, **function: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "D.", "parameters": {"type": "object", "properties": {}}, **function},
    }


@pytest.mark.requirement("S18")
def test_an_unchanged_list_gives_the_same_snapshot_and_a_copy_of_it_too() -> None:
    definitions = [openai("a"), openai("b")]
    source = LiveDefinitions("mine", lambda: copy.deepcopy(definitions), run)
    assert source.snapshot() is source.snapshot()


@pytest.mark.requirement("S18")
def test_a_change_in_place_is_seen_and_only_the_changed_tool_is_frozen_again() -> None:
    definitions = [openai("a"), openai("b")]
    source = live(definitions)
    before = source.snapshot()[0].by_name
    definitions[0]["function"]["parameters"]["properties"]["x"] = {"type": "string"}
    after = source.snapshot()[0].by_name
    assert after["a"] is not before["a"]
    assert after["b"] is before["b"]


@pytest.mark.requirement("S18")
@pytest.mark.parametrize("looks", [1, 2, 3])
@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (0, False), (1, 1.0), (0.0, -0.0), ("1", 1), (None, False), ([], {})]
)
def test_values_that_python_calls_equal_are_still_different_definitions(old: Any, new: Any, looks: int) -> None:
    definitions = [openai("a", parameters={"type": "object", "properties": {"x": {"default": old}}})]
    source = live(definitions)
    before = [source.snapshot()[0].tools[0] for _ in range(looks)][-1]
    definitions[0]["function"]["parameters"]["properties"]["x"]["default"] = new
    after = source.snapshot()[0].tools[0]
    assert after.raw != before.raw


def test_the_order_of_keys_is_kept_as_it_is_now_not_as_it_was_first_seen() -> None:
    definitions = [openai("a", parameters={"properties": {"x": {}, "y": {}}})]
    source = live(definitions)
    source.snapshot()
    definitions[0] = openai("a", parameters={"properties": {"y": {}, "x": {}}})
    assert list(source.snapshot()[0].tools[0].parameters["properties"]) == ["y", "x"]


def test_one_bad_definition_is_left_out_and_reported_and_comes_back_when_it_is_mended() -> None:
    definitions: list[Any] = [
        openai("a"),
        openai("b", parameters={"default": float("nan")}),
        7,
        openai("tool_call"),
        {"x": object()},
    ]
    source = live(definitions)
    (toolset,) = source.snapshot()
    assert [tool.name for tool in toolset.tools] == ["a"]
    assert len(toolset.skipped) == 4
    definitions[1] = openai("b", parameters={"default": None})
    assert [tool.name for tool in source.snapshot()[0].tools] == ["a", "b"]


def test_names_that_occur_twice_are_left_out_altogether() -> None:
    (toolset,) = live([openai("a"), openai("b"), openai("a", description="Other.")]).snapshot()
    assert [tool.name for tool in toolset.tools] == ["b"]
    assert toolset.skipped[0].reason == "the name occurs more than once"


def test_a_flat_list_can_hold_several_toolsets_and_only_the_changed_one_is_new() -> None:
    definitions = [openai("gh_a"), openai("gh_b"), openai("wx_a")]
    source = live(definitions, toolset_of=lambda raw: str(raw["function"]["name"])[:2])
    github, weather = source.snapshot()
    definitions.append(openai("wx_b"))
    github_after, weather_after = source.snapshot()
    assert github_after is github
    assert weather_after is not weather
    assert [tool.name for tool in weather_after.tools] == ["wx_a", "wx_b"]


async def test_a_hosts_own_list_is_searched_called_and_watched_at_every_assembly() -> None:
    definitions = [definition("open_door", "Open the door.")]
    session = crib(core(), live(definitions)).session()
    assert session.search("open door").names == ("open_door",)
    assert (await session.call("open_door")).text == "open_door ran"
    definitions.append(definition("close_door", "Close the door."))
    assert session.search("close door").names[0] == "close_door"


@pytest.mark.requirement("S18", "S20")
async def test_an_assemblys_look_counts_for_the_search_after_it_and_no_longer_and_never_for_a_call() -> None:
    definitions = [definition("open_door", "Open the door.")]
    asked: list[int] = []

    def listed() -> list[Any]:
        asked.append(len(definitions))
        return definitions

    session = crib(core(), LiveDefinitions("mine", listed, run)).session()
    session.assemble()
    before = len(asked)
    session.search("open door")
    assert len(asked) == before
    definitions[:] = [definition("close_door", "Close the door.")]
    assert (await session.call("open_door")).code == "tool_not_available"
    assert session.search("close door").names == ("close_door",)
    assert len(asked) > before
    session.assemble()
    definitions.clear()
    session.search("open door")
    assert session.search("close door").names == ()


def test_a_list_that_was_added_and_then_changed_is_searched_as_it_is_now() -> None:
    subject = crib(core(), settings=settings(enabled="on", retrieval="lexical"))
    session = subject.session()
    session.assemble()
    definitions = [definition("open_door", "Open the door.")]
    subject.add(live(definitions))
    definitions[:] = [definition("close_window", "Close the window.")]
    assert session.search("close window").names == ("close_window",)


VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0]) | st.text(max_size=2)


@pytest.mark.requirement("S18", "X11")
@profile(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcdef"), VALUES), max_size=6, unique_by=lambda pair: pair[0]),
        min_size=1,
        max_size=6,
    )
)
def test_after_any_history_the_assembly_equals_that_of_a_fresh_process(history: list[list[tuple[str, Any]]]) -> None:
    definitions: list[Any] = []
    session = crib(core(), live(definitions)).session()
    for state in history:
        definitions[:] = [
            openai(name, parameters={"type": "object", "properties": {"x": {"default": value}}})
            for name, value in state
        ]
        fresh = crib(core(), live(copy.deepcopy(definitions))).session()
        assert session.assemble().encoded == fresh.assemble().encoded
        assert [tool.raw for tool in session.catalog] == [tool.raw for tool in fresh.catalog]


@pytest.mark.requirement("S12")
def test_below_the_threshold_a_hosts_list_comes_back_in_its_own_order() -> None:
    definitions = [openai("z"), openai("a"), openai("m")]
    session = crib(live(definitions), settings=settings(enabled="auto")).session(model_context=200_000)
    assert session.assemble().tools == definitions


CHANGED = st.sampled_from(
    [1, True, 1.0, 0.0, -0.0, None, float("nan"), "x", "\ud800", [1], (1,), {}, [], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
)


@pytest.mark.requirement("S18")
@profile(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from(["set", "drop", "add", "copy", "look"]), st.integers(0, 4), CHANGED), max_size=12
    )
)
def test_every_sequence_of_changes_is_seen_alike_with_and_without_the_compiled_kernel(steps: list[Any]) -> None:
    def told(compiled: Any) -> list[Any]:
        definitions: list[Any] = [openai(f"t{number}", x=number) for number in range(3)]
        source, heard, last = live(definitions), list[Any](), None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(live_module, "kernel", compiled)
            for step, place, value in steps:
                match step:
                    case "set" if place < len(definitions):
                        definitions[place]["function"]["x"] = value
                    case "drop" if place < len(definitions):
                        del definitions[place]
                    case "add":
                        definitions.insert(place, openai(f"n{len(definitions)}", x=value))
                    case "copy":
                        definitions[:] = copy.deepcopy(definitions)
                    case _:
                        pass
                now = source.snapshot()
                heard.append((now is last, [(tool.name, tool.raw) for item in now for tool in item.tools]))
                last = now
        return heard

    assert told(live_module.kernel) == told(None)


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("good", ["Reads it.", "Reads it.\nPlain."])
def test_what_is_shown_is_what_was_encoded_even_if_it_changes_while_it_is_read(good: str) -> None:
    definitions = [openai("a", description=good)]

    def meddling(definition: Any) -> str:
        definition["function"]["description"] = good + " Changed." + chr(0x200B)
        return "mine"

    (tool,) = live(definitions, toolset_of=meddling).snapshot()[0].tools
    assert tool.description == tool.definition["function"]["description"]


class Text(str):
    """A text of a kind of its own."""

    __slots__ = ()


def test_a_text_of_a_kind_of_its_own_is_a_text() -> None:
    mine = live([openai("send", description=Text("Sends a letter.")), openai("go", description="Größer.")])
    session = crib(mine, settings=settings(retrieval="lexical")).session()
    session.assemble()
    assert session.search("letter").names == ("send",)
