"""The compiled kernel gives what the Python beside it gives, keeps nothing alive, and may be missing."""

import copy
import ctypes
import gc
import json
import math
import os
import platform
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from toolcrib import alongside, cards, definitions
from toolcrib import kernel as kernel_module
from toolcrib.definitions import Tool, ToolName, ToolsetName, Traits, canonical_json
from toolcrib.errors import DefinitionError
from toolcrib.intake import freezing, glance, screening
from toolcrib.intake.freezing import freeze_tool
from toolcrib.kernel import kernel
from toolcrib.retrieval import (
    analysis,
    documents,
    families,
    forward,
    numbering,
    postings,
    products,
    reading,
    selection,
    signature,
    spelling,
    text,
)
from toolcrib.retrieval.analysis import default_weights
from toolcrib.retrieval.attention import Norm, Text, look_plainly
from toolcrib.retrieval.base import PlainDocument
from toolcrib.sources.base import build_toolset

ROOT = Path(__file__).parents[1]
compiled = pytest.mark.skipif(kernel is None, reason="the kernel is not in use")
profile.register_profile("kernel", deadline=None, derandomize=True, max_examples=300)
thorough = profile(profile.get_profile("kernel"))

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, -1, 2**63, 2**64, 10**40])
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


class OddDict(dict[str, Any]):
    pass


class OddText(str):
    __slots__ = ()


class OddNumber(int):
    pass


def seen(value: Any) -> Any:
    """What was kept of a value, without encoding it."""
    assert kernel is not None
    kept = kernel.keep(value, lambda given: b"", 1 << 16)
    return kept and kept[0]


def exact(value: Any) -> Any:
    """Everything that tells two plain values apart, order of keys included."""
    if isinstance(value, dict):
        return ["dict", [(key, exact(item)) for key, item in value.items()]]
    if isinstance(value, list):
        return ["list", [exact(item) for item in value]]
    if isinstance(value, float):
        return ["float", value.hex(), math.copysign(1.0, value)]
    return [type(value).__name__, value]


@compiled
@thorough
@given(PLAIN, PLAIN)
def test_a_value_is_the_same_as_its_copy_and_as_nothing_that_differs(one: Any, other: Any) -> None:
    assert kernel is not None
    kept = seen(one)
    assert kernel.same(kept, copy.deepcopy(one))
    assert kernel.same(kept, other) == (exact(one) == exact(other))


@compiled
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (0, False), (1, 1.0), (0.0, -0.0), ("1", 1), (None, False), ([], {}), ([1], [1, 2]), ({}, {"a": 1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([[]], [[[]]]), ("a", "á"), ("\ud800", "\udfff"), (10**40, 10**40 + 1),
        ([1, 2], (1, 2)), ({"a": 1}, OddDict(a=1)), ("a", OddText("a")), (7, OddNumber(7)), ({"a": 1}, {OddText("a"): 1}), ({"a": {}}, {"a": dict}), ([[]], [list]),
    ],
)  # fmt: skip
def test_values_that_python_calls_equal_or_that_look_alike_are_told_apart(one: Any, other: Any) -> None:
    assert kernel is not None
    assert kernel.same(seen([one]), [copy.deepcopy(one)])
    assert not kernel.same(seen([one]), [other])


@compiled
def test_what_was_kept_is_a_copy_that_no_change_in_place_reaches() -> None:
    assert kernel is not None
    value: dict[str, Any] = {"a": [1, {"b": ["x"]}]}
    kept = seen(value)
    value["a"][1]["b"][0] = "y"
    assert not kernel.same(kept, value)
    value["a"][1]["b"][0] = "x"
    assert kernel.same(kept, value)
    del value["a"]
    assert not kernel.same(kept, value)
    gc.collect()
    assert kernel.same(kept, {"a": [1, {"b": ["x"]}]})


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.extend((value, value))
    return value


@compiled
@pytest.mark.parametrize(
    "value",
    [
        endless(), nested(250), nested(100_000), (1,), {1: 2}, OddDict(a=1), [OddText("a")], OddNumber(1), object(), b"x",
        {"a": {None: 1}}, [0] * 70_000, {OddText("a"): 1},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_not_plain_or_has_no_end_is_not_kept(value: Any) -> None:
    assert seen(value) is None
    assert kernel is not None
    assert not kernel.same(seen([1, [2]]), value)


@compiled
def test_an_encoder_that_refuses_is_heard_and_nothing_stays_behind() -> None:
    assert kernel is not None
    before = sys.getrefcount(text := "".join(("some", "text")))
    with pytest.raises(TypeError):
        kernel.keep([text, "\ud800"], orjson.dumps, 100)
    assert sys.getrefcount(text) == before


def is_plain(value: Any) -> bool:
    """Whether a value has nothing in it but the built-in types of JSON, and finite numbers."""
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(is_plain, value))
    return math.isfinite(value) if type(value) is float else value is None or type(value) in {str, int, bool}


@compiled
@thorough
@given(
    PLAIN
    | st.builds(
        lambda inner: {"a": [inner]},
        st.sampled_from(
            [OddText("a"), OddNumber(1), OddDict(), {1: 2}, (), b"", float("nan"), float("-inf"), {OddText("k"): 1}]
        ),
    )
)
def test_what_is_plain_and_finite_is_said_to_be(value: Any) -> None:
    assert kernel is not None
    assert kernel.plain(value) == is_plain(value)
    kept = kernel.keep(value, lambda given: b"", 1 << 16)
    assert (kept is not None and kept[2]) == is_plain(value)


@compiled
def test_a_value_without_end_is_not_plain() -> None:
    assert kernel is not None
    assert not kernel.plain(endless())
    assert not kernel.plain(nested(1_000))


ENCODED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.sampled_from('ab"\\é日_ '), max_size=3), inner, max_size=20)
    ),
    max_leaves=25,
)


@compiled
@thorough
@given(st.lists(ENCODED, max_size=5))
def test_an_encoded_list_comes_apart_into_its_items(values: list[Any]) -> None:
    assert kernel is not None
    assert kernel.items(orjson.dumps(values)) == [orjson.dumps(value) for value in values]


@compiled
@thorough
@given(ENCODED, st.binary(max_size=9))
@example({"b": 1, "a": {"d": [1, {"z": 0, "y": 1}], "c": 2}}, b"head")
@example({f"k{number * 7 % 40}": number for number in range(40)}, b"")
def test_encoded_values_are_put_into_the_order_of_their_keys(value: Any, head: bytes) -> None:
    assert kernel is not None
    found = kernel.canonical(head, orjson.dumps(value), 64)
    expected = canonical_json(value)
    if found is None:
        assert b"\\" in expected
    else:
        assert found == len(head).to_bytes(8, "big") + head + len(expected).to_bytes(8, "big") + expected


@compiled
def test_what_nests_too_deep_or_is_not_as_an_encoder_writes_it_is_left_to_the_reference() -> None:
    assert kernel is not None
    for levels in (1, 2, 64):
        for value in ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels):
            assert kernel.canonical(b"", value.encode(), levels) is not None
            assert kernel.canonical(b"", value.encode(), levels - 1) is None
    whole = orjson.dumps({"function": {"name": "n", "description": "d", "parameters": {"a": [{}, [1], "x"]}}})
    assert kernel.read_tool(whole, 5, 1_000, 1) is not None
    value = orjson.loads(whole)
    assert taken([value, 7], (5, 1_000, 1, 1)) == (True, [freeze_tool(value, toolset="t", origin="mcp"), b"7"])
    for bounds in ((4, 1_000, 1), (5, len(whole) - 1, 1), (5, 1_000, 0)):
        assert kernel.read_tool(whole, *bounds) is None
        assert taken([value, 7], (*bounds, 64)) == (True, [whole, b"7"])
    assert taken([value, 7], (5, 1_000, 1, 0)) == (True, [whole, b"7"])
    for cut in range(len(whole)):
        for broken in (whole[:cut], whole[:cut] + b"}" * 3, whole[:cut] + b" " + whole[cut:], whole + whole[:cut]):
            kernel.canonical(b"", broken, 64)
            kernel.read_tool(broken, *freezing._BOUNDS)
            for listed in (broken, b"[" + broken, b"[" + broken + b"]"):
                kernel.items(listed)
    for broken in (b"[1,2]3", b"{}"):
        assert kernel.items(broken) is None


TOLD = ("mcp", "openai_chat", "mcp", Traits(), freezing._traits_in, freezing._WRAPPER_CHARS)


def taken(values: list[Any], bounds: tuple[int, int, int, int] = freezing._TAKEN, most: int = 1 << 16) -> Any:
    """Whether all numbers are finite, and what became of the values; what is kept of them is that of `keep`."""
    assert kernel is not None
    found = kernel.take(values, orjson.dumps, most, bounds, ["t"] * len(values), Tool, freezing._FIELDS, TOLD)
    if found is None:
        return None
    assert kernel.same(found[0], values)
    return found[1:]


@compiled
@thorough
@given(st.lists(PLAIN | st.text() | st.floats() | st.integers(), max_size=5))
@example(["".join(map(chr, range(0x90))) * 2, {"\x00": '"\\\x7f', "a\x1fb": "é\n"}, 999, 1000, -1, 10**18, 1e16, -0.0])
@example([2**64])
@example(["x" * size + mark for size in range(20) for mark in ("", "\n", '"', "\\", "\x1f", "\x7f", "é")])
@example([("x" * 40)[:at] + mark + "x" * behind for at in range(40) for behind in (0, 3, 9, 40) for mark in '"\n\\'])
@example([{"x" * size + mark: "x" * size} for size in range(40) for mark in ("", '"')])
@example([])
def test_what_is_taken_is_written_as_the_encoder_writes_it(values: list[Any]) -> None:
    try:
        expected = [orjson.dumps(value) for value in values]
    except TypeError:
        with pytest.raises(TypeError):
            taken(values)
        return
    finite, found = taken(values)
    assert [tool.raw if isinstance(tool, Tool) else tool for tool in found] == expected
    assert finite == all(map(is_plain, values))


