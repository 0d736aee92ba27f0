"""Freezing: bounded, and nothing is fetched."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.factories import definition

from toolcrib.errors import DefinitionError
from toolcrib.intake.freezing import freeze_tool, name_of
from toolcrib.limits import DEFINITION_MAX_BYTES, DESCRIPTION_MAX_CHARS, SCHEMA_MAX_DEPTH


def freeze(raw: Any) -> Any:
    return freeze_tool(raw, toolset="t", origin="mcp")


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


BAD: dict[str, Any] = {
    "no object": 7,
    "deep": definition("a", x=nested(SCHEMA_MAX_DEPTH)),
    "NaN": definition("a", x={"type": "number", "default": float("nan")}),
    "infinity": definition("a", x={"type": "number", "maximum": float("inf")}),
    "lone surrogate": definition("a", "\ud800"),
    "huge number": definition("a", x={"default": 10**30}),
    "key that is no string": definition("a", x={1: 2}),
    "network reference": definition("a", x={"$ref": "http://127.0.0.1:9/schema.json"}),
    "network reference of a property that is called like a keyword": definition(
        "a", default={"$ref": "http://127.0.0.1:9/schema.json"}
    ),
    "file reference": definition("a", x={"$ref": "file:///etc/passwd"}),
    "relative reference": definition("a", x={"$ref": "other.json#/a"}),
    "dynamic reference": definition("a", x={"$dynamicRef": "https://example.org/x"}),
    "long description": definition("a", "x" * (DESCRIPTION_MAX_CHARS + 1)),
    "too many bytes": definition("a", x={"enum": ["y" * 100] * (DEFINITION_MAX_BYTES // 100)}),
    "too many values": definition("a", x={"enum": [1] * 60_000}),
}


@pytest.mark.parametrize("case", BAD)
def test_a_definition_beyond_bounds_is_refused_with_a_reason(case: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        freeze(BAD[case])
    assert len(str(caught.value)) > 10
    assert caught.value.code == "definition_invalid"


def test_references_that_stay_inside_are_kept() -> None:
    inside = {"$defs": {"city": {"$id": "https://example.org/city", "type": "string"}}}
    for reference in ("#/$defs/city", "#", "https://example.org/city"):
        raw = definition("a")
        raw["inputSchema"] = {**inside, "type": "object", "properties": {"c": {"$ref": reference}}}
        assert freeze(raw).parameters["properties"] == {"c": {"$ref": reference}}


def test_what_looks_like_a_reference_inside_data_is_data() -> None:
    raw = definition(
        "a", x={"type": "object", "default": {"$ref": "http://example.org"}, "examples": [{"$ref": "file:///x"}]}
    )
    assert freeze(raw).leaf == "a"


def test_a_property_that_is_called_like_a_keyword_is_a_property() -> None:
    raw = definition("a")
    raw["inputSchema"] = {"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}
    assert set(freeze(raw).parameters["properties"]) == {"$ref", "$id"}


def test_a_default_of_a_property_that_is_called_like_a_keyword_is_data() -> None:
    raw = definition("a", properties={"type": "object", "default": {"$ref": "file:///x"}})
    assert freeze(raw).definition == raw


def test_a_tool_without_a_schema_takes_nothing() -> None:
    assert freeze({"name": "a"}).parameters == {"type": "object", "properties": {}}


def test_annotations_become_traits_and_anything_else_in_them_is_ignored() -> None:
    raw = {**definition("a"), "annotations": {"readOnlyHint": True, "destructiveHint": "yes", "openWorldHint": None}}
    traits = freeze(raw).traits
    assert (traits.read_only, traits.destructive, traits.open_world) == (True, None, None)
    assert not traits.changes_something


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
        lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(max_size=5), c, max_size=3),
        max_leaves=10,
    )
)
def test_any_value_is_either_frozen_or_refused(value: Any) -> None:
    for raw in (value, {"name": "a", "inputSchema": value}, {"name": value}, {"name": "a", "x": value}):
        try:
            freeze(raw)
        except DefinitionError:
            assert isinstance(name_of(raw), str)


@pytest.mark.parametrize("where", [{"toolset": "mine\ud800"}, {"aliases": ["a\ud800"]}])
def test_a_name_that_cannot_be_written_is_refused_at_once(where: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="no text"):
        freeze_tool(definition("a"), **{"toolset": "mine", "origin": "host", **where})
