"""Answers that are nearly JSON-RPC: mended, or an error of the one who waits for them."""

import asyncio
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryLink, eventually
from tests.sources.test_link import open_link

from toolcrib.sources.json_rpc import RpcError
from toolcrib.sources.nearly import answered_ids, messages_in, whole_number, with_whole_characters


def waiting(link: MemoryLink) -> "asyncio.Future[bytes]":
    return asyncio.ensure_future(link.request("work", {}))


async def two_waiting() -> tuple[MemoryLink, "asyncio.Future[bytes]", "asyncio.Future[bytes]"]:
    _, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    one, two = waiting(link), waiting(link)
    await eventually(lambda: len(link.waiters) == 2)
    return link, one, two


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"cut \ud83c", "cut \ufffd"),
        (rb"\udf89 rest", "\ufffd rest"),
        (rb"\uD83C\ud83c\udf89\uDF89", "\ufffd🎉\ufffd"),
        (rb"\\ud83c and \ud83c", "\\ud83c and \ufffd"),
    ],
)
async def test_half_a_character_is_replaced_and_the_rest_is_handed_on(text: bytes, read: str):
    link, one, two = await two_waiting()
    assert link.receive(b'{"jsonrpc":"2.0","id":1,"result":{"text":"%b"}}' % text)
    assert orjson.loads(await one) == {"text": read}
    assert not two.done()
    two.cancel()
    await link.close()


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":-Infinity,"text":"\\ud83c"}}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
        b'{"id":1,"result":{}}',
        b'[{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}]',
        b'{"jsonrpc":"2.0","id":1,"result":{"text":"a\x07b"}}',
    ],
)
async def test_an_answer_that_cannot_be_read_is_an_error_of_who_waits_for_it_at_once(line: bytes):
    link, one, two = await two_waiting()
    link.receive(line)
    with pytest.raises(RpcError, match="cannot be read"):
        await asyncio.wait_for(one, 1)
    assert not two.done()
    two.cancel()
    await link.close()


async def test_answers_that_come_together_are_each_handed_on():
    link, one, two = await two_waiting()
    assert link.receive(b' [{"jsonrpc":"2.0","id":2,"result":{"n":2}},{"jsonrpc":"2.0","id":1,"result":{"n":1}}]')
    assert [orjson.loads(answer)["n"] for answer in await asyncio.gather(one, two)] == [1, 2]
    await link.close()


@pytest.mark.parametrize(
    "line",
    [
        b"[INFO] started", b"[1,2]", b"[[]]", b"[]", b"not json", b'{"id":1}', b'{"id":1,"method":"x","result":{}}',
        b'{"id":true,"result":{}}', b'{"id":1.5,"result":{}}', b'{"id":"x1","result":{}}', b'{"id":9,"result":{}}',
        b"[" * 100_000, b'{"a":' * 100_000,
    ],
)  # fmt: skip
async def test_what_answers_nobody_disturbs_nobody(line: bytes):
    link, one, two = await two_waiting()
    assert not link.receive(line)
    assert not one.done()
    assert not two.done()
    for task in (one, two):
        task.cancel()
    await link.close()


def test_whole_characters_are_left_alone():
    for data in (b"{}", rb'"\ud83c\udf89"', rb'"\\ud83c"', rb'"\\\\uD83C"', rb'"\u00e9\n"'):
        assert with_whole_characters(data) is None


@pytest.mark.parametrize(
    ("identifier", "number"), [(7, 7), (7.0, 7), ("7", 7), ("٧", None), ("9" * 30, None), (True, None), (None, None)]
)
def test_an_id_of_ours_is_a_number_however_it_is_written(identifier: Any, number: int | None):
    assert whole_number(identifier) == number


def test_no_batch_is_inside_a_batch():
    assert messages_in(b'[[{"id":1}]]') == ()
    assert answered_ids(b'[[{"id":1,"result":{}}]]') == []