@compiled
@pytest.mark.parametrize(
    "value",
    [OddDict(), OddText("a"), (), {1: 2}, [{OddText("k"): 1}], endless(), nested(1_000)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_or_has_no_end_is_not_taken(value: Any) -> None:
    assert taken([{"name": "a", "inputSchema": {}}, value]) is None
    assert taken([1, 2, 3, 4], most=4) is None


@compiled
def test_taking_leaks_no_reference_and_holds_nothing_of_the_containers() -> None:
    words = ["".join(("word", str(number))) for number in range(4)]
    value = {"name": words[0], "description": words[1], "inputSchema": {words[2]: [words[3], 1.5, 10**9]}}
    before = [sys.getrefcount(word) for word in words]
    held = sys.getrefcount(value), sys.getrefcount(value["inputSchema"])
    for odd in (None, float("nan"), "\ud800", (), 2**64):
        for bounds in (freezing._TAKEN, (1, 1, 1, 1)):
            with suppress(TypeError):
                taken([value, {"annotations": {"readOnlyHint": True}, **value}, odd], bounds)
    assert (sys.getrefcount(value), sys.getrefcount(value["inputSchema"])) == held
    assert [sys.getrefcount(word) for word in words] == before


@compiled
def test_a_tool_that_was_taken_keeps_no_second_form_of_its_description() -> None:
    said = "né " * 50
    _, (tool,) = taken([{"name": "a", "description": said, "inputSchema": {}}])
    assert tool.description == said
    assert sys.getsizeof(tool.description) < sys.getsizeof(said)  # the given one was encoded, and remembers it


@compiled
def test_what_goes_wrong_while_tools_are_made_is_heard() -> None:
    assert kernel is not None

    def refuse(*given: object, **named: object) -> Any:
        raise LookupError("no")

    values = [{"name": "a", "inputSchema": {}, "annotations": {}}]
    rest = (values, orjson.dumps, 100, freezing._TAKEN, ["t"])
    for make, told in ((refuse, TOLD), (Tool, (*TOLD[:4], refuse, 0))):
        with pytest.raises(LookupError):
            kernel.take(*rest, make, freezing._FIELDS, told)
    for wrong in (rest[:2], (*rest[:4], []), (tuple(values), *rest[1:]), (*rest[:3], (1, 2), ["t"])):
        with pytest.raises(TypeError):
            kernel.take(*wrong, Tool, freezing._FIELDS, TOLD)
    with pytest.raises(TypeError):
        kernel.take(values, lambda given: 7, 100, freezing._TAKEN, ["t"], Tool, freezing._FIELDS, TOLD[:3])
    with pytest.raises(TypeError):
        kernel.take([1.5], lambda given: 7, 100, freezing._TAKEN, ["t"], Tool, freezing._FIELDS, TOLD)


@compiled
@thorough
@given(st.lists(st.binary(max_size=70), max_size=4), st.lists(st.binary(max_size=70), max_size=4))
@example([b"a" * 32], [b"a" * 32 + b"\0"])
@example([b"", b"a"], [b"a", b""])
def test_a_digest_tells_bytes_and_their_order_apart(one: list[bytes], other: list[bytes]) -> None:
    assert kernel is not None
    assert (kernel.digest(one, 7) == kernel.digest(other, 7)) == (one == other)
    assert not one or kernel.digest(one, 7) != kernel.digest(one, 8)


DEFINITIONS = st.fixed_dictionaries(
    {},
    optional={
            "name": st.sampled_from(["t", "né", "", "a\nb", 'q"', "x" * 70, "tool_call", "-get_x", "__", None, 7]),
            "description": st.sampled_from(["said", "né — x", "line\nline", "", None, 7]),
            "inputSchema": st.dictionaries(st.text(max_size=3), ENCODED, max_size=3) | st.none() | st.just([]),
            "parameters": st.just({"type": "object"}) | st.just(7),
            "input_schema": st.just({}),
            "annotations": st.sampled_from([{"readOnlyHint": True}, {"destructiveHint": 1}, None, []]),
            "function": st.none() | st.just([]) | st.fixed_dictionaries({"name": st.sampled_from(["f", "g\t"])}, optional={"description": st.sampled_from(["d", None]), "parameters": st.sampled_from([{"b": 1, "a": {"$ref": "#/b"}}, {"$ref": "x.json"}, None, []]), "annotations": st.just({"readOnlyHint": True})}),
            "$id": st.just("x"),
            "x": ENCODED | st.just(float("nan")),
    },
)  # fmt: skip


@compiled
@thorough
@given(DEFINITIONS, st.sampled_from([None, "mcp", "openai_chat", "anthropic"]))
@example({"name": "t", "inputSchema": nested(80)}, None)
def test_a_definition_is_frozen_to_the_same_tool_or_refused_for_the_same_reason(raw: Any, dialect: Any) -> None:
    def told() -> Any:
        try:
            tool = freeze_tool(raw, toolset="mcp-é", origin="mcp", prefix="p", dialect=dialect)
        except DefinitionError as error:
            return str(error)
        tool.fingerprint  # noqa: B018 - found out when it is asked for
        return [getattr(tool, name) for name in tool.__struct_fields__]

    with pytest.MonkeyPatch.context() as patch:
        for module in (freezing, definitions):
            patch.setattr(module, "kernel", None)
        expected = told()
    assert told() == expected


@compiled
@thorough
@given(st.lists(DEFINITIONS | ENCODED, max_size=4))
@example(
    [{"function": {"name": name, "parameters": {}}} for name in ("list_x", "Tool_Call", "x" * 64, "x" * 65, "a.b")]
)
@example([{"name": "a", "inputSchema": {"$ref": target, "p": "$ref"}} for target in ("#/a", "b.json", '$ref"')])
@example([{"name": "a", "description": "é" * size, "inputSchema": {}} for size in (65_536, 65_537)])
def test_many_definitions_are_frozen_to_the_same_tools_or_left_as_they_are(raws: list[Any]) -> None:
    def told(tool: Any) -> list[Any]:
        return [getattr(tool, name) for name in tool.__struct_fields__]

    found = freezing.freeze_plain(raws, ["mcp-t"] * len(raws), origin="mcp", most=1 << 16)
    assert found is not None
    _, finite, tools = found
    assert finite == all(map(is_plain, raws))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(freezing, "kernel", None)
        for raw, frozen in zip(raws, tools, strict=True):
            if isinstance(frozen, bytes):
                assert frozen == orjson.dumps(raw)
            else:
                assert finite
                assert told(frozen) == told(freeze_tool(raw, toolset="mcp-t", origin="mcp"))


@compiled
def test_keeping_and_comparing_leaks_no_reference() -> None:
    assert kernel is not None
    leaves = ["".join(("leaf", str(number))) for number in range(5)]
    value = {key: [key, {key: 12345.678}] for key in leaves}
    before = [sys.getrefcount(leaf) for leaf in leaves]
    kept = None
    for bound in (100, 7, 1):
        for _ in range(50):
            kept = kernel.keep(value, orjson.dumps, bound)
            if kept:
                kernel.same(kept[0], value)
                kernel.same(kept[0], {**value, leaves[4]: 1})
    del kept
    assert [sys.getrefcount(leaf) for leaf in leaves] == before


@compiled
def test_wrong_arguments_are_type_errors() -> None:
    assert kernel is not None
    for call in (
        lambda: kernel.same(None, 1),
        lambda: kernel.same(),
        lambda: kernel.keep([]),
        lambda: kernel.keep([], len, "x"),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


WORDS = st.text(st.sampled_from("aeiysgdnxzchtAB1"), min_size=1, max_size=9)
ENDINGS = st.sampled_from(["", "s", "es", "ies", "ing", "ings", "ed", "eds", "eed", "sses", "eing", "e", "y"])
FORMS = st.builds(lambda word, ending: word.lower() + ending, WORDS, ENDINGS)


@compiled
@thorough
@given(st.text(st.characters(max_codepoint=160)) | st.text(st.sampled_from("aBcDE19_ -é"), max_size=90))
@example("HTTPServer s3.getObject createIssue XMLHttpRequest2 A Ab AB1 " + "x" * 200 + "Y" * 70)
@example("\x00a\x1eb\x7f")
def test_a_text_has_the_same_terms(words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "kernel", None)
        expected = text.terms(words)
    assert text.terms(words) == expected
    assert text.terms(OddText(words)) == expected


def numbered(words: Any) -> Any:
    """The kernel's vocabulary of these words."""
    assert kernel is not None
    vocabulary = kernel.vocabulary(7)
    for word in words:
        vocabulary.setdefault(word, len(vocabulary))
    return vocabulary


TERMS = st.text(st.sampled_from("abé日z1\0\ud800"), max_size=20)


@compiled
@thorough
@given(st.lists(TERMS, max_size=40), st.lists(TERMS, max_size=8))
@example([f"{'x' * (number % 30)}{number}" for number in range(5_000)], ["x1", "x31"])
def test_a_vocabulary_is_as_much_of_a_dictionary_as_is_used_of_one(known: list[str], asked: list[str]) -> None:
    reference: dict[str, int] = {}
    vocabulary = numbered(())
    for word in known:
        if word.isascii() or "\ud800" not in word:
            assert vocabulary.setdefault(word, len(vocabulary)) == reference.setdefault(word, len(reference))
        else:
            with pytest.raises(UnicodeEncodeError):
                vocabulary.setdefault(word, len(vocabulary))
    assert len(vocabulary) == len(reference)
    assert list(vocabulary) == list(reference)
    assert list(reversed(vocabulary)) == list(reversed(reference))
    for word in (*known, *asked, 7):
        assert vocabulary.get(word) == reference.get(word)
        assert (word in vocabulary) == (word in reference)
        if word in reference:
            assert vocabulary[word] == reference[word]
        else:
            with pytest.raises(KeyError):
                vocabulary[word]


@compiled
def test_a_number_that_is_not_the_next_one_is_refused() -> None:
    vocabulary = numbered(["a"])
    assert vocabulary.setdefault("a", 5) == 0
    for wrong in (("b", 0), ("b", 2), ("b", -1), ("b",), (7, 1), ("b", "1")):
        with pytest.raises((TypeError, ValueError)):
            vocabulary.setdefault(*wrong)
    assert list(vocabulary) == ["a"]


@compiled
@thorough
@given(st.lists(FORMS, max_size=12, unique=True), st.lists(FORMS | st.just("née"), min_size=1, max_size=6))
def test_families_and_words_put_together_are_the_same(known: list[str], asked: list[str]) -> None:
    def told(vocabulary: Any) -> Any:
        held = families.Families(vocabulary)
        keys = [text.family(word) for word in (*known, *asked)]
        return [held.numbers(key) for key in keys], [held.possible(asked) for _ in range(3)], [*map(held.lack, keys)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "kernel", None)
        expected = told({word: number for number, word in enumerate(known)})
    assert told(numbered(known)) == expected


WEIGHTS = st.floats(0.001, 20.0)


@st.composite
def segments(draw: Any) -> Any:
    rows, terms = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    held = [sorted(draw(st.sets(st.integers(0, rows - 1), max_size=rows))) for _ in range(terms)]
    codes = [draw(st.integers(0, 255)) for each in held for _ in each]
    return postings.Segment(
        rows=rows,
        starts=np.cumsum([0, *map(len, held)], dtype=np.int32),
        documents=np.array([row for each in held for row in each], dtype=np.int32),
        codes=np.array(codes, dtype=np.uint8),
        names=np.zeros((3, rows), dtype=np.uint32),
    )


WEIGHTED = st.lists(st.tuples(st.integers(0, 7), WEIGHTS), max_size=5)


@compiled
@thorough
@given(segments(), WEIGHTED, st.lists(st.tuples(WEIGHTED.map(tuple).filter(bool), WEIGHTED.map(tuple)), max_size=3))
def test_sums_are_the_same_bits(segment: Any, weighted: list[Any], bests: list[Any]) -> None:
    impacts = default_weights().impact_table()

    def sums() -> Any:
        whole = reading.SegmentReader(segment, impacts)
        total = np.zeros(segment.rows, dtype=np.float32)
        for _ in range(2):
            whole.add(total, weighted)
            for near, counted in bests:
                whole.add_best(total, near, counted)
        return total.tobytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "kernel", None)
        expected = sums()
    assert sums() == expected


@compiled
@thorough
@given(
    segments(),
    WEIGHTED,
    st.lists(st.tuples(WEIGHTED.map(tuple).filter(bool), WEIGHTED.map(tuple)), max_size=3),
    st.integers(1, 45),
)
def test_the_leading_rows_are_the_best_of_all_sums(segment: Any, weighted: Any, bests: Any, limit: int) -> None:
    whole = reading.SegmentReader(segment, default_weights().impact_table())
    total = np.zeros(segment.rows, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "kernel", None)
        whole.add(total, weighted)
        for near, counted in bests:
            whole.add_best(total, near, counted)
    leading = whole.leading(weighted, bests)
    assert leading is not None
    for _ in range(2):
        assert leading(limit) == selection._best(total, limit)


@compiled
@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="knows the state of this processor alone",
)
def test_rows_without_a_score_are_none_of_the_best_even_where_tiny_numbers_count_as_zero() -> None:
    assert kernel is not None
    library = ctypes.CDLL("libm.so.6")
    usual, flushed = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    library.fegetenv(usual)
    library.fegetenv(flushed)
    mode = int.from_bytes(flushed.raw[28:32], "little") | 0x8040  # what libraries switch on that were built for speed
    flushed[28:32] = mode.to_bytes(4, "little")
    scores = np.array([0.0, 1.0, 0.0], dtype=np.float32)
    library.fesetenv(flushed)
    try:
        found = kernel.best(scores, 2)
    finally:
        library.fesetenv(usual)
    assert found == ([1], [1.0])


@compiled
def test_leading_rows_are_the_same_if_the_collector_has_somebody_else_ask_meanwhile() -> None:
    assert kernel is not None
    rows = 100
    segment = postings.build_segment(
        forward.Stretch(
            sizes=np.ones(rows, dtype=np.int64),
            terms=np.arange(rows, dtype=np.int32) % 2,
            codes=np.full(rows, 200, dtype=np.uint8),
            names=np.zeros((rows, 3), dtype=np.uint32),
        )
    )
    held = kernel.postings(rows, segment.starts, segment.documents, segment.codes, default_weights().impact_table())
    expected = kernel.leading(held, [(0, 1.0)], [], 5)

    def ask(phase: str, _: object) -> None:
        if phase == "start":
            kernel.leading(held, [(1, 1.0)], [], 5)

    before = gc.get_threshold()
    gc.callbacks.append(ask)
    gc.set_threshold(1)
    try:
        # Kept, so that lists are made anew, which is when the collector runs.
        found = [kernel.leading(held, [(0, 1.0)], [], 5) for _ in range(500)]
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(ask)
    assert [each for each in found if each != expected] == []


@compiled
def test_leading_rows_of_what_is_no_question_are_refused() -> None:
    assert kernel is not None
    segment = postings.build_segment(
        forward.Stretch(
            sizes=np.array([1]),
            terms=np.zeros(1, dtype=np.int32),
            codes=np.zeros(1, dtype=np.uint8),
            names=np.zeros((1, 3), dtype=np.uint32),
        )
    )
    held = kernel.postings(1, segment.starts, segment.documents, segment.codes, default_weights().impact_table())
    assert kernel.leading(held, [(0, 1.0)], [], 5) == ([], [])
    wrong: list[tuple[Any, ...]] = [(held, (), [], 1), (held, [], (), 1), (held, [3], [], 1), (held, [], ["x"], 1)]
    for arguments in wrong:
        with pytest.raises(TypeError):
            kernel.leading(*arguments)
    with pytest.raises(ValueError, match="limit"):
        kernel.leading(held, [], [], 0)


SLIPPED = st.text("abcé", min_size=1, max_size=8) | st.sampled_from(["calendar", "calender", "aaaaaa", "x" * 300])


@compiled
@thorough
@given(st.lists(SLIPPED, max_size=40), st.lists(SLIPPED, min_size=1, max_size=40), st.booleans())
def test_words_one_slip_away_are_the_same(known: list[str], asked: list[str], sifted: bool) -> None:
    assert kernel is not None
    vocabulary = kernel.vocabulary(7)
    for number, word in enumerate(dict.fromkeys(known)):
        vocabulary.setdefault(word, number)
    assert kernel.respelt("calender", vocabulary, None) == {"calendar"} & set(known)

    def near() -> list[set[str]]:
        knowing = spelling.Spelling(vocabulary)
        if sifted:
            knowing._marks.current(10_000)
        return [knowing.near(word) for word in asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spelling, "kernel", None)
        expected = near()
    assert near() == expected


SCORES = st.floats(-2.0, 20.0, width=32) | st.sampled_from([0.0, -0.0, 1.0, 1e-45, 2.5])


@compiled
@thorough
@given(st.lists(SCORES, max_size=200), st.integers(1, 9), st.integers(1, 30))
def test_the_best_scores_are_the_same_in_the_same_order(scores: list[float], repeat: int, limit: int) -> None:
    assert kernel is not None
    array = np.array(scores * repeat, dtype=np.float32)
    assert kernel.best(array, limit) == selection._best(array, limit)


@compiled
def test_the_best_of_many_rows_are_the_same_whatever_the_limit() -> None:
    assert kernel is not None
    scores = np.random.default_rng(5).choice([0.0, 0.25, 0.5, 3.0, 7.5], 5_000, p=[0.9, 0.05, 0.04, 0.0095, 0.0005])
    array = scores.astype(np.float32)
    for limit in (1, 5, 40, 500, 4_999, 6_000):
        assert kernel.best(array, limit) == selection._best(array, limit)


def closed(*numbers: int) -> Any:
    """An array that nobody can write to."""
    array = np.array(numbers, np.int32)
    array.setflags(write=False)
    return array


@compiled
def test_arrays_that_do_not_belong_together_are_refused() -> None:
    assert kernel is not None
    starts, rows, codes = closed(0, 1), closed(0), np.array([7], np.uint8)
    impacts = np.zeros(256, np.float32)
    wide = starts.astype(np.int64)
    wide.setflags(write=False)
    good = kernel.postings(1, starts, rows, codes, impacts)
    for wrong in (
        (1, starts, closed(1), codes, impacts),
        (1, starts, closed(-1), codes, impacts),
        (1, closed(0, 2), rows, codes, impacts),
        (1, closed(1, 0), rows, codes, impacts),
        (1, starts, rows, codes, impacts[:9]),
        (1, wide, rows, codes, impacts),
        (-1, starts, rows, codes, impacts),
        (1 << 31, starts, rows, codes, impacts),
        (1 << 62, starts, rows, codes, impacts),
        (1, starts.copy(), rows, codes, impacts),
        (1, starts, rows.copy(), codes, impacts),
        (1, [0], rows, codes, impacts),
    ):
        with pytest.raises((ValueError, TypeError, BufferError)):
            kernel.postings(*wrong)
    for total in (np.zeros(2, np.float32), np.zeros(1), np.zeros(4, np.float32)[::2], b"1234"):
        with pytest.raises((ValueError, TypeError, BufferError)):
            kernel.add(good, total, [])
    for weighted in ([1], [(1,)], [("a", 1.0)], [(0, None)], ((0, 1.0),)):
        with pytest.raises(TypeError):
            kernel.add(good, np.zeros(1, np.float32), weighted)


@compiled
@thorough
@given(FORMS | st.text(max_size=8), st.lists(FORMS, max_size=8, unique=True))
def test_a_word_is_of_the_same_family_and_comes_apart_at_the_same_places(word: str, known: list[str]) -> None:
    def told() -> Any:
        held = families.Families({each: number for number, each in enumerate(known)})
        places = tuple(range(len(word) + 1))
        return text.family(word), [list(held.halves(word, places)) for _ in range(3)]

    with pytest.MonkeyPatch.context() as patch:
        for module in (text, families):
            patch.setattr(module, "kernel", None)
        expected = told()
    found = told()
    assert found[0] == expected[0]
    # Marks only spare work: what they let through may differ while they are made, and is the same once they are.
    assert found[1][-1] == expected[1][-1]


@compiled
@thorough
@given(st.text(st.characters(max_codepoint=200)) | st.text(st.sampled_from("aB-_ 1."), max_size=12))
def test_a_name_has_the_same_hash(name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "kernel", None)
        expected = analysis.name_hash(name)
    assert analysis.name_hash(name) == expected


RUNS = st.text(st.sampled_from("abcXYZ019 -_.\x1eé日"), max_size=60)


def described(*words: str) -> PlainDocument:
    """A document of some texts, the last of them aliases."""
    texts = (*words, *[""] * 6)
    return PlainDocument(
        key="k",
        digest="d",
        leaf=texts[0],
        toolset=texts[1],
        description=texts[2],
        parameters=(texts[3],),
        nested=texts[4],
        aliases=(texts[5],),
    )


def analysed(batches: list[list[Any]], weights: Any = None) -> Any:
    """All that comes of analysing documents, the terms of each in order, and the vocabulary in its order."""
    analyser = analysis.Analyser(weights or default_weights())
    told: list[Any] = []
    for batch in batches:
        held = analyser.analyse(batch)
        ends = np.cumsum(held.sizes).tolist()
        pairs = list(zip(held.terms.tolist(), held.codes.tolist(), strict=True))
        told.append([sorted(pairs[end - size : end]) for end, size in zip(ends, held.sizes.tolist(), strict=True)])
        told.append([(part.dtype, part.tobytes()) for part in (held.sizes, held.names)])
        told.append([part.dtype for part in (held.terms, held.codes)])
    return told, list(analyser.vocabulary)


def analysed_by_the_reference(batches: list[list[Any]], weights: Any = None) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for module in (analysis, documents, numbering, text):
            patch.setattr(module, "kernel", None)
        return analysed(batches, weights)


@compiled
@thorough
@given(st.lists(st.lists(st.tuples(RUNS, RUNS).map(lambda pair: described(*pair)), max_size=4), max_size=4))
def test_many_texts_get_the_same_numbers_in_the_same_order(batches: list[list[PlainDocument]]) -> None:
    twice = [*batches, *batches]
    assert analysed(twice) == analysed_by_the_reference(twice)


@compiled
def test_runs_without_end_and_many_of_them_get_the_numbers_that_they_would_get() -> None:
    letters = "".join(chr(ord("a") + number % 26) for number in range(5_000))
    many = " ".join(f"{letters[at : at + at % 9 + 1]}{at % 7 or ''}" for at in range(4_000))
    batches = [[described(many, letters, "Z" * 3_000, f"é {many}", f"\u2014 {many}", f"{many} né")]] * 2
    assert analysed(batches) == analysed_by_the_reference(batches)


SHAPE = np.array([1.0, 3.0, 0.3] * 6 + [0.6, 1.2, 200.0])
"""Weights of six fields, and the shape of what they come to."""


def place_of(run: bytes) -> int:
    """Where a run of at most eight letters goes in a small memo whose seed is 0."""
    wide = (1 << 64) - 1
    mixed = ((len(run) * 0x9E3779B97F4A7C15 & wide) ^ int.from_bytes(run, "little")) * 0xD6E8FEB86659FD93 & wide
    mixed ^= mixed >> 32
    mixed ^= mixed >> 29
    return ((mixed ^ mixed >> 32) >> 1) & 1023


@compiled
@pytest.mark.skipif(sys.byteorder != "little", reason="the places are those of little-endian machines")
def test_runs_that_somebody_made_collide_stay_with_python_and_get_their_codes() -> None:
    assert kernel is not None
    colliding = [run for number in range(60_000) if place_of(run := b"w%d" % number) == 500]
    assert len(colliding) > 40
    asked, vocabulary = list[str](), kernel.vocabulary(0)
    memo = kernel.runs(vocabulary)

    def odd(run: str) -> list[tuple[int, ...]]:
        asked.append(run)
        return [(vocabulary.setdefault(run, len(vocabulary)),)]

    given = [("", b" ".join(colliding).decode(), "", "", ((), ""), ())]
    for _ in range(2):
        found = kernel.analyse(memo, odd, documents.read_inside, given, SHAPE, (64, 4_000, 2_000, 6, 20))
        assert np.frombuffer(found[1], dtype=np.int32).tolist() == list(range(len(vocabulary)))
    assert asked == [run.decode() for run in colliding[32:]] * 2
    assert kernel.run_count(memo) == 32


@compiled
@pytest.mark.parametrize("seed", [0, 7, -1, 1 << 70])
def test_a_memo_gives_the_numbers_of_its_own_vocabulary_whatever_the_seed(seed: int) -> None:
    assert kernel is not None
    vocabulary = kernel.vocabulary(seed)
    for word in ("issue", "create", "somewhatlonger"):
        vocabulary.setdefault(word, len(vocabulary))
    memo, given = kernel.runs(vocabulary), [("", "createIssue issue somewhatlonger other2 other", "", "", ((), ""), ())]
    found = [kernel.analyse(memo, len, len, given, SHAPE, (64, 400, 2_000, 6, 20)) for _ in range(2)]
    terms = np.frombuffer(found[0][1], dtype=np.int32).tolist()
    assert found[0] == found[1]
    held = list(vocabulary)
    assert sorted(held[number] for number in terms) == sorted(held)
    assert [vocabulary.get(term) for term in held] == list(range(len(held)))
    assert held[:3] == ["issue", "create", "somewhatlonger"] and "other" in held


@compiled
def test_a_memo_keeps_its_vocabulary_alive() -> None:
    assert kernel is not None
    memo = kernel.runs(numbered(["a"]))
    gc.collect()
    _, terms, _ = kernel.analyse(memo, len, len, [("", "a b", "", "", ((), ""), ())], SHAPE, (64, 400, 2_000, 6, 20))
    assert np.frombuffer(terms, dtype=np.int32).tolist() == [0, 1]


KEYWORDS = st.sampled_from(
    [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "oneOf",
        "allOf",
        "title",
        "default",
        "x",
        "const",
        "format",
    ]
)
SCHEMAS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.sampled_from(["string", "integer", "object", "a b", "né", 'q"t', "\\", "null"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYWORDS, inner, max_size=5)
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["string", "number", "array"])}, optional={"description": inner}
        )
    ),
    max_leaves=25,
)
PARAMETERS = st.dictionaries(st.sampled_from(["a", "b_c", "né", "id", 'q"', "a" * 300, "b" * 290]), SCHEMAS, max_size=5)
SIGNED: Any = signature.KNOWN_WORDS
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": PARAMETERS | SCHEMAS,
        "required": SCHEMAS | st.lists(st.sampled_from(["a", "b_c", "id"])),
        "additionalProperties": st.booleans(),
        "$defs": SCHEMAS,
    },
)


