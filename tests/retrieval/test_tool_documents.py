"""The words of a tool are read from its schema, whatever the schema holds."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.base import Document, Inside, PlainDocument
from toolcrib.retrieval.documents import NESTED_MAX_CHARS, described, documents_of, inside_of, read_inside
from toolcrib.sources.base import freeze_toolset

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("ab ", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "description", "enum", "items", "anyOf", "oneOf", "allOf", "type", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_descriptions_come_first_then_what_is_inside_level_by_level() -> None:
    schema = {
        "properties": {
            "to": {"type": "array", "items": {"description": "one address"}, "description": "Whom to write"},
            "mode": {"enum": ["fast", 7, "slow"], "anyOf": [{"properties": {"deep": {"description": "below"}}}, True]},
        }
    }
    assert read_inside(orjson.dumps(schema)) == Inside(("to", "mode"), "Whom to write fast slow one address deep below")


@given(st.dictionaries(st.sampled_from(["properties", "description", "items"]), JSON))
def test_a_schema_is_read_the_same_whether_it_is_in_order_or_not(schema: dict[str, object]) -> None:
    assert read_inside(orjson.dumps(schema)) == inside_of(schema)


def test_a_keyword_that_holds_the_wrong_thing_does_not_cost_its_neighbours() -> None:
    schema = {"properties": {"a": {"description": 7, "enum": "no list"}, "b": {"description": "kept"}, "c": None}}
    assert read_inside(orjson.dumps(schema)) == Inside(("a", "b", "c"), "kept")


def test_the_text_of_many_parameters_is_bounded_at_a_whole_description() -> None:
    properties = {f"p{n}": {"description": f"{n} " + "word " * 40} for n in range(50)}
    nested = read_inside(orjson.dumps({"properties": properties})).nested
    assert NESTED_MAX_CHARS - 210 < len(nested) <= NESTED_MAX_CHARS
    assert nested.startswith("0 word")


def test_the_operators_words_belong_to_the_document_and_to_its_digest() -> None:
    raws = [{"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}}]
    toolset = freeze_toolset("mcp-box", raws, origin="mcp")
    plain = documents_of(toolset)
    named = documents_of(toolset, {"b": ("bee",), "mcp-box": ("crate",)}, known=plain)
    assert [document.aliases for document in named] == [("crate",), ("bee", "crate")]
    assert {document.digest for document in plain}.isdisjoint(document.digest for document in named)
    assert documents_of(toolset, known=plain) == plain
    assert all(one is other for one, other in zip(documents_of(toolset, known=plain), plain, strict=True))


def test_many_documents_are_described_as_each_of_them_is_whatever_they_are() -> None:
    toolset = freeze_toolset("mcp-a", [{"name": name, "inputSchema": {}} for name in ("one", "two")], origin="mcp")
    plain = PlainDocument(key="k", digest="d", leaf="l", toolset="t", description="", parameters=("p",), nested="n")
    made: tuple[Document, ...] = documents_of(toolset, {"one": ("first",)})
    for each in ((), made, (*made, plain)):
        assert described(each) == [document.described for document in each]


def test_words_under_the_full_name_of_a_tool_and_under_its_short_one_count_together_each_once() -> None:
    toolset = freeze_toolset("mcp-box", [{"name": "open", "inputSchema": {}}], origin="mcp")
    words = {"box__open": ("unlock", "unseal"), "open": ("unpack", "unlock"), "mcp-box": ("crate",)}
    (document,) = documents_of(toolset, words)
    assert document.aliases == ("unlock", "unseal", "unpack", "crate")
