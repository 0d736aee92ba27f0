"""Heads of requests and responses as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.gateway.http_wire import JSON, Field, Head, Known, ResponseWriter, build_head, with_length

NAMES = st.sampled_from([b"host", b"Host", b"content-length", b"Content-Length", b"accept", b"x"])
FIELDS = st.lists(st.tuples(NAMES, st.sampled_from([b"1", b" 22\t", b"a"])), max_size=5)


def head_of(fields: list[Field]) -> Head:
    return build_head(fields, method="POST", target="/mcp", address="here")


@given(FIELDS, FIELDS | st.none(), st.integers(0, 4))
def test_a_head_with_another_length_is_the_head_that_would_have_been_read(
    before: list[Field], other: list[Field] | None, place: int
) -> None:
    # Another list altogether, or the same one with the value of one field changed.
    after = [(name, b"77" if number == place else value) for number, (name, value) in enumerate(before)]
    after = after if other is None else other
    found = with_length(head_of(before), before, after)
    assert found is None or found == head_of(after)


def test_only_the_length_may_be_another() -> None:
    before = [(b"Host", b"localhost"), (b"Content-Length", b"10")]
    head = head_of(before)
    longer = with_length(head, before, [(b"Host", b"localhost"), (b"Content-Length", b"11")])
    assert longer is not None
    assert longer.headers == {"host": "localhost", "content-length": "11"}
    assert with_length(head, before, [(b"Host", b"evil.example"), (b"Content-Length", b"10")]) is None
    assert with_length(head, before, [(b"Host", b"evil.example"), (b"Content-Length", b"11")]) is None
    assert with_length(head, before, [(b"Host", b"localhost"), (b"X", b"11")]) is None
    assert with_length(head, before, [*before, (b"Content-Length", b"11")]) is None


@pytest.mark.parametrize("length", [1, 200, 4_000_000])
def test_the_usual_response_has_the_head_that_any_other_has(length: int) -> None:
    now = [1_000_000_000.5]
    writer = ResponseWriter(lambda: now[0])
    for _ in range(3):
        assert writer.json_head(length) == writer.head(200, (JSON,), length=length, keep_alive=True, chunked=False)
        now[0] += 0.6


HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %b\r\nAccept: */*\r\n\r\n"


def known_by(length: bytes, body: bytes, head: bytes = HEAD) -> Known | None:
    fields = [(b"Host", b"localhost"), (b"Content-Length", length), (b"Accept", b"*/*")]
    return Known.of(head % length + body, head_of(fields))


def test_a_request_with_another_length_is_known_by_its_head() -> None:
    known = known_by(b"2", b"{}")
    assert known is not None
    assert known.body_of(HEAD % b"12" + b"x" * 12, 100) == b"x" * 12
    assert known.body_of(HEAD % b"0", 100) == b""


@pytest.mark.parametrize(
    "data",
    [
        HEAD % b"3" + b"{}",  # not whole
        HEAD % b"1" + b"{}",  # more than one request
        HEAD % b"" + b"",
        HEAD % b"-2" + b"{}",
        HEAD % b"+2" + b"{}",
        HEAD % b"0x2" + b"{}",
        HEAD % b"2, 2" + b"{}",
        HEAD % b"2\r\nContent-Length: 3" + b"{}",
        HEAD % b"0000000000002" + b"{}",
        HEAD.replace(b"localhost", b"evil.test") % b"2" + b"{}",
        HEAD.replace(b"*/*", b"a/b") % b"2" + b"{}",
        HEAD.replace(b"1.1", b"1.0") % b"2" + b"{}",
        b"\r\n" + HEAD % b"2" + b"{}",
        HEAD % b"101" + b"x" * 101,  # beyond its bound
        b"",
    ],
)
def test_whatever_differs_in_more_than_the_length_is_left_to_the_parser(data: bytes) -> None:
    known = known_by(b"2", b"{}")
    assert known is not None
    assert known.body_of(data, 100) is None


def test_a_head_whose_end_or_length_is_not_plain_teaches_nothing() -> None:
    assert known_by(b"2", b"{}{}") is None
    assert known_by(b"2", b"{}", HEAD.replace(b"Accept", b"Content-Length: 2\r\nAccept")) is None
    assert known_by(b"2", b"{}", b"POST / HTTP/1.1\r\nX: y\r\n\r\n%.0b") is None
    chunked = [(b"Content-Length", b"2"), (b"Transfer-Encoding", b"chunked")]
    assert Known.of(HEAD % b"2" + b"{}", head_of(chunked)) is None
