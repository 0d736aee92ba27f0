"""A running gateway and its lock: what is approved counts at once, and what is held back is held back whole."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.clients import gateway_client

from toolcrib.crib import Crib
from toolcrib.gateway.lock_watch import watch_lock
from toolcrib.intake.pins import Launch, Lock, approve, compare, write_lock
from toolcrib.settings import Settings
from toolcrib.sources.mcp_source import McpSource

LISTS: Any = {
    "prompts__list": lambda params: {"prompts": [{"name": "greet", "description": "Says hello."}]},
    "resources__list": lambda params: {"resources": [{"uri": "repo://a", "name": "a"}]},
    "prompts__get": lambda params: {"messages": []},
}
ENFORCE = Settings(pins="enforce")


def launched(server: MemoryServer, command: str) -> McpSource:
    return McpSource("one", server.connect, launch=Launch(command=command))


async def approved(path: Path, *sources: McpSource) -> Path:
    crib = Crib(*sources, settings=Settings(pins="off"))
    async with crib:
        await crib.settle(wait_s=60)
        write_lock(path, approve(crib.offers, Lock(), compare(crib.offers, Lock())))
    return path


@pytest.mark.requirement("X21", "C5", "C7")
async def test_what_is_approved_while_the_gateway_runs_is_there_without_a_restart_and_clients_are_told(tmp_path: Path):
    lock = tmp_path / "toolcrib.lock"
    source = launched(MemoryServer([tool("echo"), tool("fresh")]), "right")
    async with gateway_client(source, settings=ENFORCE, lock=lock) as client:
        assert await client.names() == []
        watch = asyncio.create_task(watch_lock(client.crib, client.changes, every_s=0.001))
        await approved(lock, launched(MemoryServer([tool("echo")]), "right"))
        await client.next(method="notifications/tools/list_changed")
        assert await client.names() == ["one__echo"]
        await approved(lock, launched(MemoryServer([tool("echo"), tool("fresh")]), "right"))
        await client.next(method="notifications/tools/list_changed")
        assert await client.names() == ["one__echo", "one__fresh"]
        lock.unlink()
        await client.next(method="notifications/tools/list_changed")
        assert await client.names() == []
        watch.cancel()


@pytest.mark.parametrize(("command", "there"), [("right", True), ("swapped", False)])
@pytest.mark.requirement("C6", "C8", "X20")
async def test_a_server_that_is_not_started_as_approved_passes_on_nothing_at_all(
    tmp_path: Path, command: str, there: bool
):
    lock = await approved(tmp_path / "toolcrib.lock", launched(MemoryServer(), "right"))
    server = MemoryServer(**LISTS)
    async with gateway_client(launched(server, command), settings=ENFORCE, lock=lock) as client:
        names = await client.names()
        prompts = (await client.ask("prompts/list"))["result"]["prompts"]
        resources = (await client.ask("resources/list"))["result"]["resources"]
        await client.ask("prompts/get", name="one__greet")
        await client.ask("resources/read", uri="one+repo://a")
    assert [bool(found) for found in (names, prompts, resources)] == [there] * 3
    assert (server.count("prompts/get"), server.count("resources/read")) == ((1, 1) if there else (0, 0))


@pytest.mark.requirement("C1", "X20")
async def test_a_prompt_and_a_resource_with_hidden_characters_are_not_listed_and_the_others_are():
    hidden = "Says hello.\u200b\U000e0041\U000e0042"
    server = MemoryServer(
        prompts__list=lambda params: {
            "prompts": [
                {"name": "bad", "description": hidden},
                {"name": "deep", "arguments": [{"name": "x", "description": hidden}]},
                {"name": "good"},
            ]
        },
        resources__list=lambda params: {"resources": [{"uri": "repo://a", "title": hidden}, {"uri": "repo://b"}]},
    )
    async with gateway_client(server.source("one")) as client:
        prompts = (await client.ask("prompts/list"))["result"]["prompts"]
        resources = (await client.ask("resources/list"))["result"]["resources"]
        refused = await client.ask("prompts/get", name="one__bad")
    assert [prompt["name"] for prompt in prompts] == ["one__good"]
    assert [resource["uri"] for resource in resources] == ["one+repo://b"]
    assert "no prompt" in refused["error"]["message"]


async def test_a_lock_that_cannot_be_used_leaves_the_last_good_one_in_force(tmp_path: Path):
    lock = await approved(tmp_path / "toolcrib.lock", launched(MemoryServer(), "right"))
    async with gateway_client(launched(MemoryServer(), "right"), settings=ENFORCE, lock=lock) as client:
        assert await client.names() == ["one__echo"]
        watch = asyncio.create_task(watch_lock(client.crib, client.changes, every_s=0.001))
        lock.write_text("{not a lock")
        await eventually(lambda: not client.crib.intake.is_outdated and client.crib.inventory)
        assert await client.names() == ["one__echo"]
        watch.cancel()
