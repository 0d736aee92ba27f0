import json
import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.sources.json_rpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    LineFramer,
    Noise,
    RpcError,
    error_line,
    read_envelope,
    read_error,
    read_object,
    read_plain,
    require_distinct_keys,
    result_body,
    result_line,
    visible,
)
from toolcrib.sources.withheld import Withheld


def code_of(data: bytes) -> int:
    with pytest.raises(RpcError) as caught:
        read_envelope(data)
    return caught.value.code


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":NaN}', PARSE_ERROR),
        (b"[" * 100_000, INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0"}]', INVALID_REQUEST),
        (b'"text"', INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":{}}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'"}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","method":5}', INVALID_REQUEST),
    ],
)
def test_what_is_no_message_has_its_code(data: bytes, code: int):
    assert code_of(data) == code


@pytest.mark.requirement("E2")
def test_depth_and_digits_without_end_are_refused_not_followed():
    deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(RpcError):
        read_object(read_envelope(deep).params)
    assert code_of(b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b"}") in (PARSE_ERROR, INVALID_REQUEST)


@pytest.mark.requirement("E1")
@given(st.binary(max_size=200) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
def test_reading_anything_gives_a_message_or_an_rpc_error(data: bytes):
    try:
        read_envelope(data)
    except RpcError as error:
        assert error.code in (PARSE_ERROR, INVALID_REQUEST)


def check_keys(data: bytes) -> None:
    envelope = read_envelope(data)
    require_distinct_keys(data, envelope, read_object(envelope.params))


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\\u0061me":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name" :"a","name":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":[{"x":1,"x":2}]}}',
    ],
)
def test_a_key_that_occurs_twice_is_refused(data: bytes):
    with pytest.raises(RpcError) as caught:
        check_keys(data)
    assert caught.value.code == INVALID_REQUEST


def test_the_same_key_in_different_objects_is_fine():
    check_keys(b'{"jsonrpc":"2.0","params":{"name":"tool_call","arguments":{"name":"x","arguments":{"name":1}}}}')


@st.composite
def written(draw: st.DrawFn, depth: int = 3) -> tuple[str, bool]:
    """JSON as anybody may write it, and whether an object of it names a key twice."""
    plain = st.sampled_from(['":"', '"a:b"', '"x"', "1", "null", '"\\u003a"', '" :"'])
    if depth == 0 or draw(st.booleans()):
        return draw(plain), False
    keys = draw(st.lists(st.sampled_from(["a", "b", ":", "a:", ":a", "c d", "\\u0061"]), max_size=4))
    parts: list[str] = []
    twice = len({json.loads(f'"{key}"') for key in keys}) < len(keys)
    for key in keys:
        value, inner = draw(written(depth - 1))
        twice = twice or inner
        parts.append(f'"{key}"{draw(st.sampled_from(["", " ", chr(10)]))}:{draw(st.sampled_from(["", " "]))}{value}')
    return "{" + ",".join(parts) + "}", twice


@pytest.mark.requirement("A10")
@given(st.lists(written(), max_size=3), st.sampled_from(['"id":1', '"id":"x:y"', '"id":1,"id":2']))
def test_keys_are_counted_right_however_they_are_written(values: list[tuple[str, bool]], named: str):
    members = ",".join(f'"{number}":{value}' for number, (value, _) in enumerate(values))
    data = f'{{"jsonrpc":"2.0",{named},"method":"tools/call","params":{{{members}}}}}'.encode()
    if any(twice for _, twice in values) or named.count("id") == 2:
        with pytest.raises(RpcError):
            check_keys(data)
    else:
        check_keys(data)


