"""Arguments: checked offline, in bounded time, and repaired in one turn."""

import http.server
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.factories import definition, tool

from toolcrib.errors import InvalidArguments, InvalidCall
from toolcrib.execution.complexity import WORK_MAX, measure_work
from toolcrib.execution.repair import repair, whole_numbers
from toolcrib.execution.validation import Validator
from toolcrib.intake.freezing import freeze_tool


def with_schema(schema: dict[str, Any]) -> Any:
    return freeze_tool({"name": "t", "inputSchema": schema}, toolset="t", origin="mcp")


def check(schema: dict[str, Any], arguments: dict[str, Any]) -> Any:
    return Validator().check(with_schema(schema), arguments)


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.requirement("X5")
def test_a_wrong_call_is_answered_with_the_place_the_constraint_and_the_schema() -> None:
    issue = tool("create_issue", title={"type": "string"}, count={"type": "integer", "maximum": 9})
    with pytest.raises(InvalidArguments) as caught:
        Validator().check(issue, {"count": 10})
    answer = caught.value.for_model()
    assert "`create_issue` was not run" in str(answer["error"])
    assert '"title" is a required property' in str(answer["error"])
    assert "`count`" in str(answer["error"])
    assert answer["parameters"] == issue.parameters


@pytest.mark.requirement("X5")
@pytest.mark.parametrize(
    ("kind", "value", "repaired"),
    [
        ("integer", "42", 42),
        ("integer", "3.0", 3),
        ("number", "4.5", 4.5),
        ("number", "4", 4),
        ("boolean", "True", True),
        ("object", '{"a": 1}', {"a": 1}),
        ("array", '["a"]', ["a"]),
        ("array", "a", ["a"]),
        ("array", 7, [7]),
        ("string", 42, "42"),
    ],
)
def test_a_value_with_only_one_reading_is_repaired_and_said_so(kind: str, value: Any, repaired: Any) -> None:
    checked = check(obj(x={"type": kind}), {"x": value})
    assert checked.arguments == {"x": repaired}
    assert type(checked.arguments["x"]) is type(repaired)
    assert "`x` was given as" in checked.notes[0]


@pytest.mark.requirement("X5")
@pytest.mark.parametrize(
    "kind",
    [
        {"$ref": "#/$defs/n"},
        {"$ref": "#/%24defs/n", "description": "How many."},
        {"allOf": [{"$ref": "#/$defs/n"}]},
        {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]},
    ],
)
def test_the_type_of_a_parameter_is_found_where_its_schema_refers_to(kind: dict[str, Any]) -> None:
    schema = {**obj(x=kind), "$defs": {"n": {"type": "integer"}}}
    assert check(schema, {"x": "42"}).arguments == {"x": 42}
    assert type(check(schema, {"x": 3.0}).arguments["x"]) is int


def test_types_that_lead_in_circles_or_double_at_every_level_are_looked_for_only_so_far() -> None:
    circle = {**obj(x={"allOf": [{"$ref": "#/$defs/a"}] * 2, "minimum": 9}), "$defs": {}}
    circle["$defs"] = {"a": {"allOf": [{"$ref": "#/$defs/b"}] * 9}, "b": {"anyOf": [{"$ref": "#/$defs/a"}] * 9}}
    assert repair({"x": "1"}, circle) == ({"x": "1"}, ())


