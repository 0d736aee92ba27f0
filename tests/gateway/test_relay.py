"""What a client can be asked, and in which way."""

import asyncio
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually
from tests.gateway.clients import RawClient, gateway_client

from toolcrib.settings import ApprovalSettings, Settings
from toolcrib.sources.json_rpc import RpcError

ASK = Settings(approvals=ApprovalSettings(rules={"*echo": "ask"}))
URL = {"mode": "url", "elicitationId": "1", "url": "https://example.com/", "message": "Go"}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


class Asking(MemoryServer):
    """An old server that asks once before it answers, and tells what became of it."""

    def __init__(self, question: dict[str, Any]) -> None:
        super().__init__(tools__call=self._call)
        self.question = question

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        self.push({"id": "s1", "method": "elicitation/create", "params": self.question})
        await eventually(lambda: any(message.get("id") == "s1" for message in self.received))
        answer = next(message for message in self.received if message.get("id") == "s1")
        return {"content": [{"type": "text", "text": orjson.dumps(answer).decode()}]}


async def asked(client: RawClient) -> dict[str, Any]:
    """The message that came first after a call: its answer, or a question."""
    await client.names()
    task = asyncio.ensure_future(client.call("one__echo"))
    question = asyncio.ensure_future(client.next(method="elicitation/create"))
    done, pending = await asyncio.wait((task, question), return_when=asyncio.FIRST_COMPLETED)
    for other in pending:
        other.cancel()
    return done.pop().result()


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize(
    ("offered", "question", "is_asked"),
    [
        ({}, FORM, True),
        ({"form": {}}, FORM, True),
        ({"form": {}, "url": {}}, URL, True),
        ({"url": {}}, URL, True),
        ({}, URL, False),
        ({"form": {}}, URL, False),
        ({"url": {}}, FORM, False),
    ],
)
@pytest.mark.requirement("X18")
async def test_a_client_is_asked_only_in_a_way_that_it_offers(
    modern: bool, offered: dict[str, Any], question: dict[str, Any], is_asked: bool
):
    able = {"elicitation": offered}
    async with gateway_client(Asking(question).source("one"), modern=modern, capabilities=able) as client:
        message = await asked(client)
    if is_asked:
        assert "method" in message or message["result"]["resultType"] == "input_required"
    else:
        assert "in the mode" in message["result"]["content"][0]["text"]


@pytest.mark.requirement("X22")
async def test_a_client_that_opens_pages_only_is_not_asked_for_an_approval():
    able = {"elicitation": {"url": {}}}
    async with gateway_client(MemoryServer().source("one"), capabilities=able, settings=ASK) as client:
        message = await asked(client)
    assert "this client cannot ask for it" in message["result"]["content"][0]["text"]


@pytest.mark.requirement("L3")
async def test_a_request_that_says_less_of_its_client_takes_nothing_from_one_under_way():
    server = MemoryServer(tools__call=lambda params: hold.wait())
    hold = asyncio.Event()
    async with gateway_client(server.source("one"), modern=True, capabilities={"elicitation": {}}) as client:
        await client.names()
        first = asyncio.create_task(client.call("one__echo"))
        await eventually(lambda: server.count("tools/call"))
        (waiter,) = server.links[-1].waiters.values()
        client.capabilities = {}
        await client.names()
        exchange = waiter.exchange
        assert exchange is not None
        assert exchange.capabilities == {"elicitation": {}}
        question = asyncio.ensure_future(exchange.ask("elicitation/create", orjson.dumps(FORM)))
        assert (await first)["result"]["resultType"] == "input_required"
        question.cancel()
        hold.set()
        with pytest.raises((RpcError, asyncio.CancelledError)):
            await question