@compiled
@thorough
@given(OBJECTS | SCHEMAS)
def test_a_schema_has_the_same_words(schema: Any) -> None:
    assert documents.read_inside(orjson.dumps(schema)) == documents.inside_of(schema)


def nest(keywords: tuple[str, ...]) -> Any:
    schema: Any = {"description": "innermost", "enum": ["z"]}
    for keyword in keywords:
        inner = {"properties": {"p": schema}, "items": schema}.get(keyword, [schema, True])
        schema = {keyword: inner, "description": f"around {keyword}"}
    return {"properties": {"r": schema}}


@compiled
@thorough
@given(st.lists(st.sampled_from(["properties", "items", "anyOf", "oneOf", "allOf"]), min_size=3, max_size=9).map(tuple))
def test_a_schema_has_the_same_words_however_deep_it_is(keywords: tuple[str, ...]) -> None:
    schema = nest(keywords)
    assert documents.read_inside(orjson.dumps(schema)) == documents.inside_of(schema)


@compiled
@thorough
@given(OBJECTS)
@example({"properties": {"a": {"type": "string"}}, "required": ["a"]})
def test_json_with_blanks_in_it_is_left_to_the_reference(schema: Any) -> None:
    assert kernel is not None
    for blanks in ({}, {"indent": 1}, {"indent": "\t"}):
        encoded = json.dumps(schema, ensure_ascii=False, **blanks).encode()
        assert documents.read_inside(encoded) == documents.inside_of(schema)
        if b" " in encoded or b"\n" in encoded:
            assert kernel.signature("t", encoded, SIGNED, 600) is None


