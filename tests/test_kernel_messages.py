"""What the kernel reads of the messages of strangers is what Python reads of them, and what is odd it leaves to Python."""

import json
import math
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from toolcrib import activity
from toolcrib.activity import shape_of
from toolcrib.bridge import TOOL_CALL, plain_invocation
from toolcrib.gateway import calls, http_wire
from toolcrib.gateway.calls import read_request
from toolcrib.gateway.http_wire import Head, Known
from toolcrib.kernel import kernel
from toolcrib.sources import json_rpc
from toolcrib.sources.json_rpc import LineFramer, read_envelope, read_plain
from toolcrib.sources.link import read_head

compiled = pytest.mark.skipif(kernel is None, reason="the kernel is not in use")
thorough = profile(deadline=None, derandomize=True, max_examples=400)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["é", "\x7f", "\u2028", "😀", 'a"b\\c\n', "\x01", "{[" * 40, "x" * 40]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["name", "arguments", "a", "é", 'a"']), JSON, max_size=3)
WRAPPED = st.fixed_dictionaries({"name": st.text(max_size=4) | JSON, "arguments": ARGUMENTS | JSON})
PARAMS = st.fixed_dictionaries(
    {"name": st.sampled_from([TOOL_CALL, "echo", ""]) | JSON, "arguments": ARGUMENTS | WRAPPED | JSON},
    optional={"_meta": JSON, "more": JSON},
)
CALLS = st.fixed_dictionaries(
    {
        "jsonrpc": st.sampled_from(["2.0", "2.0", "1.0"]),
        "id": st.integers() | st.text(max_size=3) | st.sampled_from([None, True, 1.0, "x" * 256, "x" * 257]),
        "method": st.sampled_from(["tools/call", "tools/call", "tools/list"]),
        "params": PARAMS | JSON,
    },
    optional={"more": JSON},
)
USUAL = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
USUAL_CALLS = st.builds(
    lambda key, name, inner: {
        "jsonrpc": "2.0",
        "id": key,
        "method": "tools/call",
        "params": {"name": name, "arguments": {"name": "x", "arguments": inner} if name == TOOL_CALL else inner},
    },
    st.integers(0, 10**6) | st.text(max_size=3),
    st.sampled_from([TOOL_CALL, "echo"]),
    st.dictionaries(st.text(max_size=6), USUAL, max_size=3),
)
ANSWERS = st.fixed_dictionaries(
    {
        "jsonrpc": st.sampled_from(["2.0", "2.0", "1.0"]),
        "id": st.integers() | st.sampled_from([None, "1", 1.5]),
        "result": st.dictionaries(st.sampled_from(["content", "isError", "resultType", "é", "_meta"]), JSON, max_size=4)
        | st.fixed_dictionaries(
            {"content": JSON},
            optional={"isError": st.booleans(), "resultType": st.sampled_from(["complete", "input_required"])},
        )
        | JSON,
    },
    optional={"error": JSON},
)
PIECES = [
    b'"', b"\\", b"\\u0061", b"\\ud800", b"\\/", b"\\x", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\r", b"\t",
    b"\x00", b"\x1f", b"\xff", b"\xc3", b"\xed\xa0\x80", b"0", b"00", b"-", b"-0", b"1e999", b".5", b"1.", b"9" * 30,
    b"true", b"nul", b'"id":1,', b'"id":2', b'"name":"x",', b'"arguments":{},', b'"isError":true,',
    b'"is\\u0045rror":true,', b'"resultType":"input_required",', b"[" * 70, b"{}{}", b"//", b"NaN", b"\xef\xbb\xbf",
]  # fmt: skip


def spoilt(data: bytes, chance: random.Random) -> bytes:
    """The message as somebody may send it who means no good: something put in, taken out or cut off."""
    for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice([0, 0, 0, 1, 2, 9]))
        data = data[:start] + chance.choice([b"", *PIECES]) + data[end:]
    return data


def written(message: Any, way: int) -> bytes:
    compact = json.dumps(message, separators=(",", ":"), ensure_ascii=way == 1).encode(errors="surrogatepass")
    return compact if way < 2 else json.dumps(message, indent=way - 2 or None, ensure_ascii=False).encode()