def test_whole_floats_become_integers_where_only_those_are_taken_however_deep() -> None:
    schema = obj(
        n={"type": "integer"},
        x={"type": "number"},
        either={"type": ["integer", "number"]},
        any={},
        many={"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        free={"type": "object", "additionalProperties": {"type": "integer"}},
    )
    given = {"n": 3.0, "x": 3.0, "either": 3.0, "any": 3.0, "many": [{"n": 4.0, "m": 4.0}], "free": {"k": 5.0}}
    checked = check(schema, given)
    assert str(checked.arguments) == (
        "{'n': 3, 'x': 3.0, 'either': 3.0, 'any': 3.0, 'many': [{'n': 4, 'm': 4.0}], 'free': {'k': 5}}"
    )
    assert checked.notes == ()
    assert given["n"] == 3.0
    assert type(given["n"]) is float


@pytest.mark.requirement("X5")
def test_a_refusal_holds_no_more_of_a_large_schema_than_concerns_it() -> None:
    names = {"enum": [f"value-{n}" for n in range(9_000)]}
    large = {**obj(name=names, n={"type": "integer"}, m={"type": "integer"}), "required": ["n"]}
    with pytest.raises(InvalidArguments) as caught:
        check(large, {"m": "x"})
    assert caught.value.extra["parameters"] == obj(n={"type": "integer"}, m={"type": "integer"})
    with pytest.raises(InvalidArguments) as caught:
        check(large, {"n": 1, "name": "other"})
    assert str(caught.value.extra["signature"]).startswith("t(n: int, ")
    assert caught.value.extra["complete"] is False
    assert len(str(caught.value.for_model())) < 10_000


@pytest.mark.requirement("X5")
def test_a_blank_for_an_optional_parameter_of_another_type_is_left_out() -> None:
    checked = check(obj(x={"type": "object"}, y={"type": "integer"}), {"x": "", "y": 1})
    assert checked.arguments == {"y": 1}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "forty"),
        ("integer", 4.5),
        ("object", "[]"),
        ("boolean", "maybe"),
        ("string", None),
        ("string", 3.1),
        ("integer", True),
    ],
)
def test_what_has_no_single_reading_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(InvalidArguments):
        check({**obj(x={"type": kind}), "required": ["x"]}, {"x": value})


@pytest.mark.parametrize("choice", [{"enum": ["all", ""]}, {"pattern": "^(all)?$"}, {"minimum": 1}, True])
@pytest.mark.parametrize("value", ["all", ""])
def test_what_one_of_several_schemas_takes_as_it_is_stays_beside_what_is_repaired(choice: Any, value: str) -> None:
    which = {"anyOf": [{"type": "array", "items": {"type": "string"}}, choice]}
    checked = check(obj(which=which, n={"type": "integer"}), {"n": "4", "which": value})
    assert checked.arguments == {"n": 4, "which": value}


def test_the_types_of_values_that_are_listed_are_those_that_are_taken() -> None:
    assert check(obj(n={"enum": [1, 2]}, m={"const": "7"}), {"n": "2", "m": 7}).arguments == {"n": 2, "m": "7"}


@pytest.mark.parametrize("levels", [70, 300, 900])
def test_an_object_in_a_string_is_nested_no_deeper_than_any(levels: int) -> None:
    with pytest.raises(InvalidCall):
        check(obj(x={"type": "object"}), {"x": '{"a":' * levels + "1" + "}" * levels})


def test_valid_arguments_are_handed_on_as_they_are() -> None:
    arguments = {"x": "42", "extra": [1]}
    checked = check(obj(x={"type": "string"}), arguments)
    assert checked.arguments is arguments
    assert checked.notes == ()


def test_validation_reads_the_tools_arguments_and_not_the_envelope() -> None:
    schema = {
        **obj(name={"type": "string"}, arguments={"type": "array"}),
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    assert check(schema, {"name": "x", "arguments": [1]}).notes == ()


@pytest.mark.requirement("X5")
@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"properties": 7}, {"$ref": "#/nowhere"}, {"type": "object", "required": "x"}]
)
def test_a_schema_that_cannot_be_checked_lets_the_call_through(schema: dict[str, Any]) -> None:
    assert check(schema, {"anything": 1}).arguments == {"anything": 1}
    assert not Validator().is_checkable(with_schema(schema))


@pytest.mark.requirement("X5")
def test_a_pattern_that_backtracks_elsewhere_is_checked_in_linear_time() -> None:
    schema = obj(x={"type": "string", "pattern": "^(a+)+$"})
    assert check(schema, {"x": "a" * 5_000}).notes == ()
    with pytest.raises(InvalidArguments):
        check(schema, {"x": "a" * 5_000 + "!"})