@compiled
def test_parameters_that_are_required_time_and_again_are_left_to_the_reference() -> None:
    assert kernel is not None
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "null"}}, "required": ["b", "a"]}
    assert kernel.signature("t", orjson.dumps(schema), SIGNED, 600) == ("t(a: str, b: null)", True)
    again = {**schema, "required": ["b", "b", "a"]}
    assert kernel.signature("t", orjson.dumps(again), SIGNED, 600) is None
    tool = freeze_tool({"name": "t", "inputSchema": again}, toolset="t", origin="mcp")
    assert signature.build_signature(tool) == signature.Signature("t(a: str, b: null)", exact=True)


@compiled
@thorough
@given(OBJECTS)
@example({"properties": {"a": {"type": "string"}, "id": {"type": "integer", "title": "I"}}, "required": ["id"]})
@example({"properties": {"a" * 292: {"type": "string"}, "b" * 292: {"type": "string"}}})
@example({"properties": {"a" * 291: {"type": "string"}, "b" * 293: {"type": "string"}}})
@example({"properties": {"a" * 291: {"type": "string"}, "b" * 292: {"type": "string"}}})
@example({"properties": {"a" * 291: {"type": "string"}, "b" * 291: {"type": "string"}}})
def test_a_tool_has_the_same_signature(schema: Any) -> None:
    tool = freeze_tool({"name": "t", "inputSchema": schema}, toolset="t", origin="mcp")
    assert signature.build_signature(tool) == signature.write_signature(tool.leaf, tool.parameters)


TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array", "", "any", 'q"', "né"])
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.sampled_from([0, -0.0, 1.5, 1e300, "a", 'b"', "né", "x" * 57, "x" * 58, "x" * 59, "é" * 40, [1], {"k": 1}])
)
FIELDS = st.sampled_from(["a", "b_c", "id", "né", 'q"', "long_name_of_a_parameter_that_takes_much_room" * 3])
TYPED = st.recursive(
    st.fixed_dictionaries({"type": TYPES}) | st.just({}) | st.booleans() | st.none(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=3) | st.none(),
            "enum": st.lists(VALUES, max_size=10) | st.just("a"),
            "const": VALUES,
            "anyOf": st.lists(inner, max_size=4) | st.just({}),
            "oneOf": st.lists(inner, max_size=3),
            "items": inner,
            "properties": st.dictionaries(FIELDS, inner, max_size=9) | st.just([]),
            "required": st.lists(FIELDS | st.just(1), max_size=4) | st.just("a"),
            "additionalProperties": st.booleans() | st.just({}),
            "description": st.just('one "two", three'),
            "default": VALUES,
            "minimum": st.just(1),
            "$ref": st.just("#/$defs/a"),
        },
    ),
    max_leaves=12,
)
TAKEN = st.fixed_dictionaries(
    {"properties": st.dictionaries(FIELDS, TYPED, max_size=9)},
    optional={"required": st.lists(FIELDS, max_size=4), "type": st.just("object"), "$defs": st.just({}), "x": VALUES},
)


@compiled
@thorough
@given(TAKEN)
@example({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}}})
@example({"properties": {"a": {"enum": list(range(9))}, "b": {"type": "array", "items": {"enum": ["x", True, None]}}}})
@example({"properties": {f"p{number}": {"type": "string"} for number in range(64)}})
@example({"properties": {f"parameter_{number}": {"type": "string", "minimum": 1} for number in range(40)}})
def test_a_tool_has_the_same_signature_whatever_its_parameters_are(schema: Any) -> None:
    tool = freeze_tool({"name": "t", "inputSchema": schema}, toolset="t", origin="mcp")
    assert signature.build_signature(tool) == signature.write_signature(tool.leaf, tool.parameters)


PROSE = st.lists(
    st.sampled_from(["One", "two, ", "e.g.", "I.E. ", "etc. ", "approx.", "cf! ", ".", "!", "? ", "\n", "  ", "\t", "\x1c", "\xa0", "\u2003", "v1.2", ":;,", '"', "\\", "\x07", "é", "—", "😀", "word " * 30, "x" * 170, "." * 200])
    | st.text(max_size=6),
    max_size=12,
).map("".join)  # fmt: skip


@compiled
@thorough
@given(
    st.sampled_from(["t", "create_issue", "Create-Issue.v2", "né", "__", "a" * 300]),
    PROSE,
    TAKEN | st.just({}),
    st.sampled_from(["mcp-door", 'a"b', "né", "\x01"]),
)
def test_a_card_is_the_same_with_the_kernel_and_without(leaf: str, prose: str, schema: Any, toolset: str) -> None:
    tool = Tool(
        name=ToolName(f"p__{leaf}"),
        toolset=ToolsetName(toolset),
        origin="mcp",
        leaf=leaf,
        description=prose,
        schema=orjson.dumps(schema),
        raw=b"{}",
        dialect="mcp",
        traits=Traits(),
        aliases=(),
        chars=2,
    )
    made = cards.make_card(tool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "kernel", None)
        patch.setattr(signature, "kernel", None)
        reference = cards.make_card(tool)
    assert (made, list(made.entry), made.schema_chars) == (reference, list(reference.entry), reference.schema_chars)


@compiled
@pytest.mark.parametrize("broken", [b"", b"{", b'{"', b'{"a', b'{"a"', b'{"a":', b'{"properties":{"a":{"type":"stri', b"[", b"[[[",
    b'{"properties":{"a":{"description":"x\\', b'{"properties":{"a":{"enum":["x",', b'{"a":}', b'{,}', b"nul", b"}", b'{"a":1}}', b'"x"'])  # fmt: skip
def test_bytes_that_are_no_json_are_left_to_the_reference(broken: bytes) -> None:
    assert kernel is not None
    for cut in range(len(broken) + 1):
        for part in (broken[:cut], b'{"properties":' + broken[:cut], broken[:cut] + b"}" * 3):
            kernel.inside(part, 6, 20)
            kernel.signature("t", part, SIGNED, 600)
            kernel.card("n", "s", "t", "One. Two.", part, SIGNED, 600, 160)


SAID = st.lists(
    st.sampled_from(["never", "tell", "the user", "from", "keep it", "quietly", "NOT", "additionalProperties", "read_file_of_a_user_or", "aGVsbG8gd29ybGQgdGhpcyBpcw==", "deadbeefdeadbeefdeadbeef", "%41%42%43", "&#65;" * 6, "\n", "\t", "\b", "\\x41" * 8, "\u200b", "é", "\x7f", '"', "A" * 30, "listAllOpenIssuesOfUser", "not_here"])
    | st.text(max_size=5),
    max_size=8,
).map(" ".join)  # fmt: skip


@compiled
@pytest.mark.parametrize(
    "what",
    [
        "never",
        "NOT",
        "aGVsbG8gd29ybGQgdGhpcyBpcw",
        "deadbeefdeadbeefdead",
        "listAllOpenIssuesOfUser",
        "additionalProperties",
        "é",
        "%",
        "it\\n not",
        "x\\tdeadbeefdeadbeefdead",
        "\x7f",
    ],
)
def test_wherever_something_stands_in_a_definition_the_same_is_said_of_it(what: str) -> None:  # fmt: skip
    for before in range(140):
        for raw in (
            f"{'.' * before} {what} ",
            f"{'.' * before} {what}",
            f"{'x' * before} {what}/",
            f'{"." * before}"{what}"',
        ):
            encoded = raw.encode()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(glance, "kernel", None)
                plain = glance.without_escapes(encoded)
                suspected = bool(
                    glance.odd_characters(encoded)
                    or glance.has_controls(encoded)
                    or not glance._DECISIVE.isdisjoint(plain.translate(glance._WORDS).split())
                    or any(True for _ in glance._long_runs(plain))
                    or b"%" in encoded
                )
            assert glance.suspects([b"{}", encoded]) == [1] * suspected, raw


