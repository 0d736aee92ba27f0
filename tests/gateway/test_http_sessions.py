"""Who keeps what open over HTTP, and who has to make room."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually
from tests.gateway.http_clients import client_of
from tests.gateway.test_http import ask, modern, open_session, served

from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject
from toolcrib.execution.errands import Errand
from toolcrib.gateway.auth import TokenFile
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.http_replies import Reply
from toolcrib.gateway.http_sessions import HttpSession, HttpSessions
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.server import Gateway
from toolcrib.limits import SESSION_IDLE_S
from toolcrib.sources.json_rpc import RpcError


class House:
    """Sessions, a clock, and who opens them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.gateway = Gateway(Crib(), Profiles({}))
        self.changes = ChangeFeed(self.gateway.crib)
        self.sessions = HttpSessions(self.changes, clock=lambda: self.now)

    def open(self, name: str) -> HttpSession:
        principal = self.gateway.profiles.principal(name)
        self.now += 1
        return self.sessions.open(self.gateway.open_client(principal, "legacy", version="x", capabilities={}))

    def alive(self, session: HttpSession) -> bool:
        return self.sessions.find(session.id, session.client.principal) is session


class Open:
    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.requirement("G5")
async def test_whoever_opens_many_sessions_ends_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.http_sessions.SESSIONS_MAX", 4)
    house = House()
    anns = house.open("ann")
    reds = [house.open("red") for _ in range(10)]
    assert house.alive(anns)
    assert [house.alive(session) for session in reds] == [False] * 7 + [True] * 3
    bobs = house.open("bob")
    assert (house.alive(anns), house.alive(bobs), house.alive(reds[7])) == (True, True, False)


async def test_a_session_that_listens_or_waits_is_used_however_long_ago_it_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.http_sessions.SESSIONS_MAX", 3)
    house = House()
    listening, waiting, idle = (house.open("ann") for _ in range(3))
    listening.stream = cast("Reply", Open())
    waiting.running[1] = cast("Errand", object())
    house.now += SESSION_IDLE_S + 1
    fourth = house.open("ann")
    assert (house.alive(listening), house.alive(waiting), house.alive(idle)) == (True, True, False)
    fifth, sixth = house.open("ann"), house.open("ann")
    assert (house.alive(listening), house.alive(waiting), house.alive(fourth), house.alive(fifth)) == (
        True, True, False, False,
    )  # fmt: skip
    waiting.forget(1)
    house.now += SESSION_IDLE_S + 1
    house.sessions.note_use()
    assert (house.alive(listening), house.alive(waiting), house.alive(sixth)) == (True, False, False)
    house.sessions.close()


@pytest.mark.requirement("X16")
async def test_who_has_the_most_streams_gives_one_up_for_who_has_fewer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.changes.LISTENERS_MAX", 3)
    house = House()

    def listen(name: str) -> "asyncio.Task[bytes]":
        principal = house.gateway.profiles.principal(name)
        client = house.gateway.open_client(principal, "modern", version="x", capabilities={})
        return asyncio.ensure_future(house.changes.serve(client, 1, {}, lambda message: None))

    reds = [listen("red") for _ in range(3)]
    await eventually(lambda: len(house.changes._subscriptions) == 3)
    with pytest.raises(RpcError, match="Too many"):
        await listen("red")
    ann = listen("ann")
    await eventually(reds[0].done)
    assert not any(task.done() for task in (*reds[1:], ann))
    with pytest.raises(RpcError, match="Too many"):
        await listen("ann")
    house.changes.close()
    await asyncio.gather(*reds, ann)


@pytest.mark.requirement("G2", "X16")
async def test_what_a_revoked_token_has_open_hears_no_more(tmp_path: Path):
    tokens = TokenFile(tmp_path / "tokens.json")
    kept, revoked = (tokens.create(name, profile="default", days=1)[0] for name in ("kept", "revoked"))
    async with served(MemoryServer(), tokens=tokens) as app:
        listens = []
        for secret in (kept, revoked):
            who = {"authorization": f"Bearer {secret}"}
            session = await open_session(app, **who)
            body, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
            listens.append(asyncio.create_task(ask(app, "GET", mcp_session_id=session, **who)))
            listens.append(asyncio.create_task(ask(app, body=body, **headers, **who)))
        await eventually(lambda: len(app._changes._subscriptions) == 4)
        await eventually(lambda: sum(session.is_used for session in app.sessions._sessions.values()) == 2)
        app.look()
        assert not any(task.done() for task in listens)
        tokens.revoke("revoked")
        app.look()
        await asyncio.gather(*listens[2:])
        assert not any(task.done() for task in listens[:2])
        assert len(app._changes._subscriptions) == 2
        for task in listens[:2]:
            task.cancel()
        await asyncio.gather(*listens, return_exceptions=True)


@pytest.mark.requirement("G2")
async def test_tokens_that_cannot_be_read_open_nothing_and_end_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    tokens = TokenFile(tmp_path / "tokens.json")
    secret, _ = tokens.create("ann", profile="default", days=1)
    who = {"authorization": f"Bearer {secret}"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with served(tokens=tokens) as app:
        session = await open_session(app, **who)
        whole = tokens.path.read_bytes()
        tokens.path.write_bytes(whole[:20])
        app.look()
        app.look()
        assert (await ask(app, body=ping, mcp_session_id=session, **who)).status == 503
        tokens.path.write_bytes(whole)
        app.look()
        assert (await ask(app, body=ping, mcp_session_id=session, **who)).status == 200
        tokens.revoke("ann")
        app.look()
        assert not len(app.sessions)
    assert caplog.text.count("until the tokens can be read") == 1


@pytest.mark.requirement("G2")
async def test_without_tokens_nobody_is_sent_away():
    async with served() as app, client_of(app):
        session = await open_session(app)
        app.look()
        assert (
            await ask(app, body={"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_session_id=session)
        ).status == 200


@pytest.mark.requirement("G2", "K2")
async def test_the_end_of_a_session_ends_its_calls_and_answers_the_server_that_asks_its_client():
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    async with served(server) as app:
        session = await open_session(app, capabilities={"elicitation": {}})
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo"}}
        asking = asyncio.create_task(ask(app, body=call, mcp_session_id=session))
        await eventually(lambda: server.count("tools/call") == 1)
        server.push({"id": "s1", "method": "elicitation/create", "params": {"message": "?"}})
        plain = asyncio.create_task(ask(app, body={**call, "id": 2}, mcp_session_id=session))
        await eventually(lambda: server.count("tools/call") == 2)
        assert (await ask(app, "DELETE", mcp_session_id=session)).status == 200
        answers = [(await asking).events[-1], (await plain).json]
        await eventually(lambda: any(message.get("id") == "s1" for message in server.received))
        assert not server.links[-1]._questions
    assert ["cancelled" in answer["error"]["message"] for answer in answers] == [True, True]
    assert server.count("notifications/cancelled") == 2
    told = next(message for message in server.received if message.get("id") == "s1")
    assert "went away" in told["error"]["message"]


@pytest.mark.requirement("K12")
async def test_what_is_under_way_when_the_gateway_stops_may_still_be_answered():
    release = asyncio.Event()

    async def work(params: JsonObject) -> JsonObject:
        await release.wait()
        return {"content": []}

    server = MemoryServer(tools__call=work)
    async with served(server) as app:
        session = await open_session(app)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__echo"}}
        task = asyncio.create_task(ask(app, body=call, mcp_session_id=session))
        await eventually(lambda: server.count("tools/call") == 1)
        app.sessions.close()
        release.set()
        assert (await task).json["result"] == {"content": []}
