"""Unwrapping: the only place that reads what the model wrote into the bridge."""

import base64
import random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.bridge import Describe, Invocation, Search, plain_invocation, unwrap
from toolcrib.definitions import ModelCall
from toolcrib.errors import CallError, InvalidCall
from toolcrib.limits import ARGUMENTS_MAX_BYTES, NAMES_PER_DESCRIBE, QUERIES_PER_SEARCH, QUERY_READ_CHARS


def read(name: str, arguments: Any) -> Any:
    return unwrap(ModelCall(id="c", name=name, arguments=arguments))


@pytest.mark.requirement("S5")
def test_a_call_by_its_own_name_is_that_call() -> None:
    assert read("forecast", {"city": "Rome"}) == Invocation(name="forecast", arguments={"city": "Rome"}, route="direct")


@pytest.mark.requirement("S5")
@pytest.mark.parametrize("arguments", [{"city": "Rome"}, '{"city": "Rome"}', ' {"city":"Rome"}\n'])
def test_arguments_may_be_an_object_or_a_json_string_of_one(arguments: Any) -> None:
    expected = Invocation(name="forecast", arguments={"city": "Rome"}, route="bridge")
    assert read("tool_call", {"name": "forecast", "arguments": arguments}) == expected
    assert read("forecast", arguments).arguments == {"city": "Rome"}


@pytest.mark.requirement("S5")
@pytest.mark.parametrize("arguments", [None, "", "  ", "null", {}, "{}"])
def test_missing_null_and_blank_arguments_mean_none(arguments: Any) -> None:
    assert read("tool_call", {"name": "forecast", "arguments": arguments}).arguments == {}
    assert read("forecast", arguments).arguments == {}


@pytest.mark.requirement("S5")
@pytest.mark.parametrize("arguments", [7, True, [], ["a"], "[1]", '"text"', "{broken", "7", 1.5])
def test_anything_else_is_an_error_that_says_what_to_send(arguments: Any) -> None:
    with pytest.raises(InvalidCall, match="JSON object"):
        read("tool_call", {"name": "forecast", "arguments": arguments})


@pytest.mark.requirement("S6")
@pytest.mark.parametrize("inner", ["tool_call", "tool_search", "Tool-Describe", "TOOL_CALL", " tool_call "])
def test_the_bridge_never_reaches_itself(inner: str) -> None:
    arguments: Any = {"name": "forecast", "arguments": {}}
    for _ in range(5):
        arguments = {"name": inner, "arguments": arguments}
        with pytest.raises(InvalidCall, match="cannot run a bridge tool"):
            read("tool_call", arguments)


@pytest.mark.parametrize("name", ["Tool_Call", "toolCall", "TOOL-CALL"])
def test_another_spelling_of_a_bridge_name_means_the_bridge(name: str) -> None:
    assert read(name, {"name": "forecast", "arguments": {}}).route == "bridge"


def test_a_look_alike_of_a_bridge_name_means_nothing() -> None:
    with pytest.raises(InvalidCall, match="Did you mean"):
        read("tооl_call", {"name": "forecast"})


@pytest.mark.parametrize("key", ["Name", "NAME", "arguments ", "Arguments", "tool", "extra"])
def test_only_exact_keys_count(key: str) -> None:
    with pytest.raises(InvalidCall, match="takes"):
        read("tool_call", {"name": "forecast", "arguments": {}, key: "delete_everything"})


def test_keys_that_are_no_strings_are_answered_like_any_other() -> None:
    with pytest.raises(InvalidCall, match="not `1`, `tool`"):
        read("tool_call", {"name": "forecast", 1: 2, "tool": 3})


def test_flattened_arguments_are_answered_with_where_they_belong() -> None:
    with pytest.raises(InvalidCall, match="inside `arguments`"):
        read("tool_call", {"name": "forecast", "city": "Rome"})


@pytest.mark.parametrize("name", [None, "", "  ", 7, ["a"]])
def test_a_call_without_a_name_says_what_to_send(name: Any) -> None:
    with pytest.raises(InvalidCall, match=r'send \{"name"'):
        read("tool_call", {"name": name, "arguments": {}})


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("query", [None, "", "  \n ", [], [""], 7])
def test_a_blank_query_is_an_error_that_says_so(query: Any) -> None:
    with pytest.raises(InvalidCall, match="blank"):
        read("tool_search", {"query": query})


@pytest.mark.requirement("X4")
def test_lines_of_data_alone_are_no_needs_unless_nothing_else_is_said() -> None:
    picture = base64.encodebytes(random.Random(5).randbytes(4_000)).decode()
    asked = read("tool_search", {"query": f"What does this picture show?\n{picture}"})
    assert isinstance(asked, Search) and asked.queries == ("What does this picture show?",)
    number = "27f145d2-5713-4a8d-af64-b269f95ade3b"
    alone = read("tool_search", {"query": number})
    assert isinstance(alone, Search) and alone.queries == (number,)


@pytest.mark.requirement("S3")
def test_a_lone_surrogate_in_a_query_is_no_character() -> None:
    asked = read("tool_search", {"query": "open \udcff it"})
    assert isinstance(asked, Search) and asked.queries == ("open ? it",)