def test_a_pattern_beyond_linear_time_is_left_out_and_the_rest_is_checked() -> None:
    schema = {**obj(x={"type": "string", "pattern": "^(?=.*[A-Z]).+$"}, n={"type": "integer"}), "required": ["n"]}
    assert check(schema, {"x": "lower", "n": 1}).notes == ()
    with pytest.raises(InvalidArguments):
        check(schema, {"x": "lower"})


def doubling(levels: int, via: str) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"a{n}": {via: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(levels)
    }
    return {**obj(x={"$ref": "#/$defs/a0"}), "$defs": {**defs, f"a{levels}": {"type": "string"}}}


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("via", ["anyOf", "allOf", "oneOf"])
def test_a_schema_that_doubles_its_work_at_every_level_is_not_checked_at_all(via: str) -> None:
    bomb = doubling(60, via)
    assert measure_work(bomb).visits > WORK_MAX
    assert check(bomb, {"x": 1}).arguments == {"x": 1}
    with pytest.raises(InvalidArguments):
        check(doubling(6, via), {"x": {}})


def referring(levels: int, way: str) -> dict[str, Any]:
    """A schema in which every level refers twice to the next one, by one of the ways that there are."""

    def reference(n: int) -> dict[str, str]:
        ways = {
            "percent": f"#/%24defs/a{n}",
            "anchor": f"#a{n}",
            "old anchor": f"#a{n}",
            "id": f"http://x/a{n}",
            "relative id": f"a{n}",
            "whole": f"http://x/r#/$defs/a{n}",
            "dynamic": f"#a{n}",
            "named like a keyword": f"#/properties/definitions/properties/a{n}",
            "named like a value": f"#/properties/const/properties/a{n}",
        }
        return {"$dynamicRef" if way == "dynamic" else "$ref": ways[way]}

    marks = {
        "anchor": "$anchor",
        "old anchor": "$id",
        "id": "$id",
        "relative id": "$id",
        "dynamic": "$dynamicAnchor",
    }
    defs: dict[str, Any] = {}
    for n in range(levels + 1):
        inside = {"allOf": [reference(n + 1), reference(n + 1)]} if n < levels else {"type": ["string", "object"]}
        name = {"id": f"http://x/a{n}", "old anchor": f"#a{n}"}.get(way, f"a{n}")
        defs[f"a{n}"] = {**inside, marks[way]: name} if way in marks else inside
    drafts = {"old anchor": "http://json-schema.org/draft-07/schema#"}
    head = {"$id": "http://x/r"} if "id" in way or way == "whole" else {}
    if way in drafts:
        head["$schema"] = drafts[way]
    if way.startswith("named"):
        name = "definitions" if way.endswith("keyword") else "const"
        return obj(**{name: {"type": "object", "properties": defs}})
    return {**head, **obj(x=reference(0)), "definitions" if way in drafts else "$defs": defs}


@pytest.mark.requirement("X5")
@pytest.mark.parametrize(
    "way",
    [
        "percent",
        "anchor",
        "old anchor",
        "id",
        "relative id",
        "whole",
        "dynamic",
        "named like a keyword",
        "named like a value",
    ],
)
def test_references_are_followed_however_they_are_written(way: str) -> None:
    assert measure_work(referring(60, way)).visits > WORK_MAX
    small = referring(4, way)
    key = "definitions" if way.endswith("keyword") else "const" if way.endswith("value") else "x"
    assert Validator().is_checkable(with_schema(small))
    with pytest.raises(InvalidArguments):
        check(small, {key: 7})


@pytest.mark.requirement("X5")
def test_what_a_reference_cannot_be_told_to_mean_counts_as_too_much() -> None:
    for reference in ("http://json-schema.org/draft-07/schema#", "#nowhere", "#/nowhere", "elsewhere"):
        assert measure_work(obj(x={"$ref": reference})).visits > WORK_MAX
    # What only looks like a reference is none.
    named = {**obj(**{"$ref": {"type": "integer"}}), "examples": [{"$ref": "#/elsewhere"}], "required": ["$ref"]}
    with pytest.raises(InvalidArguments):
        check(named, {"$ref": "x"})