@compiled
@thorough
@given(SAID, SAID)
def test_screening_finds_the_same(description: str, name: str) -> None:
    raw = {
        "name": "t",
        "description": description,
        "inputSchema": {"properties": {name: {}}, "additionalProperties": False},
    }
    try:
        tool = freeze_tool(raw, toolset="mcp-t", origin="mcp")
    except DefinitionError:
        return
    toolset = build_toolset("mcp-t", [tool], origin="mcp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glance, "kernel", None)
        expected = screening.find_hard(toolset)
    assert screening.find_hard(toolset) == expected
    # What one look rules out, the closer look does not find either.
    assert glance.suspects([tool.raw]) or not screening._may_be_hard(tool)


@compiled
@thorough
@given(st.text("aB_ 9-é", max_size=9), st.text("aB_ 9-", max_size=9), st.booleans())
def test_the_names_of_a_document_have_the_same_hashes_also_where_two_of_them_are_one(
    leaf: str, toolset: str, prefixed: bool
) -> None:
    assert kernel is not None
    key = f"{toolset}__{leaf}" if prefixed else leaf
    given = PlainDocument(
        key=key, digest="d", leaf=leaf, toolset=toolset, description="", parameters=(), nested="", aliases=()
    )
    found = kernel.name_hashes([given.described])
    expected = analysis._name_hashes([given]).tobytes()
    assert found == (expected if leaf.isascii() else None)


@compiled
@thorough
@given(st.lists(st.integers(300, 303), max_size=6), st.lists(st.integers(300, 303), max_size=6))
def test_two_tuples_have_the_same_ends_in_common(one: list[int], other: list[int]) -> None:
    things = {number: object() for number in range(300, 304)}
    first, second = tuple(things[number] for number in one), tuple(things[number] for number in other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alongside, "kernel", None)
        expected = alongside.common_ends(first, second)
    assert alongside.common_ends(first, second) == expected


@st.composite
def texts(draw: Any) -> PlainDocument:
    words = st.lists(st.sampled_from(["list", "Issues", "readFile", "of", "the", "s3", "né"]), max_size=9).map(" ".join)
    leaf, toolset, description, nested = (draw(words) for _ in range(4))
    parameters, aliases = (tuple(draw(st.lists(words, max_size=3))) for _ in range(2))
    return PlainDocument(
        key="k",
        digest="d",
        leaf=leaf,
        toolset=toolset,
        description=description * draw(st.integers(1, 90)),
        parameters=parameters,
        nested=nested,
        aliases=aliases,
    )


@compiled
@thorough
@given(st.lists(texts(), max_size=5))
def test_documents_have_the_same_terms_with_the_same_impacts(batch: list[PlainDocument]) -> None:
    assert analysed([batch]) == analysed_by_the_reference([batch])


@compiled
@thorough
@given(st.lists(OBJECTS | SCHEMAS, max_size=3), st.sampled_from(["né", "a — b", "it", "日本", "\u2019s"]))
def test_tools_have_the_same_terms_as_the_words_of_their_schemas(schemas: list[Any], said: str) -> None:
    tools = [
        freeze_tool({"name": f"t{number}", "description": said, "inputSchema": schema}, toolset="mcp-é", origin="mcp")
        for number, schema in enumerate(schemas)
        if isinstance(schema, dict)
    ]
    batch = list(documents.documents_of(build_toolset("mcp-é", tools, origin="mcp"), {"t0": (said, "it")}))
    assert analysed([batch]) == analysed_by_the_reference([batch])


@compiled
@pytest.mark.parametrize("size", [10, 1_993, 1_994, 1_995, 1_998, 1_999, 2_000, 2_001, 5_000])
@pytest.mark.parametrize("letter", ["x", "é", "—", "\n", '"', "\x01"])
def test_the_words_inside_a_schema_end_at_the_same_character(size: int, letter: str) -> None:
    said = ((letter + "y") * size)[:size]
    schema = {"properties": {"one": {"description": said}, "two": {"description": "after it"}, "q": {"enum": ["x"]}}}
    tool = freeze_tool({"name": "t", "inputSchema": schema}, toolset="mcp-t", origin="mcp")
    batch = list(documents.documents_of(build_toolset("mcp-t", [tool], origin="mcp")))
    assert analysed([batch]) == analysed_by_the_reference([batch])


@compiled
@pytest.mark.parametrize(
    "worth", [(1.0, 1e16, -1e16, 0.5, 0.5, 0.5), (1e16, 1.0, 1.0, -1e16, 3.0, 0.5), (1.0, 1e16, 1.0, -1e16, 1.0, 9.0)]
)
def test_what_a_term_is_worth_in_many_fields_is_added_in_the_same_order(worth: tuple[float, ...]) -> None:
    # Numbers of which the order decides the sum: with those of real fields it decides the last bit.
    fields = {
        name: analysis.Field(weight=weight, pivot=1.0, length_share=0.0)
        for name, weight in zip(analysis.FIELDS, worth, strict=True)
    }
    batch = [described(*["it"] * size) for size in range(7)]
    weights = analysis.FieldWeights(fields=fields)
    assert analysed([batch], weights) == analysed_by_the_reference([batch], weights)


@compiled
def test_documents_that_are_none_are_refused_and_so_are_numbers_that_no_term_has() -> None:
    assert kernel is not None
    bounds, good = (64, 400, 2_000, 6, 20), ("k", "leaf", "toolset", "said", ((), ""), ("also",))
    for document in (
        "k", ("k",), [*good], (*good, ""), ("k", b"leaf", *good[2:]), (*good[:4], "", ()), (*good[:4], ((),), ()),
        (*good[:4], ("", ""), ()), (*good[:4], ((), b""), ()), (*good[:4], ((7,), ""), ()), (*good[:5], "also"), (*good[:5], (None,)),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            kernel.analyse(kernel.runs(numbered(())), len, len, [document], SHAPE, bounds)
    odd, bad = ("k", "né", "", "", ((), ""), ()), ("k", "", "", "", b"[]", ())
    for numbers in ([(1,)], [(-1,)], [("a",)], [[0]], (), None, [(1 << 70,)]):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            kernel.analyse(kernel.runs(numbered(["a"])), lambda text, told=numbers: told, len, [odd], SHAPE, bounds)
    for inside in (None, 7, (), ((), 7)):
        with pytest.raises(TypeError):
            kernel.analyse(kernel.runs(numbered(())), len, lambda schema, told=inside: told, [bad], SHAPE, bounds)
    for shape in (SHAPE[:9], SHAPE.astype(np.float32), shifted(SHAPE), [1.0]):
        with pytest.raises((TypeError, ValueError)):
            kernel.analyse(kernel.runs(numbered(())), len, len, [good], shape, bounds)
    for wrong in ((0, *bounds[1:]), (1_000, *bounds[1:]), (64, 400), (64, -1, 9, 6, 20), (64, 400, 9, 1 << 40, 20)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            kernel.analyse(kernel.runs(numbered(())), len, len, [good], SHAPE, wrong)
    with pytest.raises(ValueError):
        kernel.analyse({"leaf": 0}, len, len, [good], SHAPE, bounds)
    for none in ({"leaf": 0}, 1, None):
        with pytest.raises(TypeError, match="runs takes a vocabulary"):
            kernel.runs(none)


@compiled
@thorough
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 255)), max_size=5, unique_by=lambda pair: pair[0]),
        max_size=6,
    ),
    st.randoms(),
)
def test_documents_have_the_same_postings_whatever_rows_they_are(held: list[Any], rng: Any) -> None:
    rows = list(range(len(held)))
    rng.shuffle(rows)
    pairs = [pair for document in held for pair in document]
    stretch = forward.Stretch(
        sizes=np.array([len(document) for document in held], np.int64),
        terms=np.array([term for term, _ in pairs], np.int32),
        codes=np.array([code for _, code in pairs], np.uint8),
        names=np.arange(3 * len(held), dtype=np.uint32).reshape(-1, 3),
    )
    for places in (None, np.array(rows, np.int64)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(postings, "kernel", None)
            expected = postings.build_segment(stretch, places)
        found = postings.build_segment(stretch, places)
        for name in ("starts", "documents", "codes", "names"):
            one, other = getattr(found, name), getattr(expected, name)
            assert (one.dtype, one.tolist(), one.flags.writeable) == (other.dtype, other.tolist(), False)


@compiled
def test_documents_whose_terms_are_not_theirs_have_no_postings() -> None:
    assert kernel is not None
    sizes, terms, codes = np.array([1, 1]), np.zeros(2, np.int32), np.zeros(2, np.uint8)
    rows = np.array([1, 0])
    for wrong in (
        (sizes - 1, terms, codes, None), (sizes + 1, terms, codes, None), (-sizes, terms, codes, None), (sizes, terms - 1, codes, None),
        (sizes, terms, codes[:1], None), (sizes, terms, codes, rows[:1]), (sizes, terms, codes, rows * 2), (sizes, terms, codes, rows * 0),
        (sizes, terms, codes, -rows), (terms, terms, codes, None), (sizes, sizes, codes, None), (shifted(sizes), terms, codes, None),
        (sizes, shifted(terms), codes, None), (sizes, terms, codes, shifted(rows)), (sizes, terms, codes, [1, 0]), (np.array([1 << 62, 2]), terms, codes, None),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            kernel.segment(*wrong)


def shifted(array: Any) -> Any:
    """The same array, a byte beside where the processor expects it."""
    moved = np.frombuffer(b"." + array.tobytes(), dtype=np.uint8)[1:].view(array.dtype)
    assert moved.tolist() == array.tolist()
    assert not moved.flags.aligned
    return moved


@compiled
def test_arrays_that_do_not_stand_where_the_processor_expects_them_are_refused() -> None:
    assert kernel is not None
    scores = np.ones(9, np.float32)
    codes, impacts = np.array([7], np.uint8), np.zeros(256, np.float32)
    for call in (
        lambda: kernel.best(shifted(scores), 3),
        lambda: kernel.postings(1, shifted(closed(0, 1)), closed(0), codes, impacts),
        lambda: kernel.postings(1, closed(0, 1), shifted(closed(0)), codes, impacts),
        lambda: kernel.postings(1, closed(0, 1), closed(0), codes, shifted(impacts)),
    ):
        with pytest.raises((ValueError, TypeError), match="place"):
            call()
    total = np.zeros(5, np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError, match="rows"):
        kernel.add(kernel.postings(1, closed(0, 1), closed(0), codes, impacts), total, [])


WAYS = kernel.ways() if kernel is not None else []
DIVERSE = np.random.default_rng(11)


@compiled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("rows", "columns"), [(384, 1), (384, 15), (384, 64), (384, 65), (384, 1152), (768, 130), (1536, 384)]
)
def test_products_with_a_matrix_are_the_same_bits_in_every_way(way: str, rows: int, columns: int) -> None:
    codes = DIVERSE.integers(-127, 128, (rows, columns)).astype(np.int8)
    scales, shift = (DIVERSE.standard_normal(columns).astype(np.float32) for _ in range(2))
    held, plain = products.Matrix.of(codes, scales, shift, way=way), products.Matrix.of(codes, scales, shift, way=None)
    for pieces in (*range(1, 14), 20, 21, 40, 100):
        states = DIVERSE.standard_normal((pieces, rows)).astype(np.float32) ** 3
        states[pieces // 2] *= np.float32(10.0 ** DIVERSE.integers(-44, 30))
        assert held(states).tobytes() == plain(states).tobytes()
        assert held(states, bent=True).tobytes() == plain(states, bent=True).tobytes()


@compiled
@pytest.mark.skipif(not WAYS, reason="this processor has no way to do this")
@pytest.mark.parametrize("pieces", [0, 1, 2, 3, 4, 5, 15, 16, 17, 48, 63, 64, 65, 96, 130, 256])
def test_what_pieces_see_of_each_other_is_the_same_bits(pieces: int) -> None:
    assert kernel is not None
    for power in (-30, -3, 0, 1):
        mixed = DIVERSE.standard_normal((pieces, 1152)).astype(np.float32) ** 3 * np.float32(10.0**power)
        across = DIVERSE.standard_normal(12).astype(np.float32) * np.float32(5)
        for read in (Text(), *(Text(here=here, across=across) for here in {0, pieces // 3, pieces})):
            found, wanted = (np.full((pieces, 384), np.nan, dtype=np.float32) for _ in range(2))
            kernel.looked(mixed, read.here, read.across, found)
            look_plainly(mixed, read, wanted)
            assert found.tobytes() == wanted.tobytes()


@compiled
@pytest.mark.skipif(not WAYS, reason="this processor has no way to do this")
@pytest.mark.parametrize("pieces", [0, 1, 2, 7, 130])
def test_norms_are_the_same_bits(pieces: int) -> None:
    weight, shift = (DIVERSE.standard_normal(384).astype(np.float32) for _ in range(2))
    norm = Norm(weight=weight, shift=shift)
    for power in (-30, -3, 0, 9):
        states, beside = (
            DIVERSE.standard_normal((pieces, 384)).astype(np.float32) * np.float32(10.0**power) for _ in range(2)
        )
        assert norm(states).tobytes() == norm.plainly(states).tobytes()
        assert norm(states, beside).tobytes() == norm.plainly(states, beside).tobytes()


@compiled
@pytest.mark.parametrize("way", WAYS)
def test_sums_as_great_as_they_can_be_are_the_same_bits(way: str) -> None:
    codes = np.full((1536, 64), 127, dtype=np.int8)
    codes[:, ::2] = -127
    ones = np.ones(64, dtype=np.float32)
    states = np.ones((7, 1536), dtype=np.float32) * np.float32(1.7)
    states[1::2] *= -1
    held, plain = (products.Matrix.of(codes, ones, ones, way=each) for each in (way, None))
    assert held(states).tobytes() == plain(states).tobytes()
    vectors = products.CodedVectors.of(np.tile(codes[:, :32], (1, 32)))
    for vector in (np.ones(1024, dtype=np.float32), -np.ones(1024, dtype=np.float32), vectors.codes[0] / np.float32(3)):
        assert vectors.near(vector, way=way).tobytes() == vectors.near(vector, way=None).tobytes()


@compiled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rows", "dimensions"), [(0, 256), (1, 32), (255, 64), (256, 256), (1_100, 256), (513, 384)])
def test_products_with_many_vectors_are_the_same_bits_in_every_way(way: str, rows: int, dimensions: int) -> None:
    vectors = products.CodedVectors.of(DIVERSE.integers(-127, 128, (rows, dimensions)).astype(np.int8))
    for power in (-44, -30, -3, 0, 20):
        vector = DIVERSE.standard_normal(dimensions).astype(np.float32) * np.float32(10.0**power)
        assert vectors.near(vector, way=way).tobytes() == vectors.near(vector, way=None).tobytes()


@compiled
def test_matrices_and_vectors_that_do_not_belong_together_are_refused() -> None:
    assert kernel is not None
    if not WAYS:
        pytest.skip("this processor multiplies in none of the ways")
    way, codes, ones = WAYS[0], np.ones((64, 3), np.int8), np.ones(3, np.float32)
    good = kernel.matrix(way, 32, codes, ones, ones)
    for wrong in (
        (way, 32, codes, ones, ones[:2]), (way, 32, codes, ones[:2], ones), (way, 31, codes, ones, ones), (way, 0, codes, ones, ones),
        (way, 2048, np.ones((2048, 3), np.int8), ones, ones), (way, 64, codes[:32], ones, ones), (way, -32, codes, ones, ones),
        (way, 32, codes.astype(np.int16), ones, ones), (way, 32, codes, ones.astype(np.float64), ones), (way, 32, codes[:, ::2], ones, ones),
        (way, 32, codes[:0], ones[:0], ones[:0]), ("abacus", 32, codes, ones, ones), (None, 32, codes, ones, ones), (way, 32, codes, ones),
        (way, 32, codes, shifted(ones), ones),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, OverflowError)):
            kernel.matrix(*wrong)
    states, out = np.ones((2, 64), np.float32), np.empty((2, 3), np.float32)
    kernel.multiplied(good, states, False, out)
    kernel.multiplied(good, states[:0], True, out[:0])
    still = out.copy()
    still.setflags(write=False)
    for wrong in (
        (good, states[:1], False, out), (good, states[:, :63].copy(), False, out), (good, states, False, out[:, :2].copy()),
        (good, states, False, still), (good, states), (good, states, False), (good, states, states, out), (good, states, False, np.empty((2, 4), np.float32)),
        (good, states.astype(np.float64), False, out), (good, states, False, out.astype(np.float64)), (None, states, False, out),
        (good, states[:, ::2], False, out), (good, shifted(states.ravel()), False, out),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, BufferError)):
            kernel.multiplied(*wrong)
    vector, rows, worth, room = (
        np.ones(64, np.float32),
        np.ones((5, 64), np.int8),
        np.ones(5, np.float32),
        np.empty(5, np.float32),
    )
    kernel.near(way, vector, rows, worth, room)
    for wrong in (
        (way, vector[:63].copy(), rows, worth, room), (way, vector, rows[:4], worth, room), (way, vector, rows, worth[:4], room),
        (way, vector, rows, worth, room[:4]), (way, vector, rows.astype(np.int16), worth, room), ("", vector, rows, worth, room), (way, vector, rows, worth),
        (way, np.ones(2048, np.float32), np.ones((5, 2048), np.int8), worth, room), (way, vector[:0], rows[:, :0], worth, room), (way, vector, rows, worth, still),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, BufferError)):
            kernel.near(*wrong)


@compiled
@pytest.mark.skipif(not WAYS, reason="this processor has no way to do this")
def test_states_that_do_not_belong_together_are_refused() -> None:
    assert kernel is not None
    mixed, states, one = (np.ones(shape, np.float32) for shape in ((5, 1152), (5, 384), (384,)))
    still, out, heads = states.copy(), np.empty((5, 384), np.float32), np.ones(12, np.float32)
    still.setflags(write=False)
    kernel.looked(mixed, 2, heads, out)
    for wrong in (
        (mixed[:4], 2, heads, out), (mixed, 6, heads, out), (mixed, -1, heads, out), (mixed, 2, heads[:11].copy(), out), (mixed, 2, heads, still),
        (mixed, 2, heads, out[:4]), (mixed.astype(np.float64), 2, heads, out), (mixed, 2, heads), (mixed, None, heads, out), (mixed, 2, 7, out),
        (np.ones((257, 1152), np.float32), 2, None, np.empty((257, 384), np.float32)), (mixed[:, ::3], 2, None, out), (shifted(mixed.ravel()), 2, None, out),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, BufferError, OverflowError)):
            kernel.looked(*wrong)
    kernel.normed(states, None, one, one, out)
    for wrong in (
        (states, states[:4], one, one, out), (states, None, one[:383].copy(), one, out), (states, None, one, one[:383].copy(), out), (states, None, one, one, still),
        (states, None, one, one, out[:4]), (states[:, :383].copy(), None, one, one, out), (states, None, one, one), (states, "no", one, one, out),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, BufferError)):
            kernel.normed(*wrong)