def exact(value: Any) -> Any:
    """Everything that tells two values apart, order of keys included."""
    if isinstance(value, dict):
        return [(key, exact(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(exact, value)]
    return value.hex() if isinstance(value, float) else (type(value).__name__, value)


def call_read(data: bytes) -> Any:
    assert kernel is not None
    return kernel.read_call(data, TOOL_CALL, 256, 64, 1 << 20)


def require_same_call(data: bytes) -> bool:
    found = call_read(data)
    if found is None:
        return False
    plain = read_plain(data)
    assert plain is not None
    assert exact(found[:2]) == exact((plain[0], plain[2]))
    assert plain[1] == "tools/call"
    meant = plain_invocation(plain[2]["name"], plain[2]["arguments"])
    if meant is None:  # it counts brackets in texts too
        assert found[4].count(b"{") + found[4].count(b"[") > 64
        return True
    assert exact(found[2:]) == exact((meant.name, meant.arguments, meant.encoded, meant.route == "bridge"))
    return True


def require_same_answer(data: bytes) -> bool:
    assert kernel is not None
    found = kernel.read_answer(data, 64)
    if found is None:
        return False
    envelope = read_envelope(data)
    raw = bytes(envelope.result)
    head = read_head(raw)
    assert (envelope.method, envelope.error, head.resultType) == (json_rpc.UNSET, json_rpc.UNSET, "complete")
    assert found == (envelope.id, raw, head.isError)
    return True


@compiled
@thorough
@given(CALLS | USUAL_CALLS, st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_call_that_is_read_is_the_one_that_python_reads(message: Any, way: int, chance: random.Random) -> None:
    data = written(message, way)
    require_same_call(data)
    for _ in range(8):
        require_same_call(spoilt(data, chance))


@compiled
@thorough
@given(ANSWERS, st.integers(0, 3), st.randoms(use_true_random=False))
def test_an_answer_that_is_read_is_the_one_that_python_reads(message: Any, way: int, chance: random.Random) -> None:
    data = written(message, way)
    require_same_answer(data)
    for _ in range(8):
        require_same_answer(spoilt(data, chance))


@compiled
@thorough
@given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_bytes_that_are_no_message_are_left_to_python(data: bytes) -> None:
    require_same_call(data)
    require_same_answer(data)


def call_of(params: str, head: str = '"jsonrpc":"2.0","id":1,"method":"tools/call"') -> bytes:
    return f'{{{head},"params":{params}}}'.encode()


@compiled
@pytest.mark.parametrize(
    ("params", "name"),
    [
        ('{"name":"echo","arguments":{}}', "echo"),
        ('{"arguments":{"a":[1,-2,true,false,null,"é","\\n\\"\\\\"]},"name":"echo"}', "echo"),
        ('{"name":"tool_call","arguments":{"name":"b__echo","arguments":{"message":"x"}}}', "b__echo"),
        ('{"name":"echo","arguments":{"name":"inner","arguments":{"a":1}}}', "echo"),
        ('{"_meta":{"progressToken":1},"name":"echo","arguments":{"a":{"b":[[{}]]}}}', "echo"),
        ('{"name":"echo","arguments":{"n":999999999999999999}}', "echo"),
    ],
)
def test_the_usual_call_is_read_by_the_kernel(params: str, name: str) -> None:
    assert require_same_call(call_of(params))
    assert call_read(call_of(params))[2] == name


@compiled
@pytest.mark.parametrize(
    "data",
    [
        call_of('{"name":"echo","arguments":{"a":1,"a":2}}'),
        call_of('{"name":"echo","name":"other","arguments":{}}'),
        call_of('{"name":"echo","arguments":{},"arguments":{}}'),
        call_of('{"name":"echo","\\u0061rguments":{},"arguments":{}}'),
        call_of('{"name":"tool_call","arguments":{"name":"a","arguments":{},"more":1}}'),
        call_of('{"name":"tool_call","arguments":{"name":"a"}}'),
        call_of('{"name":"","arguments":{}}'),
        call_of('{"name":"echo","arguments":[]}'),
        call_of('{"name":"echo","arguments":{"a":1.5}}'),
        call_of('{"name":"echo","arguments":{"a":-0}}'),
        call_of('{"name":"echo","arguments":{"a":1e999}}'),
        call_of('{"name":"echo","arguments":{"a":9999999999999999999}}'),
        call_of('{"name":"echo","arguments":{"a":"\\u00e9"}}'),
        call_of('{"name":"echo","arguments":{"a": 1}}'),
        call_of('{"name":"echo","arguments":{"a":1,}}'),
        call_of('{"name":"echo","arguments":{"a":1{"b":2}}'),
        call_of('{"name":"echo","arguments":{"a":[1[]}}'),
        call_of('{"name":"echo","arguments":' + '{"a":' * 70 + "1" + "}" * 70 + "}"),
        call_of('{"name":"echo","arguments":{"a":' + "[" * 100_000),
        call_of('{"name":"echo","arguments":{"a":"x'),
        call_of('{"name":"echo","arguments":{"a":"\\'),
        call_of('{"name":"echo","arguments":{}}') + b" ",
        call_of('{"name":"echo","arguments":{}}') + b"{}",
        call_of('{"name":"echo","arguments":{}}') + b"\x00",
        call_of('{"name":"echo","arguments":{"a":"') + b'\xff"}}',
        call_of("{}"),
        call_of('{"name":"echo","arguments":{}}', '"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call"'),
        call_of('{"name":"echo","arguments":{}}', '"jsonrpc":"2.0","id":true,"method":"tools/call"'),
        call_of('{"name":"echo","arguments":{}}', '"jsonrpc":"2.0","id":1,"method":"tools/call","more":1'),
        call_of('{"name":"echo","arguments":{}}', '"jsonrpc":"2.0","method":"tools/call"'),
        call_of('{"name":"echo","arguments":{}}', f'"jsonrpc":"2.0","id":"{"x" * 257}","method":"tools/call"'),
        b"", b"{", b"[]", b"\x00", b"{}",
    ],
    ids=lambda data: data[46:90],
)  # fmt: skip
def test_an_odd_call_is_left_to_python(data: bytes) -> None:
    assert call_read(data) is None


@compiled
def test_a_call_beyond_its_bounds_is_left_to_python() -> None:
    assert kernel is not None
    data = call_of('{"name":"echo","arguments":{"a":"xxxxx"}}')
    assert kernel.read_call(data, TOOL_CALL, 256, 64, 13) is not None
    assert kernel.read_call(data, TOOL_CALL, 256, 64, 12) is None
    assert kernel.read_call(data, TOOL_CALL, 256, 2, 13) is not None
    assert kernel.read_call(data, TOOL_CALL, 256, 1, 13) is None


@compiled
@pytest.mark.parametrize(
    ("data", "failed"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', False),
        (b' {"jsonrpc":"2.0","id":1,"result":{}}'[1:] + b"\r", False),
        (b'{ "result" : { "isError" : true , "content" : [ ] } , "id" : 7 , "jsonrpc" : "2.0" }', True),
        (
            b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","a":[1.5e-3,-0,"\\u00e9\\/\\n","\xc3\xa9"]}}',
            False,
        ),
    ],
)
def test_the_usual_answer_is_read_by_the_kernel(data: bytes, failed: bool) -> None:
    assert kernel is not None
    assert require_same_answer(data)
    found = kernel.read_answer(data, 64)
    assert found is not None and found[2] is failed


@compiled
@pytest.mark.parametrize(
    "result",
    [
        b'{"isError":true,"isError":false}', b'{"is\\u0045rror":true}', b'{"isError":1}', b'{"isError":"true"}',
        b'{"resultType":"input_required"}', b'{"resultType":"complete","resultType":"x"}', b'{"resultType":"complete2"}',
        b"[]", b"null", b'{"a":"\\ud800"}', b'{"a":01}', b'{"a":1.}', b'{"a":.5}', b'{"a":1e}', b'{"a":tru}', b'{"a":}',
        b'{"a":"\t"}', b'{"a":"\\x"}', b'{"a":"\\u12"}', b'{"a":1,}', b'{"a":[1,]}', b'{"a":[1[]}', b'{a:1}', b'{"a":1}}',
        b'{"a":' + b"[" * 70 + b"]" * 70 + b"}", b'{"a":' + b"[" * 100_000, b'{"a":"', b'{"a":"\\', b'{"a":"\\u', b'{"a":1 2}',
        b'{"a":\x0c1}',
    ],
    ids=repr,
)  # fmt: skip
def test_an_odd_answer_is_left_to_python(result: bytes) -> None:
    assert kernel is not None
    assert kernel.read_answer(b'{"jsonrpc":"2.0","id":1,"result":%b}' % result, 64) is None


@compiled
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', b'{"jsonrpc":"2.0","result":{}}', b"",
        b'{"jsonrpc":"2.0","id":1,"id":1,"result":{}}', b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}', b"{", b"{}",
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}', b'{"jsonrpc":"2.0","id":1e1,"result":{}}', b"[]", b"\x00",
        b'{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}', b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"1.0","id":1,"result":{}}', b'{"id":1,"result":{}}', b'{"jsonrpc":"2.0","id":1,"result":{}} x',
        b'{"jsonrpc":"2.0","id":1,"result":{}}\x00', b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
    ],
    ids=repr,
)  # fmt: skip
def test_a_message_that_is_no_usual_answer_is_left_to_python(data: bytes) -> None:
    assert kernel is not None
    assert kernel.read_answer(data, 64) is None