@given(st.lists(st.binary(max_size=50).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_come_out_whole_however_the_bytes_are_cut(lines: list[bytes], data: st.DataObject):
    whole = b"".join(line + b"\n" for line in lines)
    framer = LineFramer(1_000)
    found: list[bytes] = []
    at = 0
    while at < len(whole):
        step = data.draw(st.integers(1, 40))
        found.extend(framer.feed(whole[at : at + step]))
        at += step
    assert found == [line for line in lines if line and not line.isspace()]


@pytest.mark.requirement("H6")
def test_an_endless_line_is_dropped_as_it_comes_and_the_next_one_is_read():
    framer = LineFramer(1_000)
    for _ in range(1_000):
        assert not framer.feed(b"x" * 1_000)
    assert framer.overlong == 1
    assert not framer._parts
    assert framer.feed(b"tail\nnext\n") == [b"next"]


def test_a_long_line_in_one_piece_is_dropped_too():
    framer = LineFramer(10)
    assert framer.feed(b"x" * 11 + b"\nok\n") == [b"ok"]
    assert framer.overlong == 1


@pytest.mark.requirement("H7", "J2")
def test_noise_is_logged_up_to_a_rate_and_cannot_forge_lines(caplog: pytest.LogCaptureFixture):
    now = 0.0
    noise = Noise(logging.getLogger("noise-test"), "server", lambda: now)
    with caplog.at_level(logging.DEBUG, "noise-test"):
        noise.take(b"\x1b[31mred\rfake")
        for _ in range(10_000):
            noise.take(b"x" * 100)
    assert noise.lines == 10_001
    assert len(caplog.records) < 700
    assert noise.unlogged == 10_001 - sum(record.levelno == logging.DEBUG for record in caplog.records)
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    assert "\x1b" not in caplog.text
    assert "\\x1b[31mred\\x0dfake" in caplog.text
    now = 61.0
    noise.take(b"again")
    assert noise.tail[-1] == "again"


@pytest.mark.requirement("X17")
@pytest.mark.parametrize("filler", ["x", "語", "\U0001f600"])
@pytest.mark.parametrize("before", [0, 1_330, 1_995, 6_090])
def test_noise_is_told_without_secrets_wherever_the_line_is_cut(filler: str, before: int):
    noise = Noise(logging.getLogger("noise-test"), "server", lambda: 0.0, Withheld(["sk-SECRETSECRET"]))
    noise.take((filler * before + "sk-SECRETSECRET" * 1_000).encode())
    assert "sk-" not in noise.tail[0]
    assert 0 < len(noise.tail[0]) <= 2_000


@pytest.mark.requirement("H7", "K1")
def test_the_last_lines_are_known_however_much_was_said_before_them():
    now = 0.0
    noise = Noise(logging.getLogger("noise-test"), "server", lambda: now, Withheld(["sk-12345678"]))
    for number in range(2_000):
        noise.take(b"chatter %d " % number + b"x" * 60)
    noise.take(b"Error: the disk is full, says sk-12345678")
    assert noise.unlogged > 1_000
    assert noise.tail[-1] == "Error: the disk is full, says ***"
    assert noise.tail[-2].startswith("chatter 1999")
    noise.take(b"before")
    now = 61.0
    noise.take(b"after")
    assert list(noise.tail)[-3:] == ["Error: the disk is full, says ***", "before", "after"]
    assert len(noise.tail) == 30


def test_a_line_that_was_begun_is_given_out_when_nothing_more_comes():
    framer = LineFramer(10)
    assert list(framer.feed(b"one\ntw")) == [b"one"]
    framer.feed(b"o")
    assert (framer.end(), framer.end()) == (b"two", b"")
    framer.feed(b"x" * 11)
    assert framer.end() == b""
    assert list(framer.feed(b"three\n")) == [b"three"]


def test_an_answer_is_built_around_bytes_that_are_not_parsed():
    assert result_line(7, b'{"a": 1}') == b'{"jsonrpc":"2.0","id":7,"result":{"a": 1}}\n'
    assert json.loads(error_line(None, RpcError(-1, "no", {"x": 1}))) == {
        "jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "no", "data": {"x": 1}},
    }  # fmt: skip


@pytest.mark.parametrize("raw", [b"1", b"{}", b'{"code":"x","message":5}', b'{"code":true}'])
def test_an_error_of_any_shape_can_be_read(raw: bytes):
    assert isinstance(read_error(msgspec.Raw(raw)), RpcError)


def test_control_characters_are_written_out():
    assert visible("a\tb\u202e") == "a\\x09b\\x202e"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.sampled_from(["2.0", "1.0"]), "id": st.integers() | st.text(max_size=3) | st.none()},
        optional={"method": st.text(max_size=5) | st.just("tools/call"), "params": _VALUES, "more": _VALUES},
    ),
    st.sampled_from([(",", ":"), (", ", ": ")]),
    st.booleans(),
    st.integers(0, 3),
)
def test_a_plain_request_is_read_in_one_go_as_in_three(message: dict[str, object], signs, ascii_only: bool, cut: int):
    data = json.dumps(message, separators=signs, ensure_ascii=ascii_only).encode()
    data = data[:-cut] if cut == 3 else data.replace(b'"id"', b'"method"') if cut == 2 else data
    plain = read_plain(data)
    if plain is not None:
        envelope = read_envelope(data)
        params = read_object(envelope.params)
        require_distinct_keys(data, envelope, params)
        assert plain == (envelope.id, envelope.method, params)


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":{"b":1,"b":2}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"\\u0061":2}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"\\u0061":2},"b":3}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":":","a":1}}',
    ],
)
def test_a_request_that_names_a_key_twice_is_not_plain(data: bytes):
    assert read_plain(data) is None


@given(st.integers(-(2**64), 2**64) | st.text(max_size=8))
def test_an_answer_carries_the_id_that_was_sent(identifier: int | str):
    assert json.loads(result_line(identifier, b"{}")) == {"jsonrpc": "2.0", "id": identifier, "result": {}}
    assert result_line(identifier, b"{}") == result_body(identifier, b"{}") + b"\n"


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("levels", [250, 254, 300, 900, 1_020, 5_000])
@pytest.mark.parametrize("text", ["", "\\n"])
def test_no_depth_of_a_message_is_more_than_an_error(levels: int, text: str) -> None:
    value = b"[" * levels + b"]" * levels
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":%b,"b":"%b"}}' % (value, text.encode())
    read = read_plain(line)
    if read is None:
        try:
            envelope = read_envelope(line)
            require_distinct_keys(line, envelope, params := read_object(envelope.params))
        except RpcError as error:
            assert error.code in {PARSE_ERROR, INVALID_REQUEST} and levels > 254
            return
        read = (1, "tools/call", params)
    assert read[:2] == (1, "tools/call") and set(read[2]) == {"a", "b"}


@pytest.mark.parametrize("identifier", [0, -1, 2**63, 2**64, 10**30, -(10**30)])
def test_an_error_carries_the_id_that_was_sent_however_large(identifier: int) -> None:
    answer = json.loads(error_line(identifier, RpcError(-1, "no")))
    assert answer == {"jsonrpc": "2.0", "id": identifier, "error": {"code": -1, "message": "no"}}


def test_data_of_an_error_that_is_too_deep_to_be_written_is_left_out() -> None:
    deep = json.loads("[" * 300 + "]" * 300)
    assert json.loads(error_line(1, RpcError(-1, "no", deep)))["error"] == {"code": -1, "message": "no"}