@pytest.mark.requirement("S3")
def test_of_a_query_without_end_the_beginning_is_read() -> None:
    asked = read("tool_search", {"query": ["open it " * 1_000_000, " " * 1_000_000 + "close it"]})
    assert isinstance(asked, Search)
    assert [len(query) for query in asked.queries] == [QUERY_READ_CHARS, len("close it")]


@pytest.mark.requirement("X4")
def test_several_needs_come_as_a_list_or_as_lines() -> None:
    expected = Search(queries=("send mail", "read calendar"), limit=None)
    assert read("tool_search", {"query": ["send mail", "read calendar", "send mail"]}) == expected
    assert read("tool_search", {"query": "send mail\n read calendar \n"}) == expected
    assert read("tool_search", {"queries": ["send mail", "read calendar"]}) == expected
    assert read("tool_search", "send mail\nread calendar") == expected


@pytest.mark.requirement("X4")
def test_several_names_can_be_described_at_once() -> None:
    assert read("tool_describe", {"name": ["a", "b", "a"]}) == Describe(names=("a", "b"))
    assert read("tool_describe", {"names": ["a"]}) == read("tool_describe", "a") == Describe(names=("a",))
    with pytest.raises(InvalidCall, match="blank"):
        read("tool_describe", {})


def test_too_many_needs_or_names_are_refused_with_the_limit() -> None:
    with pytest.raises(InvalidCall, match=str(QUERIES_PER_SEARCH)):
        read("tool_search", {"query": [f"need {n}" for n in range(QUERIES_PER_SEARCH + 1)]})
    with pytest.raises(InvalidCall, match=str(NAMES_PER_DESCRIBE)):
        read("tool_describe", {"name": [f"t{n}" for n in range(NAMES_PER_DESCRIBE + 1)]})


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(("limit", "expected"), [(None, None), (3, 3), ("4", 4), (5.0, 5), (-1, -1), (10**9, 10**9)])
def test_a_limit_is_read_liberally(limit: Any, expected: int | None) -> None:
    assert read("tool_search", {"query": "x", "limit": limit}).limit == expected


@pytest.mark.parametrize("limit", [True, "many", [], 1.5, "²", "--5", "-", "1e2", float("inf")])
def test_a_limit_that_is_no_number_is_an_error(limit: Any) -> None:
    with pytest.raises(InvalidCall, match="whole number"):
        read("tool_search", {"query": "x", "limit": limit})


def test_arguments_beyond_bounds_are_refused() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"a": deep}
    for arguments in (
        deep,
        {"a": float("nan")},
        {"a": "x" * ARGUMENTS_MAX_BYTES},
        {"a": 10**40},
        {"a": "\ud800"},
        {1: 2},
    ):
        with pytest.raises(InvalidCall):
            read("forecast", arguments)
    with pytest.raises(InvalidCall):
        read("forecast", '{"a": "' + "x" * ARGUMENTS_MAX_BYTES + '"}')


@given(
    st.sampled_from(["tool_call", "tool_search", "tool_describe", "forecast"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda c: (
            st.lists(c, max_size=3)
            | st.dictionaries(st.sampled_from(["name", "arguments", "query", "limit", "x"]), c, max_size=3)
        ),
        max_leaves=8,
    ),
)
def test_any_json_is_either_understood_or_refused_with_a_sentence(name: str, arguments: Any) -> None:
    try:
        request = read(name, arguments)
    except CallError as error:
        assert error.code == "invalid_call"
        assert error.message.endswith((".", "?"))
    else:
        assert isinstance(request, Invocation | Search | Describe)


@pytest.mark.requirement("S5")
def test_changing_the_models_json_afterwards_changes_nothing() -> None:
    raw = {"name": "forecast", "arguments": {"city": "Rome"}}
    request = read("tool_call", raw)
    raw["name"] = "delete_everything"
    raw["arguments"] = {}
    assert (request.name, request.arguments) == ("forecast", {"city": "Rome"})


@given(
    st.sampled_from(["tool_call", "forecast", "one__echo"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["name", "arguments", "x"]), inner, max_size=3)
            | st.fixed_dictionaries({"name": st.sampled_from(["forecast", "a"]), "arguments": inner})
        ),
        max_leaves=8,
    ),
)
def test_the_usual_call_is_read_as_any_other(name: str, arguments: Any) -> None:
    plain = plain_invocation(name, arguments)
    if plain is not None:
        assert plain.encoded == orjson.dumps(plain.arguments)
        try:
            request = read(name, arguments)
        except InvalidCall:
            # Only a name can still be refused, and names are asked of `unwrap` once.
            assert plain.route == "bridge" and not plain.name.strip()
        else:
            assert (request.name.strip(), request.arguments, request.route) == (
                plain.name.strip(),
                plain.arguments,
                plain.route,
            )


def test_what_is_too_large_or_too_deep_is_not_the_usual_call() -> None:
    deep: Any = {}
    for _ in range(70):
        deep = {"x": deep}
    assert plain_invocation("forecast", deep) is None
    assert plain_invocation("forecast", {"x": "y" * ARGUMENTS_MAX_BYTES}) is None
