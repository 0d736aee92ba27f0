import asyncio
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryLink, MemoryServer, eventually

from toolcrib.definitions import JsonObject
from toolcrib.errors import SourceUnavailable
from toolcrib.execution.dispatch import Era
from toolcrib.sources.json_rpc import RpcError
from toolcrib.sources.withheld import Withheld


class Caller:
    """A caller that remembers what it was told and asked."""

    era: Era = "legacy"
    wants_progress = True

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.capabilities: JsonObject = {}
        self.meta: JsonObject = {}
        self.answers: JsonObject = {}
        self.told: list[tuple[str, Any]] = []

    @property
    def asked(self) -> int:
        return sum(method == "elicitation/create" for method, _ in self.told)

    def progress(self, params: JsonObject) -> None:
        self.told.append(("progress", params["progress"]))

    def notify(self, method: str, params: bytes) -> None:
        self.told.append((method, orjson.loads(params)))

    async def ask(self, method: str, params: bytes) -> bytes:
        self.told.append((method, orjson.loads(params)))
        return b'{"action":"accept"}'


def open_link(**methods: Any) -> tuple[MemoryServer, MemoryLink, list[str]]:
    heard: list[str] = []
    server = MemoryServer(**methods)
    link = MemoryLink(server, lambda method, params: heard.append(method))
    server.links.append(link)
    return server, link, heard


@pytest.mark.requirement("L1")
async def test_two_hundred_callers_each_get_their_own_answer():
    _, link, _ = open_link(work=lambda params: {"nonce": params["nonce"]})
    answers = await asyncio.gather(*(link.request("work", {"nonce": number}) for number in range(200)))
    assert [orjson.loads(answer)["nonce"] for answer in answers] == list(range(200))
    assert not link.waiters


@pytest.mark.requirement("I8")
async def test_answers_that_nobody_waits_for_are_counted_and_dropped():
    _, link, _ = open_link()
    for message in ({"id": 99, "result": {}}, {"id": "1", "result": {}}, {"id": None, "result": {}}, {"result": {}}):
        link.receive(orjson.dumps({"jsonrpc": "2.0", **message}))
    assert link.strays == 4


@pytest.mark.requirement("X17")
async def test_whoever_waits_is_told_the_end_without_the_secrets_of_the_server():
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    link.withheld = Withheld(["sk-12345678"])
    request = asyncio.ensure_future(link.request("work", {}))
    await eventually(lambda: server.received)
    link.fail("it does not know sk-12345678")
    with pytest.raises(SourceUnavailable, match=r"^it does not know \*\*\*$"):
        await request
    assert link.reason == "it does not know ***"
    await link.close()


async def test_an_error_answer_is_an_rpc_error_with_its_data():
    def refuse(params: JsonObject) -> JsonObject:
        raise RpcError(-32042, "go there", {"url": "x"})

    _, link, _ = open_link(work=refuse)
    with pytest.raises(RpcError) as caught:
        await link.request("work", {})
    assert (caught.value.code, caught.value.data) == (-32042, {"url": "x"})


@pytest.mark.requirement("K3")
async def test_a_caller_that_goes_away_is_cancelled_at_the_server():
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    task = asyncio.create_task(link.request("work", {}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.received[-1]["method"] == "notifications/cancelled"
    assert server.received[-1]["params"]["requestId"] == server.received[0]["id"]
    assert not link.waiters
    await link.close()


@pytest.mark.requirement("L3")
async def test_progress_reaches_the_caller_whose_token_it_bears_and_no_other():
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    ann, bob = Caller("ann"), Caller("bob")
    tasks = [asyncio.create_task(link.request("work", {}, exchange=caller)) for caller in (ann, bob)]
    await asyncio.sleep(0)
    token = server.received[1]["params"]["_meta"]["progressToken"]
    server.push({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    server.push({"method": "notifications/progress", "params": {"progressToken": 999, "progress": 2}})
    assert (ann.told, bob.told) == ([], [("progress", 1)])
    await link.close()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.requirement("L3")
async def test_what_could_be_meant_for_two_callers_reaches_neither():
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    ann, bob = Caller("ann"), Caller("bob")
    tasks = [asyncio.create_task(link.request("work", {}, exchange=ann))]
    await asyncio.sleep(0)
    server.push({"method": "notifications/message", "params": {"data": "one"}})
    tasks.append(asyncio.create_task(link.request("work", {}, exchange=bob)))
    await asyncio.sleep(0)
    server.push({"method": "notifications/message", "params": {"data": "two"}})
    server.push({"id": 7, "method": "elicitation/create", "params": {}})
    assert ann.told == [("notifications/message", {"data": "one"})]
    assert bob.told == []
    assert server.received[-1]["error"]["code"] == -32601
    await link.close()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_question_goes_to_the_only_caller_and_its_answer_back():
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    ann = Caller("ann")
    task = asyncio.create_task(link.request("work", {}, exchange=ann))
    await asyncio.sleep(0)
    server.push({"id": "q", "method": "elicitation/create", "params": {"message": "?"}})
    server.push({"id": "p", "method": "ping"})
    server.push({"id": "r", "method": "shell/run", "params": {}})
    for _ in range(5):
        await asyncio.sleep(0)
    answers = {message["id"]: message for message in server.received if "method" not in message}
    assert ann.told == [("elicitation/create", {"message": "?"})]
    assert answers["q"]["result"] == {"action": "accept"}
    assert answers["p"]["result"] == {}
    assert answers["r"]["error"]["code"] == -32601
    await link.close()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.requirement("K1")
async def test_everybody_who_waits_is_told_when_the_link_ends():
    _, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    tasks = [asyncio.create_task(link.request("work", {})) for _ in range(3)]
    await asyncio.sleep(0)
    link.fail("it exited with code 3")
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(item, SourceUnavailable) and "code 3" in str(item) for item in results)
    with pytest.raises(SourceUnavailable):
        await link.request("work", {})
    await link.close()


@pytest.mark.requirement("X17", "K1")
async def test_what_fails_is_logged_with_where_it_happened_and_without_secrets(caplog: pytest.LogCaptureFixture):
    server = MemoryServer()
    server.withheld = Withheld(["sk-12345678"])

    def listen(method: str, params: bytes) -> None:
        raise ValueError("cannot be told to sk-12345678")

    link = MemoryLink(server, listen)
    server.links.append(link)
    server.push({"method": "notifications/tools/list_changed"})
    assert "could not be passed on" in caplog.text
    assert "in listen" in caplog.text
    assert "cannot be told to ***" in caplog.text
    assert "12345678" not in caplog.text