MADE_UP_CATALOG = """
import json, random
from toolcrib.retrieval.attention import Norm, Text, look_plainly
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.hybrid import HybridRetriever
draw = random.Random(5)
verbs = "find list send create delete convert translate book cancel read".split()
things = "weather flights messages files tables currency recipes songs tickets invoices people images".split()
said = "for a customer, by name, in a city, of today, as text, with a date, from a folder, to a friend".split(", ")
made = [
    PlainDocument(
        key=f"t{number}", digest=f"d{number}", leaf=f"{draw.choice(verbs)}_{draw.choice(things)}", toolset=f"s{number % 20}",
        description=" ".join(draw.choice((*verbs, *things, *said)) for _ in range(draw.randrange(3, 25))),
        parameters=tuple(draw.sample(things, 2)), nested=draw.choice(said), aliases=(),
    )
    for number in range(300)
]
retriever = HybridRetriever()
index = retriever.index(made)
retriever.settle()
told = []
for number in range(60):
    asked = [f"{draw.choice(verbs)} the {draw.choice(things)} {draw.choice(said)}" for _ in range(1 + number % 4)]
    found = index.search(", then I want to ".join(asked), limit=10)
    told.append(([(hit.key, hit.score) for hit in found.hits], found.confidence, found.abstained))
print(json.dumps(told))
"""


@compiled
def test_a_whole_search_gives_the_same_with_the_kernel_and_without() -> None:
    assert in_fresh_process(MADE_UP_CATALOG) == in_fresh_process(MADE_UP_CATALOG, TOOLCRIB_KERNEL="off")


@compiled
def test_searching_leaks_nothing() -> None:
    assert kernel is not None
    word = "".join(("some", "words", "here"))
    vocabulary = numbered([word, word + "s"])
    array = np.ones(50, dtype=np.float32)
    schema = orjson.dumps(
        {"properties": {word: {"type": "string", "description": "né", "enum": ["a"]}, "b": {"type": "null"}}}
    )
    before = sys.getrefcount(word), sys.getrefcount(vocabulary), sys.getrefcount(array)
    held, segment, watched = 0, None, None
    tracemalloc.start()
    try:
        for turn in range(400):
            if turn == 100:
                gc.collect()
                held = tracemalloc.get_traced_memory()[0]
            kernel.terms("createIssue in " + word, 64)
            kernel.possible([word, word], None)
            kernel.possible([word, word], bytearray(8))
            kernel.forms(vocabulary, word)
            kernel.best(array, 7)
            kernel.family(word + "s")
            kernel.halves(word, (1, 5), None)
            kernel.name_hash(word)
            kernel.common_ends((word, array), (word,))
            kernel.segment(np.array([2, 1]), np.zeros(3, np.int32), np.zeros(3, np.uint8), np.array([1, 0]))
            with suppress(ValueError):
                kernel.segment(np.array([2, 2]), np.zeros(3, np.int32), np.zeros(3, np.uint8), None)
            watched = kernel.words([b"not", b"type"])
            kernel.suspects([b"%", word.encode()], watched, 20)
            kernel.inside(schema, 6, 20)
            kernel.inside(schema[:-2], 6, 20)
            kernel.canonical(b"head", schema, 64)
            kernel.canonical(b"head", schema[:-1], 64)
            kernel.items(b"[1," + schema + b"]")
            kernel.items(b"[" + schema)
            kernel.plain({word: [word, 1.5]})
            for raw in (b'{"name":"n","annotations":{},"inputSchema":' + schema, b'{"name":7,"inputSchema":' + schema):
                kernel.read_tool(raw + b"}", *freezing._BOUNDS)
                taken([1, orjson.loads(raw + b"}")])
            kernel.signature(word, schema, SIGNED, 600)
            kernel.card(word, word, word, f"{word}. {word}", schema, SIGNED, 600, 160)
            kernel.card(word, "\ud800", word, word * 90, schema, SIGNED, 600, 160)
            given = [(word, f"{word} {word}X{turn} w{turn}", "né", "a — b", each, (word,)) for each in (schema, b"[]")]
            bounds = 64, 400, 2_000, 6, 20
            kernel.analyse(
                kernel.runs(numbered([word])), lambda text: [(0,)], documents.read_inside, given, SHAPE, bounds
            )
            with suppress(TypeError):
                kernel.analyse(kernel.runs(numbered([word])), len, documents.read_inside, given, SHAPE, bounds)
            kernel.name_hashes(given)
            segment = kernel.postings(
                50,
                closed(0, 50),
                closed(*range(50)),
                np.ones(50, np.uint8),
                np.ones(256, np.float32),
            )
            kernel.add(segment, array, [(0, 1.0)])
            kernel.add_merged(segment, array, kernel.merge(segment, ((0, 1.0),), ((0, 0.5),)))
            for way in kernel.ways():
                held_matrix = kernel.matrix(way, 32, np.ones((64, 3), np.int8), array[:3], array[:3])
                kernel.multiplied(held_matrix, np.ones((2, 64), np.float32), True, np.empty((2, 3), np.float32))
                kernel.looked(np.ones((3, 1152), np.float32), 1, array[:12], np.empty((3, 384), np.float32))
                kernel.normed(
                    np.ones((3, 384), np.float32), None, *np.ones((2, 384), np.float32), np.empty((3, 384), np.float32)
                )
                kernel.near(way, np.ones(32, np.float32), np.ones((50, 32), np.int8), array, np.empty(50, np.float32))
                with suppress(ValueError):
                    kernel.matrix(way, 32, np.ones((63, 3), np.int8), array[:3], array[:3])
                with suppress(ValueError):
                    kernel.multiplied(held_matrix, array, False, array)
                with suppress(ValueError):
                    kernel.near(way, array, np.ones(9, np.int8), array, array)
        segment = watched = given = held_matrix = None
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - held < 2_000
    finally:
        tracemalloc.stop()
    assert (sys.getrefcount(word), sys.getrefcount(vocabulary), sys.getrefcount(array)) == before