@pytest.mark.requirement("X5")
def test_a_schema_that_doubles_with_the_depth_of_the_arguments_is_checked_only_while_they_are_shallow() -> None:
    node = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["b"]}
    bomb = {**obj(x={"$ref": "#/$defs/n"}), "$defs": {"n": {"anyOf": [node, {**node, "title": "again"}]}}}
    deep: Any = {}
    for _ in range(60):
        deep = {"a": deep}
    assert check(bomb, {"x": deep}).arguments == {"x": deep}
    with pytest.raises(InvalidArguments):
        check(bomb, {"x": {"a": {}}})


@pytest.mark.requirement("X5")
def test_a_schema_of_much_work_for_each_value_is_checked_only_while_they_are_few() -> None:
    levels: dict[str, Any] = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(17)}
    bomb = {**obj(a={"items": {"$ref": "#/$defs/l0"}}), "$defs": {**levels, "l17": {"minimum": 0}}}
    with pytest.raises(InvalidArguments):
        check(bomb, {"a": [-1]})
    many: Any = {"a": [-1] * 100_000}
    assert check(bomb, many).arguments == many
    fits = Validator().check_of(with_schema(bomb))
    assert fits is not None
    assert fits(many)


def test_large_arguments_are_refused_with_the_first_of_their_errors() -> None:
    schema = obj(a={"allOf": [{"type": "string"}] * 600}, n={"type": "integer"})
    with pytest.raises(InvalidArguments, match=r"^a: type$"):
        check(schema, {"a": ["word"] * 100_000, "n": "x"})
    with pytest.raises(InvalidArguments, match="a: type; a: type"):
        check(schema, {"a": ["word"], "n": "x"})


def test_many_numbers_under_many_schemas_are_made_whole_only_as_far_as_that_is_cheap() -> None:
    schema = with_schema(obj(a={"anyOf": [{"items": {"type": "integer"}}] * 600}))
    assert str(whole_numbers({"a": [1.0]}, schema)) == "{'a': [1]}"
    numbers: Any = {"a": [1.0] * 200_000}
    assert whole_numbers(numbers, schema) == numbers


def test_an_ordinary_recursive_schema_is_checked_at_any_depth() -> None:
    tree = {
        **obj(x={"$ref": "#/$defs/n"}),
        "$defs": {"n": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}},
    }
    deep: Any = {"kids": 7}
    for _ in range(20):
        deep = {"kids": [deep]}
    with pytest.raises(InvalidArguments):
        check(tree, {"x": deep})


@pytest.mark.requirement("X5")
def test_nothing_is_fetched_while_checking() -> None:
    hits: list[str] = []

    class Canary(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_error(404)

    server = http.server.HTTPServer(("127.0.0.1", 0), Canary)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/schema.json"
        # Below intake, which would refuse the definition: the validator itself never fetches.
        schema = b'{"type":"object","properties":{"x":{"$ref":"' + address.encode() + b'"}}}'
        raw = structs.replace(with_schema(obj(x={"type": "string"})), schema=schema)
        assert Validator().check(raw, {"x": 1}).arguments == {"x": 1}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert hits == []


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
            lambda c: st.lists(c, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    )
)
def test_any_arguments_are_either_taken_or_refused(arguments: dict[str, Any]) -> None:
    schema = {**obj(a={"type": "integer"}, b={"type": ["array", "null"]}, c={"enum": ["x"]}), "required": ["a"]}
    try:
        checked = check(schema, arguments)
    except InvalidArguments as error:
        assert error.extra["parameters"] == schema
    else:
        assert isinstance(checked.arguments["a"], int)


def test_a_compiled_schema_is_kept_by_its_content() -> None:
    validator = Validator()
    one = freeze_tool(definition("a", x={"type": "integer"}), toolset="t", origin="mcp")
    two = freeze_tool(definition("b", x={"type": "integer"}), toolset="u", origin="mcp")
    validator.check(one, {"x": 1})
    validator.check(two, {"x": 1})
    assert len(validator._compiled) == 1
