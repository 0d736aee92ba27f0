"""Replies over HTTP: what a client reads is what was said."""

import re

import orjson
import pytest

from toolcrib.gateway.http_replies import event_of


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_a_line_end_between_the_parts_of_a_message_does_not_end_its_event(end: bytes) -> None:
    message = b'{"jsonrpc":"2.0",%b"id":1,"result":{}}%b' % (end, end)
    name, data, *rest = re.split(rb"\r\n|\r|\n", event_of(message))
    assert (name, rest) == (b"event: message", [b"", b""])
    assert orjson.loads(data.removeprefix(b"data: ")) == orjson.loads(message)