@pytest.mark.parametrize("way", [0, 1, 2])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_a_request_is_read_the_same_with_the_kernel_and_without(
    way: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"name": TOOL_CALL, "arguments": {"name": "b__echo", "arguments": {"message": "x", "n": [1, None]}}}
    data = written({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}, way)
    read = read_request(data)
    monkeypatch.setattr(calls, "kernel", None)
    assert read == read_request(data)
    assert read is not None and read[:3] == (5, method, params)
    assert (read[3] is not None) is (method == "tools/call")


@compiled
@thorough
@given(st.lists(st.sampled_from([b"", b" ", b"\t\r\x0b\x0c", b"a", b" b ", b"\x00", b"\x85", b"x" * 30]), max_size=6))
@example([])
def test_lines_are_those_that_python_finds(pieces: list[bytes]) -> None:
    data = b"".join(piece + b"\n" for piece in pieces)
    framer = LineFramer(1_000)
    found = list(framer.feed(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rpc, "kernel", None)
        assert found == list(framer.feed(data))


HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %b\r\nAccept: */*\r\n\r\n"


@compiled
@thorough
@given(
    st.sampled_from([b"0", b"2", b"02", b"10", b"11", b"", b"-1", b"2 ", b"2\r\n", b"999999999", b"9" * 10, b"x"]),
    st.binary(max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_body_of_a_known_request_is_the_one_that_python_finds(
    length: bytes, body: bytes, chance: random.Random
) -> None:
    head = Head(method="POST", path="/", headers={"content-length": "2"})
    known = Known.of(HEAD % b"2" + b"{}", head)
    assert known is not None
    for data in (HEAD % length + body, spoilt(HEAD % b"%d" % len(body) + body, chance)):
        found = known.body_of(data, 10)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(http_wire, "kernel", None)
            assert found == known.body_of(data, 10)


class OddDict(dict[str, Any]):
    pass


@compiled
@thorough
@given(JSON | st.dictionaries(st.text(max_size=80), JSON, max_size=4))
@example({str(number): number for number in range(60)})
@example({"k" * 64 + str(number): number for number in range(3)})
@example({"a": {"b": {"c": {"d": 1}}}, "e": [1], "f": {}})
@example({"a": {str(n): {str(k): {} for k in range(7)} for n in range(20)}, "b": {str(n): n for n in range(20)}})
@example({"a": (1,), "b": OddDict(c=1), 3: 4, "d": b"x", "e": math.nan})
def test_the_shape_of_arguments_is_the_one_that_python_tells(value: Any) -> None:
    found = shape_of(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(activity, "kernel", None)
        assert exact(found) == exact(shape_of(value))


@compiled
def test_what_is_not_given_as_it_should_be_is_refused() -> None:
    assert kernel is not None
    for wrong in (
        lambda: kernel.read_call("x", TOOL_CALL, 1, 1, 1),
        lambda: kernel.read_call(b"{}", b"x", 1, 1, 1),
        lambda: kernel.read_call(b"{}", TOOL_CALL, 1, "1", 1),
        lambda: kernel.read_answer("x", 1),
        lambda: kernel.read_answer(b"{}", "1"),
        lambda: kernel.lines("x"),
        lambda: kernel.body("x", b"", b"", 1, 1),
        lambda: kernel.body(b"x", b"", b"", 1, "1"),
        lambda: kernel.shape({}, 1, 1),
        lambda: kernel.shape({}, 1, 1, 1, "1"),
    ):
        with pytest.raises(TypeError):
            wrong()
