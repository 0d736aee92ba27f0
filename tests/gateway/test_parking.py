"""Questions of old servers to stateless clients: the call waits, and goes on when the client comes back."""

import asyncio
from itertools import count
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.clients import RawClient, gateway_client
from tests.gateway.test_wishes import Nobody, gateway_over

from toolcrib.gateway.relay import ClientExchange
from toolcrib.gateway.server import Gateway
from toolcrib.limits import CONCURRENCY_PER_SESSION
from toolcrib.settings import ApprovalSettings, LimitSettings, Settings

ABLE = {"elicitation": {}, "sampling": {}}
WHO = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
YES = {"action": "accept", "content": {}}
ONE_PLACE = Settings(limits=LimitSettings(concurrency_per_session=1))


class Asking(MemoryServer):
    """An old server that asks before it answers."""

    def __init__(self, *questions: tuple[str, dict[str, Any]]) -> None:
        super().__init__(tools__call=self._call)
        self.questions = questions or (("elicitation/create", WHO),)
        self.answers: list[Any] = []
        self.ids = count()
        self.asks = asyncio.Event()
        self.asks.set()

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["name"] == "plain":
            return {"content": [{"type": "text", "text": "plain"}]}
        await self.asks.wait()
        for method, asked in self.questions:
            self.push({"id": (key := f"s{next(self.ids)}"), "method": method, "params": asked})
            await eventually(lambda: any(m.get("id") == key for m in self.received))
            self.answers.append(next(m for m in self.received if m.get("id") == key))
        return {"content": [{"type": "text", "text": "done"}]}


async def answer(client: RawClient, asked: dict[str, Any], value: Any, **more: Any) -> dict[str, Any]:
    (key,) = asked["inputRequests"]
    arguments = more.pop("arguments", {"text": "x"})
    return await client.call(
        more.pop("tool", "one__echo"),
        arguments,
        inputResponses={key: value},
        requestState=asked["requestState"],
        **more,
    )


@pytest.mark.requirement("X18", "G8")
async def test_the_question_is_the_result_and_the_same_call_goes_on_with_the_answer():
    server = Asking()
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE) as client:
        await client.names()
        asked = (await client.call("one__echo", {"text": "x"}))["result"]
        assert asked["resultType"] == "input_required"
        assert list(asked["inputRequests"].values()) == [{"method": "elicitation/create", "params": WHO}]
        done = (await answer(client, asked, {"action": "accept", "content": {"name": "me"}}))["result"]
    assert (done["resultType"], done["content"][0]["text"]) == ("complete", "done")
    assert server.answers[0]["result"] == {"action": "accept", "content": {"name": "me"}}
    assert server.count("tools/call") == 1


@pytest.mark.requirement("X18")
async def test_several_questions_are_several_rounds():
    sample = {"messages": [], "maxTokens": 5}
    server = Asking(("elicitation/create", WHO), ("sampling/createMessage", sample))
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE) as client:
        await client.names()
        first = (await client.call("one__echo", {"text": "x"}))["result"]
        second = (await answer(client, first, {"action": "decline"}))["result"]
        assert next(iter(second["inputRequests"].values()))["method"] == "sampling/createMessage"
        assert second["requestState"] != first["requestState"]
        done = (await answer(client, second, {"role": "assistant", "content": {}, "model": "m"}))["result"]
    assert done["content"][0]["text"] == "done"
    assert server.count("tools/call") == 1


@pytest.mark.requirement("G8")
async def test_a_state_counts_once_for_the_request_that_it_was_given_for():
    server = Asking()
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE) as client:
        await client.names()
        asked = (await client.call("one__echo", {"text": "x"}))["result"]
        yes = {"action": "accept", "content": {}}
        other = await answer(client, asked, yes, arguments={"text": "y"})
        forged = await answer(client, {**asked, "requestState": "toolcrib-call.forged"}, yes)
        done = await answer(client, asked, yes)
        again = await answer(client, asked, yes)
    assert [item["error"]["code"] for item in (other, forged, again)] == [-32602] * 3
    assert done["result"]["content"][0]["text"] == "done"
    assert server.count("tools/call") == 1


@pytest.mark.requirement("X18")
async def test_a_client_that_did_not_say_that_it_answers_is_not_asked():
    server = Asking()
    async with gateway_client(server.source("one"), modern=True, capabilities={"sampling": {}}) as client:
        await client.names()
        done = await client.call("one__echo", {"text": "x"})
    assert done["result"]["content"][0]["text"] == "done"
    assert "does not offer" in server.answers[0]["error"]["message"]


@pytest.mark.requirement("X18", "X22")
async def test_an_approval_and_a_question_of_the_server_are_two_rounds_of_one_call():
    server = Asking()
    settings = Settings(approvals=ApprovalSettings(rules={"*echo": "ask"}))
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE, settings=settings) as client:
        await client.names()
        approval = (await client.call("one__echo", {"text": "x"}))["result"]
        asked = (await answer(client, approval, {"action": "accept", "content": {"allow": True}}))["result"]
        done = (await answer(client, asked, {"action": "accept", "content": {}}))["result"]
    assert done["content"][0]["text"] == "done"
    assert server.count("tools/call") == 1


