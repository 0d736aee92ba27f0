"""Whatever a client sends as a call, the gateway, the server and the feed have it the same, however it was read."""

import random
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually
from tests.gateway.clients import gateway_client

from toolcrib import activity
from toolcrib.gateway import calls
from toolcrib.sources import json_rpc, link

USUAL = [
    {"name": "tool_call", "arguments": {"name": "memory__echo", "arguments": {"text": "a\n\"é'"}}},
    {"name": "memory__echo", "arguments": {"text": "x", "n": [1, -5, None, {"deep": [{}]}], "half": 0.5}},
    {"name": "tool_call", "arguments": {"name": "memory__none", "arguments": {}}},
    {"name": "tool_call", "arguments": {"name": "memory__echo", "arguments": {"text": 5}}},
    {"name": "memory__echo", "arguments": None, "_meta": {"progressToken": 3}},
]
ODD = [
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{"text":"a","text":"b"}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{"text":"\\u0061"}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{"n":1e999}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{"n":-0,"m":1.0}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{"n":123456789012345678901}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{"t":"\xff"}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":'
    + b'{"a":' * 80 + b"1" + b"}" * 80 + b"}}",
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":" memory__echo ","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool_call","arguments":{"name":" memory__echo","arguments":{}}}}',
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory__echo","arguments":{}}} x',
]  # fmt: skip


def lines() -> list[bytes]:
    chance = random.Random(5)
    found = [orjson.dumps({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params}) for params in USUAL]
    found = [line.replace(b'"id":0', b'"id":%d') for line in found] + ODD
    for line in found[:]:
        for _ in range(2):
            at = chance.randrange(len(line))
            found.append(line[:at] + bytes([chance.randrange(33, 127)]) + line[at + 1 :])
    return [
        line % number if line.count(b"%") == 1 and b"%d" in line else line for number, line in enumerate(found, 100)
    ]


async def outcome(line: bytes) -> Any:
    """What the client hears of a line that is sent twice, what the server was sent, and what the feed was told."""
    server = MemoryServer()
    async with gateway_client(server.source()) as client:
        await client.ask("tools/list")
        server.received.clear()
        heard: list[Any] = []
        for _ in range(2):
            client.server.feed(line + b"\n")
            client.send({"id": "after", "method": "ping", "params": {}})
            await client.next(id="after")
            await eventually(lambda: not client.server._running)
            heard += [message for message in client.messages if "id" in message]
            client.messages.clear()
        feed = [
            (
                event.stage,
                event.outcome,
                event.tool,
                event.route,
                event.arguments,
                event.tokens,
                event.code,
                event.reason,
            )
            for event in client.crib.activity.events
            if event.call_id is not None
        ]
        return heard, server.received, feed


@pytest.mark.requirement("E1", "A10")
async def test_a_call_has_the_same_outcome_with_the_kernel_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = lines()
    read = [await outcome(line) for line in sent]
    for module in (calls, link, json_rpc, activity):
        monkeypatch.setattr(module, "kernel", None)
    for line, found in zip(sent, read, strict=True):
        assert found == await outcome(line), line
    assert sum(bool(received) for _, received, _ in read) > len(USUAL)
