"""Questions of a server while calls of several clients are under way."""

import asyncio
from typing import Any

import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually
from tests.sources.test_link import Caller, open_link

from toolcrib.execution.dispatch import Era
from toolcrib.sources.turns import Turns


def ask(server: MemoryServer, number: int, **meta: Any) -> None:
    server.push({"id": f"s{number}", "method": "elicitation/create", "params": {"message": "?", "_meta": meta}})


def answered(server: MemoryServer, number: int) -> Any:
    return next((message for message in server.received if message.get("id") == f"s{number}"), None)


@pytest.mark.parametrize("key", ["progressToken", "relatedRequestId"])
@pytest.mark.requirement("L3")
async def test_a_question_that_names_a_call_reaches_its_caller(key: str):
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    ann, bob = Caller("ann"), Caller("bob")
    tasks = [asyncio.create_task(link.request("work", {}, exchange=who)) for who in (ann, bob)]
    await eventually(lambda: server.count("work") == 2)
    ask(server, 1, **{key: server.received[-1]["id"]})
    await eventually(lambda: answered(server, 1))
    assert (ann.asked, bob.asked) == (0, 1)
    for task in tasks:
        task.cancel()
    await link.close()


@pytest.mark.requirement("L3")
async def test_a_question_that_may_be_anybodys_reaches_nobody_and_from_then_on_clients_take_turns():
    release = asyncio.Event()
    server, link, _ = open_link(work=lambda params: release.wait())
    ann, bob = Caller("ann"), Caller("bob")
    first = [asyncio.create_task(link.request("work", {}, exchange=who)) for who in (ann, bob)]
    await eventually(lambda: server.count("work") == 2)
    ask(server, 1)
    assert "several clients" in answered(server, 1)["error"]["message"]
    assert (ann.asked, bob.asked) == (0, 0)
    release.set()
    await asyncio.gather(*first)
    release.clear()
    second = [asyncio.create_task(link.request("work", {}, exchange=who)) for who in (ann, bob)]
    await eventually(lambda: server.count("work") == 3)
    ask(server, 2)
    await eventually(lambda: answered(server, 2))
    assert (ann.asked, bob.asked, server.count("work")) == (1, 0, 3)
    release.set()
    await asyncio.gather(*second)
    assert server.count("work") == 4
    await link.close()


async def test_turns_are_taken_in_order_and_one_owners_calls_overlap():
    turns, log = Turns(), list[str]()
    gates = {name: asyncio.Event() for name in ("a1", "a2", "b1", "a3", "c1")}

    async def run(name: str) -> None:
        async with turns.take(name[0]):
            log.append(name)
            await gates[name].wait()

    tasks = {name: asyncio.create_task(run(name)) for name in gates}
    await eventually(lambda: len(log) == 2)
    assert log == ["a1", "a2"]
    tasks["b1"].cancel()
    await asyncio.gather(tasks["b1"], return_exceptions=True)
    gates["a1"].set()
    gates["a2"].set()
    await eventually(lambda: "a3" in log)
    assert "c1" not in log
    gates["a3"].set()
    await eventually(lambda: "c1" in log)
    gates["c1"].set()
    await asyncio.gather(*(task for name, task in tasks.items() if name != "b1"))


@pytest.mark.requirement("L3")
async def test_as_long_as_one_client_calls_at_a_time_nobody_has_to_wait_for_turns():
    server, link, _ = open_link(work=lambda params: asyncio.Event().wait())
    ann, bob = Caller("ann"), Caller("bob")
    tasks = [asyncio.create_task(link.request("work", {}, exchange=ann))]
    await eventually(lambda: server.count("work") == 1)
    ask(server, 1)
    await eventually(lambda: answered(server, 1))
    tasks.append(asyncio.create_task(link.request("work", {}, exchange=bob)))
    await eventually(lambda: server.count("work") == 2)
    assert (ann.asked, bob.asked, link.turns.needed) == (1, 0, False)
    for task in tasks:
        task.cancel()
    await link.close()


class Silent(Caller):
    """A stateless client that was asked and does not come back."""

    era: Era = "modern"

    async def ask(self, method: str, params: bytes) -> bytes:
        await super().ask(method, params)
        return await asyncio.Event().wait() and b""


async def test_a_stateless_client_that_does_not_come_back_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.sources.link.PARKED_WANTED_S", 0)
    server, link, _ = open_link(work=lambda params: eventually(lambda: answered(server, 1)))
    link.turns.needed = True
    silent, other = Silent("ann"), Caller("bob")
    first = asyncio.create_task(link.request("work", {}, exchange=silent))
    await eventually(lambda: server.count("work") == 1)
    ask(server, 1)
    await eventually(lambda: silent.asked)
    assert answered(server, 1) is None
    second = asyncio.create_task(link.request("work", {}, exchange=other))
    await asyncio.gather(first, second)
    assert "others wait" in answered(server, 1)["error"]["message"]
    await link.close()
