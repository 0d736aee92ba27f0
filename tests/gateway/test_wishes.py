"""What clients wish of a server once for all: to hear of resources, and which log messages. It is asked for all of them."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually

from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.relay import Client, ClientExchange
from toolcrib.gateway.server import Gateway
from toolcrib.settings import ProfileSettings
from toolcrib.sources.json_rpc import RpcError
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.supervisor import Pace

A = {"uri": "one+repo://a"}


class Hasty(random.Random):
    """Waits no longer than it must."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Nobody:
    def push(self, message: bytes) -> None:
        raise ConnectionError


def follower() -> MemoryServer:
    return MemoryServer(
        resources__list=lambda params: {"resources": [{"uri": "repo://a", "name": "a"}]},
        resources__subscribe=lambda params: {},
        resources__unsubscribe=lambda params: {},
        logging__setLevel=lambda params: {},
    )


@asynccontextmanager
async def gateway_over(**servers: MemoryServer) -> AsyncGenerator[Gateway]:
    pace = Pace(clock=lambda: 0.0, every_s=0)
    sources = [McpSource(name, server.connect, rng=Hasty(), pace=pace) for name, server in servers.items()]
    profiles = Profiles({name: ProfileSettings(toolsets=(f"mcp-{name}",)) for name in servers})
    gateway = Gateway(Crib(*sources, core=()), profiles)
    async with gateway.crib:
        await gateway.wait_settled()
        yield gateway


def client_of(gateway: Gateway, name: str, profile: str = "default") -> Client:
    principal = gateway.profiles.principal(name, profile)
    return gateway.open_client(principal, "legacy", version="2025-11-25", capabilities={})


async def ask(gateway: Gateway, client: Client, method: str, **params: Any) -> bytes:
    return await gateway.answer(client, method, params, ClientExchange(client, params, Nobody()))


@pytest.mark.requirement("L3", "X20")
async def test_a_resource_is_followed_at_its_server_as_long_as_anybody_follows_it():
    server = follower()
    async with gateway_over(one=server) as gateway:
        ann, bob, red = (client_of(gateway, name) for name in ("ann", "bob", "red"))
        await ask(gateway, ann, "resources/subscribe", **A)
        await ask(gateway, bob, "resources/subscribe", **A)
        await ask(gateway, ann, "resources/unsubscribe", **A)
        await ask(gateway, red, "resources/unsubscribe", **A)
        assert (server.count("resources/subscribe"), server.count("resources/unsubscribe")) == (1, 0)
        bob.left()
        await eventually(lambda: server.count("resources/unsubscribe") == 1)
        await ask(gateway, red, "resources/subscribe", **A)
        assert server.count("resources/subscribe") == 2


@pytest.mark.requirement("K1")
async def test_a_server_that_was_started_again_is_told_what_the_one_before_knew():
    server = follower()
    async with gateway_over(one=server) as gateway:
        ann = client_of(gateway, "ann")
        await ask(gateway, ann, "resources/subscribe", **A)
        await ask(gateway, ann, "logging/setLevel", level="info")
        await eventually(lambda: server.count("logging/setLevel") == 1)
        server.links[-1].fail("gone")
        await eventually(lambda: server.count("resources/subscribe") == 2 and server.count("logging/setLevel") == 2)


async def test_a_resource_that_the_server_does_not_let_be_followed_is_asked_for_by_the_next_one_too():
    server = follower()
    del server.methods["resources/subscribe"]
    async with gateway_over(one=server) as gateway:
        ann, bob = (client_of(gateway, name) for name in ("ann", "bob"))
        for client in (ann, bob):
            with pytest.raises(RpcError, match="not here"):
                await ask(gateway, client, "resources/subscribe", **A)
        assert server.count("resources/subscribe") == 2
        assert not gateway.library._followers


async def test_one_client_follows_so_many_resources(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.library.SUBSCRIPTIONS_PER_CLIENT", 1)
    async with gateway_over(one=follower()) as gateway:
        ann = client_of(gateway, "ann")
        await ask(gateway, ann, "resources/subscribe", **A)
        await ask(gateway, ann, "resources/subscribe", **A)
        with pytest.raises(RpcError, match="at most 1"):
            await ask(gateway, ann, "resources/subscribe", uri="one+repo://b")
        assert list(gateway.library._followers) == [("mcp-one", "repo://a")]


@pytest.mark.parametrize("follows_more", [False, True])
async def test_whoever_leaves_while_the_server_is_asked_to_be_followed_follows_nothing(follows_more: bool):
    server, answer = follower(), asyncio.Event()
    server.methods["resources/list"] = lambda params: {"resources": [{"uri": f"repo://{name}"} for name in "ab"]}

    async def subscribe(params: JsonObject) -> JsonObject:
        await answer.wait()
        return {}

    async with gateway_over(one=server) as gateway:
        ann = client_of(gateway, "ann")
        if follows_more:
            await ask(gateway, ann, "resources/subscribe", uri="one+repo://b")
        server.methods["resources/subscribe"] = subscribe
        before = server.count("resources/subscribe")
        task = asyncio.create_task(ask(gateway, ann, "resources/subscribe", **A))
        await eventually(lambda: server.count("resources/subscribe") > before)
        ann.left()
        answer.set()
        await task
        assert not gateway.library._followers
        await eventually(lambda: server.count("resources/unsubscribe") == before + 1)


def levels(server: MemoryServer) -> list[str]:
    return [item["params"]["level"] for item in server.received if item.get("method") == "logging/setLevel"]


@pytest.mark.requirement("L3")
async def test_servers_are_asked_for_what_the_most_curious_client_wants_that_may_use_them():
    one, two = follower(), follower()
    async with gateway_over(one=one, two=two) as gateway:
        curious, quiet = client_of(gateway, "ann", "one"), client_of(gateway, "bob")
        await ask(gateway, curious, "logging/setLevel", level="debug")
        await ask(gateway, quiet, "logging/setLevel", level="error")
        await eventually(lambda: levels(one) and levels(two))
        assert (levels(one), levels(two)) == (["debug"], ["error"])
        curious.left()
        await eventually(lambda: len(levels(one)) == 2)
        assert levels(one) == ["debug", "error"]


@pytest.mark.requirement("L3")
async def test_servers_are_asked_for_usual_messages_when_the_last_client_left_that_wanted_others_and_then_no_more():
    one, two = follower(), follower()
    async with gateway_over(one=one, two=two) as gateway:
        curious, follows = client_of(gateway, "ann", "one"), client_of(gateway, "bob", "one")
        await ask(gateway, follows, "resources/subscribe", **A)
        await ask(gateway, curious, "logging/setLevel", level="debug")
        curious.left()
        await eventually(lambda: len(levels(one)) == 2)
        one.links[-1].fail("gone")
        await eventually(lambda: one.count("resources/subscribe") == 2)
        assert (levels(one), levels(two)) == (["debug", "info"], [])
