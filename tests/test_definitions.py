"""Values: immutable, equal by content, sized as the estimate counts them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import definition, tool

from toolcrib.definitions import Result, canonical_json, fingerprint_of, json_chars
from toolcrib.intake.freezing import freeze_tool

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)


def test_a_tool_cannot_be_changed_and_its_parameters_are_a_copy() -> None:
    one = tool("a", city={"type": "string"})
    one.parameters["type"] = "array"
    assert one.parameters["type"] == "object"
    with pytest.raises(AttributeError):
        setattr(one, "name", "b")  # noqa: B010


@given(st.dictionaries(st.text(min_size=1, max_size=8), JSON, max_size=5))
def test_a_digest_does_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))
    assert canonical_json(value) == canonical_json(turned)


def test_a_fingerprint_changes_with_every_part_of_a_definition() -> None:
    base = definition("a", "Says something.", city={"type": "string"})
    prints = {freeze_tool(base, toolset="t", origin="mcp").fingerprint}
    for changed in (
        {**base, "name": "b"},
        {**base, "description": "Says something!"},
        {**base, "inputSchema": {**base["inputSchema"], "required": []}},
        {**base, "annotations": {"readOnlyHint": True}},
        {**base, "x-unknown": 1},
    ):
        prints.add(freeze_tool(changed, toolset="t", origin="mcp").fingerprint)
    prints.add(freeze_tool(base, toolset="other", origin="mcp").fingerprint)
    assert len(prints) == 7


def test_the_borders_between_parts_count() -> None:
    assert fingerprint_of(b"ab", b"c") != fingerprint_of(b"a", b"bc")


@pytest.mark.requirement("S13")
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_the_size_of_a_definition_is_its_compact_json_as_an_openai_function(description: str) -> None:
    one = freeze_tool(
        {"name": "a", "description": description, "inputSchema": {}}, toolset="t", origin="mcp", prefix="p"
    )
    whole = {"type": "function", "function": {"name": "p__a", "description": description, "parameters": {}}}
    assert one.chars == len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")))


def test_characters_are_counted_not_bytes() -> None:
    assert json_chars('"é"'.encode()) == 3


def test_a_result_without_text_shows_its_structured_value() -> None:
    assert Result(structured={"a": 1}).text == '{"a":1}'
    assert (
        Result(content=({"type": "text", "text": "x"}, {"type": "image"}, {"type": "text", "text": "y"})).text == "x\ny"
    )


def test_tools_of_the_same_content_are_equal_and_not_unequal() -> None:
    one, same, other = tool("read"), tool("read"), tool("write")
    assert one == same
    assert [one != same, one != other, one != "read"] == [False, True, True]
