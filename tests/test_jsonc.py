"""The reader of JSON with comments agrees with strict readers where they can read, and names lines where it cannot."""

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.jsonc import TextError, read_jsonc

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(values, st.sampled_from([None, 0, 2, "\t"]))
def test_strict_json_reads_as_a_strict_reader_reads_it(value: object, indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent)
    assert read_jsonc(text).data() == orjson.loads(text)


def test_comments_and_trailing_commas_are_nothing() -> None:
    text = '// a\n{ /* b */ "x" /*c*/ : // d\n [1, 2, /* e */ ], "u": "http://x/*no*/", }\n// end'
    assert read_jsonc(text).data() == {"x": [1, 2], "u": "http://x/*no*/"}


def test_positions_are_those_of_the_text() -> None:
    text = '{ "a" : {"b": [1, "é"]} }'
    node = read_jsonc(text)
    member = node.members[0]
    assert text[member.start : member.value.end] == '"a" : {"b": [1, "é"]}'
    inner = member.value.members[0].value
    assert text[inner.start : inner.end] == '[1, "é"]'


def test_the_last_of_two_equal_keys_wins_and_the_reader_says_so() -> None:
    node = read_jsonc('{"a": 1, "a": 2}')
    assert node.data() == {"a": 2} and node.twice == "a"


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("{", 1),
        ('{"a": 1', 7),
        ('{"a" 1}', 5),
        ('{"a": 1 "b": 2}', 8),
        ("{a: 1}", 1),
        ('{"a": "x\ny"}', 6),
        ('{"a": /* }', 6),
        ("[1, 2] 3", 7),
        ('{"a": nul}', 6),
        ("[,]", 1),
        ("[" * 300, 201),
    ],
)
def test_broken_text_is_an_error_with_its_place(text: str, offset: int) -> None:
    with pytest.raises(TextError) as caught:
        read_jsonc(text)
    assert caught.value.offset == offset


@settings(deadline=None)
@given(st.text(alphabet='{}[]",:/*\\ \n1a', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_jsonc(text)
    except TextError as error:
        assert 0 <= error.offset <= len(text)