@pytest.mark.requirement("G8")
async def test_calls_that_nobody_comes_back_for_leave_places_for_others_of_the_same_principal():
    server = Asking()
    settings = Settings(limits=LimitSettings(concurrency_per_session=2))
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE, settings=settings) as client:
        await client.names()
        first, second, third = [(await client.call("one__echo", {"text": "x"}))["result"] for _ in range(3)]
        await eventually(lambda: server.count("notifications/cancelled") == 1)
        late, *done = [await answer(client, asked, YES) for asked in (first, second, third)]
    assert late["error"]["code"] == -32602
    assert [item["result"]["content"][0]["text"] for item in done] == ["done", "done"]


@pytest.mark.requirement("G8", "X18")
async def test_as_many_calls_may_wait_for_their_client_as_there_are_places_while_no_other_wants_one():
    server = Asking()
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE) as client:
        await client.names()
        parked = [(await client.call("one__echo", {"text": "x"}))["result"] for _ in range(CONCURRENCY_PER_SESSION)]
        done = [await answer(client, asked, YES) for asked in parked]
    assert all(item["result"]["resultType"] == "complete" for item in done)
    assert server.count("notifications/cancelled") == 0


@pytest.mark.parametrize("able", [ABLE, {}])
@pytest.mark.requirement("G8", "L7")
async def test_a_call_that_waits_for_its_client_gives_its_only_place_to_one_that_comes_later(able: dict[str, Any]):
    server = Asking()
    server.tools.append(tool("plain"))
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE, settings=ONE_PLACE) as client:
        await client.names()
        asked = (await client.call("one__echo", {"text": "x"}))["result"]
        client.capabilities = able
        plain = await client.call("one__plain")
        late = await answer(client, asked, YES)
    assert plain["result"]["content"][0]["text"] == "plain"
    assert late["error"]["code"] == -32602


@pytest.mark.requirement("G8", "L7")
async def test_a_call_is_not_left_waiting_for_its_client_in_the_only_place_that_another_stands_in_line_for():
    server = Asking()
    server.tools.append(tool("plain"))
    server.asks.clear()
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE, settings=ONE_PLACE) as client:
        await client.names()
        asking = asyncio.create_task(client.call("one__echo", {"text": "x"}))
        await eventually(lambda: server.count("tools/call"))
        plain = asyncio.create_task(client.call("one__plain"))
        (places,) = client.server._gateway._places.values()
        await eventually(lambda: places.is_wanted)
        server.asks.set()
        assert "stand in line" in (await asking)["error"]["message"]
        assert (await plain)["result"]["content"][0]["text"] == "plain"


@pytest.mark.requirement("G8", "L7")
async def test_calls_that_take_no_place_are_parked_no_more_often_than_there_are_places():
    server = Asking()
    server.methods["prompts/list"] = lambda params: {"prompts": [{"name": "greet"}]}
    server.methods["prompts/get"] = server.methods["tools/call"]
    async with gateway_client(server.source("one"), modern=True, capabilities=ABLE, settings=ONE_PLACE) as client:
        await client.names()
        for _ in range(3):
            assert (await client.ask("prompts/get", name="one__greet"))["result"]["resultType"] == "input_required"
        assert len(client.server._gateway.parking) == 1
        assert (await client.call("one__echo", {"text": "x"}))["result"]["resultType"] == "input_required"
        assert len(client.server._gateway.parking) == 2


@pytest.mark.requirement("G8")
async def test_a_server_that_asked_for_a_client_that_does_not_come_back_is_told_and_nothing_waits_on():
    server = Asking()
    async with gateway_over(one=server) as gateway:
        before = asyncio.all_tasks()
        await call_as_new_client(gateway)
        assert len(server.links[-1]._questions) == 1
        (state,) = gateway.parking._calls
        gateway.parking._calls[state].expires = 0
        gateway.parking._sweep()
        await eventually(lambda: server.answers)
        assert "has not answered" in server.answers[0]["error"]["message"]
        await eventually(lambda: asyncio.all_tasks() <= before)


@pytest.mark.requirement("L3")
async def test_a_question_during_two_requests_of_one_stateless_principal_reaches_neither_and_then_they_take_turns():
    hold = asyncio.Event()

    async def work(params: dict[str, Any]) -> dict[str, Any]:
        await hold.wait()
        return {"content": []}

    server = MemoryServer(tools__call=work)
    async with gateway_over(one=server) as gateway:
        tasks = [asyncio.create_task(call_as_new_client(gateway)) for _ in range(2)]
        await eventually(lambda: server.count("tools/call") == 2)
        server.push({"id": "s1", "method": "elicitation/create", "params": WHO})
        assert "several clients" in server.received[-1]["error"]["message"]
        hold.set()
        assert [(await task)["resultType"] for task in tasks] == ["complete"] * 2
        hold.clear()
        first, second = [asyncio.create_task(call_as_new_client(gateway)) for _ in range(2)]
        await eventually(lambda: server.count("tools/call") == 3)
        server.push({"id": "s2", "method": "elicitation/create", "params": WHO})
        asked = await first
        hold.set()
        answers = {"inputResponses": {key: {"action": "decline"} for key in asked["inputRequests"]}}
        done = await call_as_new_client(gateway, requestState=asked["requestState"], **answers)
        assert (done["resultType"], (await second)["resultType"]) == ("complete", "complete")
    assert server.count("tools/call") == 4


async def call_as_new_client(gateway: Gateway, **more: Any) -> dict[str, Any]:
    """A call as it comes over HTTP: each request is a client."""
    principal = gateway.profiles.principal("ann")
    client = gateway.open_client(principal, "modern", version="x", capabilities=ABLE)
    params = {"name": "one__echo", "arguments": {}, **more}
    return orjson.loads(await gateway.answer(client, "tools/call", params, ClientExchange(client, params, Nobody())))
