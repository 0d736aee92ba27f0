"""Heads of requests and responses as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.gateway.http_wire import JSON, Field, Head, ResponseWriter, build_head, with_length

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