def in_fresh_process(script: str, **environ: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **environ}
    )
    return run.stdout.strip()


def test_one_variable_switches_the_kernel_off_and_the_account_says_so() -> None:
    script = "from toolcrib.kernel import account, kernel; print(kernel, account())"
    assert in_fresh_process(script, TOOLCRIB_KERNEL="off") == "None without the compiled kernel: TOOLCRIB_KERNEL=off"


def test_a_kernel_that_is_switched_off_is_not_even_loaded() -> None:
    script = "import sys, toolcrib.retrieval.text; print('toolcrib._kernel' in sys.modules)"
    assert in_fresh_process(script, TOOLCRIB_KERNEL="off") == "False"


WITHOUT_MEMORY = """
import gc, sys, _testcapi
import numpy as np, orjson
from toolcrib.kernel import kernel
from toolcrib.retrieval import signature

def closed(*numbers):
    array = np.array(numbers, np.int32)
    array.setflags(write=False)
    return array

signed = signature.KNOWN_WORDS
schema = orjson.dumps({"properties": {"a": {"description": "x", "anyOf": [{"properties": {"q": {"enum": ["w"]}}}]}}})
simple = orjson.dumps({"properties": {"a": {"type": "string"}, "b\u00e9": {"type": "null"}}, "required": ["a"]})
values = [{str(number): [number, {"x": 1.5}]} for number in range(400)]
arrays = closed(0, 50), closed(*range(50)), np.ones(50, np.uint8), np.ones(256, np.float32)
scores, shape = np.arange(1, 301, dtype=np.float32), np.array([1.0, 3.0, 0.3] * 6 + [0.6, 1.2, 200.0])
text = " ".join(f"fooBar{number} w{number} {'q' * number}" for number in range(60))
escaped = orjson.dumps({"properties": {"a": {"description": "one\\ntwo"}}})
given = [("k", text, "né", "a \u2014 b", each, ("also",)) for each in (schema, escaped)]
bounds, sizes, terms, codes = (64, 400, 2_000, 6, 20), np.array([9, 0]), np.arange(9, dtype=np.int32), np.zeros(9, np.uint8)
vocabulary, watched, seed = kernel.vocabulary(1), [b"not", b"type"], hash("seed")
for number, word in enumerate(("walk", "walks")):
    vocabulary.setdefault(word, number)
encode, odd, write = lambda given: -7, lambda text: [(0,)], lambda given: b"1.5"
# Functions and growing dictionaries are made before: some Pythons end with the memory that these ask for.
asked = b'{"jsonrpc":"2.0","id":"abc","method":"tools/call","params":{"name":"tool_call","arguments":{"name":"b","arguments":%b}}}'
asked = asked % orjson.dumps({"long": "one\\ntwo\u00e9", "a": [1000, {"b": "two\u00e9"}]})
answer = b'{"jsonrpc":"2.0","id":1000,"result":{"content":[]}}'
lines, meant = b"one\\ntwo\\n", {"long": "x" * 300, "a": {"b": [], "c": 1}}
listed = [{"name": "n", "description": "né", "inputSchema": orjson.loads(schema), "annotations": {}}, {"a": 1.5}]
fields = ("name", "toolset", "origin", "leaf", "description", "schema", "raw", "dialect", "traits", "aliases", "chars")
told = ("mcp", "openai_chat", "mcp", None, len, 9)
numbered = kernel.vocabulary(seed)
kernel.analyse(kernel.runs(numbered), odd, len, given, shape, bounds)
calls = [
    lambda: kernel.keep(values, encode, 1 << 18),
    lambda: kernel.terms("createIssue in someWords", 64),
    lambda: kernel.possible(["abc", "defs", "xing"], None),
    lambda: kernel.halves("someswords", (3, 5), None),
    lambda: kernel.forms(vocabulary, "walk"),
    lambda: kernel.words(watched),
    lambda: kernel.vocabulary(seed).setdefault("term", 0),
    lambda: kernel.inside(schema, 6, 20),
    lambda: kernel.canonical(b"head", schema, 64),
    lambda: kernel.items(b"[1," + schema + b"]"),
    lambda: kernel.read_tool(b'{"name":"n","annotations":{},"inputSchema":' + schema + b"}", 64, 999, 99),
    lambda: kernel.take(listed, write, 999, (64, 999, 99, 64), ["t"] * 2, dict, fields, told),
    lambda: kernel.digest([schema], seed),
    lambda: kernel.signature("t", simple, signed, 600),
    lambda: kernel.card("n", "s", "t", "x" * 300, simple, signed, 600, 160),
    lambda: kernel.analyse(kernel.runs(numbered), odd, len, given, shape, bounds),
    lambda: kernel.segment(sizes, terms, codes, None),
    lambda: kernel.merge(kernel.postings(50, *arrays), ((0, 1.0),), ((0, 0.5),)),
    lambda: kernel.best(scores, 9),
    kernel.ways,
    lambda: kernel.read_call(asked, "tool_call", 256, 64, 1000),
    lambda: kernel.read_answer(answer, 64),
    lambda: kernel.lines(lines),
    lambda: kernel.shape(meant, 3, 50, 2, 5),
]
if kernel.ways():
    way, square, line = kernel.ways()[0], np.ones((32, 32), np.int8), np.ones(32, np.float32)
    states, product = np.ones((40, 32), np.float32), np.empty((40, 32), np.float32)
    mixed, seen = np.ones((3, 1152), np.float32), np.empty((3, 384), np.float32)
    held = kernel.matrix(way, 32, square, line, line)
    calls += [
        lambda: kernel.matrix(way, 32, square, line, line),
        lambda: kernel.multiplied(held, states, True, product),
        lambda: kernel.looked(mixed, 1, None, seen),
    ]

def tried(call, at):
    _testcapi.set_nomemory(at, at + 1)
    try:
        call()
    except MemoryError:
        return True
    finally:
        _testcapi.remove_mem_hooks()
    return False

for number, call in enumerate(calls):
    failed = 0
    for at in range(1, 40):
        failed += tried(call, at)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(15):
            tried(call, at)
        gc.collect()
        assert sys.getallocatedblocks() - before < 10, (number, at)
    assert failed, number
print("all", len(calls))
"""


@compiled
def test_memory_that_runs_out_anywhere_is_an_error_that_leaks_nothing() -> None:
    if not hasattr(pytest.importorskip("_testcapi"), "set_nomemory"):
        pytest.skip("this Python cannot pretend that its memory runs out")
    assert in_fresh_process(WITHOUT_MEMORY, PYTHONMALLOC="pymalloc", PYTHONDEVMODE="") == f"all {27 if WAYS else 24}"


def test_a_kernel_of_other_sources_is_not_used() -> None:
    script = """
import sys, types
stale = types.ModuleType("toolcrib._kernel")
stale.INTERFACE = -1
import toolcrib
sys.modules["toolcrib._kernel"] = toolcrib._kernel = stale
from toolcrib.kernel import account, kernel
print(kernel, account())
"""
    assert in_fresh_process(script, TOOLCRIB_KERNEL="").startswith(
        "None without the compiled kernel: it was built from other"
    )


def test_without_a_kernel_the_account_says_what_is_needed() -> None:
    script = """
import sys
sys.modules["toolcrib._kernel"] = None
from toolcrib.kernel import account, kernel
print(kernel, account())
"""
    assert "a C compiler and the headers of Python are needed" in in_fresh_process(script, TOOLCRIB_KERNEL="")


def test_the_account_is_of_what_is_in_use() -> None:
    assert kernel_module.account().startswith("compiled" if kernel is not None else "without")


@pytest.mark.parametrize(
    ("environ", "said"),
    [({"TOOLCRIB_KERNEL": "off"}, "TOOLCRIB_KERNEL=off"), ({"CC": "no-such-compiler"}, "no-such-compiler")],
)
def test_a_build_without_a_compiler_says_why_and_fails_nothing(
    environ: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    import hatch_build

    monkeypatch.setenv("TOOLCRIB_KERNEL", "")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    stale = tmp_path / "_kernel.so"
    stale.write_bytes(b"of an older source")
    reason = hatch_build.compile_kernel(ROOT / hatch_build.SOURCES, stale)
    assert said in reason
    assert "\n" not in reason
    assert list(tmp_path.iterdir()) == []
