"""What goes wrong with one request to a server over HTTP, and what that means for the others."""

import asyncio
from typing import Any

import httpx2
import orjson
import pytest
from tests.fakes.memory_upstream import eventually

from toolcrib.crib import Crib
from toolcrib.execution.dispatch import Era
from toolcrib.sources.link import Link, Listener
from toolcrib.sources.mcp_http import HttpLink
from toolcrib.sources.mcp_source import McpSource

JSON = {"content-type": "application/json"}


class Sessions:
    """An old server in memory with sessions, one of whose tools goes wrong as told."""

    def __init__(self, wrong: httpx2.Response | None = None) -> None:
        self.wrong = wrong
        self.opened = 0
        self.alive: str | None = None
        self.opens = True
        self.asked: list[tuple[str, str | None]] = []
        self.hold = asyncio.Event()
        self.hold.set()

    def count(self, method: str) -> int:
        return sum(asked == method for asked, _ in self.asked)

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return httpx2.Response(405)
        message, session = orjson.loads(request.content), request.headers.get("mcp-session-id")
        method = message["method"]
        self.asked.append((method, session))
        if method == "server/discover":
            return httpx2.Response(400)
        if method == "initialize":
            if not self.opens:
                return httpx2.Response(503)
            self.opened += 1
            self.alive = f"s{self.opened}"
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}}}
            return self._result(message, result, {"mcp-session-id": self.alive})
        if session != self.alive:
            error = {"code": -32001, "message": "Session not found"}
            return whole(orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error}), 404)
        if "id" not in message:
            return httpx2.Response(202)
        if method == "tools/list":
            names = ("good", "slow", "wrong")
            return self._result(message, {"tools": [{"name": name, "inputSchema": {}} for name in names]})
        if method == "tools/call" and message["params"]["name"] == "wrong" and self.wrong is not None:
            return self.wrong
        if method == "tools/call" and message["params"]["name"] == "slow":
            await self.hold.wait()
        return self._result(message, {"content": [{"type": "text", "text": "ok"}]})

    def _result(self, message: Any, result: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return whole(orjson.dumps(body), **(headers or {}))

    async def connect(self, listener: Listener, era: Era | None) -> Link:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer))
        return HttpLink("x", "http://127.0.0.1/mcp", client, listener=listener)


def whole(body: bytes, status: int = 200, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, headers={**JSON, **headers}, stream=httpx2.ByteStream(body))


@pytest.mark.requirement("K1", "X17")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (whole(b"", 403), "HTTP 403"),
        (whole(b"x" * 2_000), "more than 1000 bytes"),
        (whole(b"oops"), "no JSON-RPC"),
        (whole(b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}'), "no JSON-RPC"),
        (whole(b"data: " + b"x" * 2_000, **{"content-type": "text/event-stream"}), "more than 1000 bytes"),
        (whole(b"{}", **{"content-encoding": "gzip"}), "compressed"),
    ],
)
async def test_what_goes_wrong_with_one_request_is_no_matter_of_the_others(
    wrong: httpx2.Response, told: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("toolcrib.sources.mcp_http.UPSTREAM_BODY_MAX_BYTES", 1_000)
    server = Sessions(wrong)
    server.hold.clear()
    crib = Crib(upstream := McpSource("x", server.connect))
    async with crib:
        await upstream.settled.wait()
        other = asyncio.create_task(crib.session().call("x__slow"))
        await eventually(lambda: server.count("tools/call") == 1)
        assert told in (await crib.session().call("x__wrong")).text
        server.hold.set()
        assert (await other).text == "ok"
        assert (await crib.session().call("x__good")).text == "ok"
        assert (upstream.health.state, upstream.health.failure, server.opened) == ("up", None, 1)


@pytest.mark.requirement("K1")
async def test_a_session_that_the_server_ended_is_opened_again_and_the_calls_that_it_did_not_take_are_sent_once_more():
    server = Sessions()
    server.hold.clear()
    crib = Crib(upstream := McpSource("x", server.connect))
    async with crib:
        await upstream.settled.wait()
        upstream.set_log_level("info")
        await eventually(lambda: server.count("logging/setLevel") == 1)
        running = asyncio.create_task(crib.session().call("x__slow"))
        await eventually(lambda: server.count("tools/call") == 1)
        server.alive = "another"
        results = await asyncio.gather(*(crib.session().call("x__good") for _ in range(3)))
        assert [result.text for result in results] == ["ok"] * 3
        assert server.opened == 2
        # What the server was told before is told again, and its lists are looked at.
        await eventually(lambda: ("logging/setLevel", "s2") in server.asked and ("tools/list", "s2") in server.asked)
        server.hold.set()
        assert (await running).text == "ok"
        assert [session for method, session in server.asked if method == "tools/call"].count("s2") == 3
        assert (upstream.health.state, upstream.health.failure, upstream.health.restarts) == ("up", None, 0)


@pytest.mark.requirement("K1")
async def test_a_server_that_ended_the_session_and_opens_no_other_is_down():
    server = Sessions()
    crib = Crib(upstream := McpSource("x", server.connect))
    async with crib:
        await upstream.settled.wait()
        server.alive, server.opens = "another", False
        assert "opens no other" in (await crib.session().call("x__good")).text
        await eventually(lambda: upstream.health.state == "down")
