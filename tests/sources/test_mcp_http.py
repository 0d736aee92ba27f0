import asyncio
import random
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.fakes.memory_upstream import eventually
from tests.fakes.web import serve
from tests.gateway.clients import gateway_client
from tests.sources.test_mcp_stdio import BAD

from toolcrib.crib import Crib
from toolcrib.errors import SourceProtocolError, SourceUnavailable
from toolcrib.execution.dispatch import Era
from toolcrib.settings import ServerSettings
from toolcrib.sources.link import Link, Listener
from toolcrib.sources.mcp_http import HttpLink, require_url
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.processes import Guard
from toolcrib.sources.servers import open_server
from toolcrib.sources.sse import EventReader
from toolcrib.sources.supervisor import Pace

pytestmark = pytest.mark.usefixtures("steady_loop")


@contextmanager
def bad(mode: str, *more: str) -> Generator[str]:
    """The bad upstream over HTTP; gives its address."""
    command = [sys.executable, str(BAD), "--mode", mode, "--http", "127.0.0.1:0", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"https?://\S+", process.stdout.readline())
        assert found
        try:
            yield found.group()
        finally:
            process.kill()


def source(url: str, **more: Any) -> McpSource:
    return open_server("bad", ServerSettings(url=url, **more), guard=Guard(), pace=Pace(clock=lambda: 0.0, every_s=0))


@pytest.mark.requirement("X17")
async def test_a_server_over_http_is_called():
    with bad("ok") as url:
        crib = Crib(upstream := source(url))
        async with crib:
            await upstream.settled.wait()
            assert (await crib.session().call("bad__echo", {"message": "hello"})).text == "hello"


@pytest.mark.requirement("E4")
async def test_a_compressed_bomb_is_refused_unopened():
    with bad("gzip_bomb") as url:
        crib = Crib(upstream := source(url))
        async with crib:
            await upstream.settled.wait()
            result = await crib.session().call("bad__echo", {"message": "hello"})
            assert "compressed" in result.text


@pytest.mark.requirement("H1")
async def test_a_redirect_is_not_followed():
    with bad("redirect_to", "--target", "http://127.0.0.1:9/secret") as url:
        upstream = source(url)
        async with Crib(upstream):
            await upstream.settled.wait()
            assert "redirects" in str(upstream.snapshot()[0].unavailable)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.requirement("H2")
async def test_a_certificate_that_nobody_vouches_for_ends_it_before_anything_is_said(trust: bool):
    with bad("tls_bad") as url:
        upstream = source(url, trust=trust, headers={"Authorization": "Bearer secret"})
        async with Crib(upstream):
            await upstream.settled.wait()
            reason = str(upstream.snapshot()[0].unavailable).lower()
    assert "certificate" in reason
    assert not upstream.snapshot()[0].tools


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize(
    "url", ["ftp://x/", "file:///etc/passwd", "http://example.org/mcp", "https://user:secret@example.org/", "https://"]
)
def test_addresses_that_are_not_used(url: str):
    with pytest.raises(SourceUnavailable):
        require_url("x", url, trust=False)


def test_plain_http_is_for_this_machine_or_for_the_trusted():
    assert require_url("x", "http://127.0.0.1:1/mcp", trust=False)
    assert require_url("x", "http://intranet/mcp", trust=True)


async def pieces(body: bytes) -> AsyncGenerator[bytes]:
    for at in range(0, len(body), 100):
        yield body[at : at + 100]


class Spy:
    """A server in memory that remembers the requests that it got."""

    def __init__(self, *, status: int = 200, sse: bool = False, indented: bool = False) -> None:
        self.requests: list[httpx2.Request] = []
        self.status = status
        self.sse = sse
        self.indented = indented

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if request.method != "POST":
            return httpx2.Response(405)
        if self.status != 200:
            return httpx2.Response(self.status)
        message = orjson.loads(request.content)
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "go", "inputSchema": {"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"}}}},
                {"name": "bad", "inputSchema": {"type": "object", "properties": {"x": {"x-mcp-header": "no good"}}}}]},
            "tools/call": {"content": [{"type": "text", "text": "ok"}]},
        }  # fmt: skip
        result = results.get(message["method"], {})
        reply = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
        body = orjson.dumps(reply, option=orjson.OPT_INDENT_2 if self.indented else None)
        if self.sse:
            event = b"event: message\ndata: " + body.replace(b"\n", b"\ndata: ") + b"\n\n"
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces(event))
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=pieces(body))

    async def connect(self, listener: Listener, era: Era | None) -> Link:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer))
        return HttpLink("spy", "http://127.0.0.1/mcp", client, listener=listener)


@pytest.mark.requirement("X18", "F9", "C14")
@pytest.mark.parametrize("sse", [False, True])
async def test_a_modern_server_is_told_in_headers_what_the_body_says(sse: bool):
    spy = Spy(sse=sse)
    crib = Crib(upstream := McpSource("spy", spy.connect))
    async with crib:
        await upstream.settled.wait()
        assert [tool.leaf for tool in crib.session().catalog] == ["go"]
        assert any(item.name == "bad" for item in crib.skipped)
        await crib.session().call("spy__go", {"region": "Zürich\r\nx: y"})
    call = next(item for item in spy.requests if item.headers.get("mcp-method") == "tools/call")
    assert call.headers["mcp-name"] == "go"
    assert call.headers["mcp-protocol-version"] == "2026-07-28"
    assert call.headers["mcp-param-region"].startswith("=?base64?")


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(("status", "reason"), [(401, "credentials"), (500, "HTTP 500"), (503, "HTTP 503")])
async def test_a_bad_status_is_a_reason(status: int, reason: str):
    upstream = McpSource("spy", Spy(status=status).connect)
    async with Crib(upstream):
        await upstream.settled.wait()
        assert reason in str(upstream.snapshot()[0].unavailable)


@pytest.mark.requirement("X17", "K1")
@pytest.mark.parametrize("end", ["", "\r", "\r\n"])
async def test_why_a_server_over_http_refuses_is_told_without_what_it_was_sent(
    end: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def refuse(request: Request) -> JSONResponse:
        said = f"bad key {request.headers['authorization']} or {request.query_params['token']} for tenant-1"
        error = {"code": -32000, "message": said}
        return JSONResponse({"jsonrpc": "2.0", "id": (await request.json())["id"], "error": error})

    async with serve(lambda base: Starlette(routes=[Route("/mcp", refuse, methods=["POST"])])) as base:
        # The end of a line comes along where variables are read from a file of another system.
        monkeypatch.setenv("MY_KEY", f"sk-12345678{end}")
        monkeypatch.setenv("MY_URL", f"{base}/mcp?token=tok-5678{end}")
        upstream = source("${MY_URL}", headers={"Authorization": "Bearer ${MY_KEY}", "X-Tenant": "tenant-1"})
        async with Crib(upstream):
            await upstream.settled.wait()
            told = str(upstream.health)
    assert "it refused the handshake: bad key *** or *** for tenant-1" in told
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("toolcrib")]
    assert logged
    assert "5678" not in told + "".join(logged)


class Hasty(random.Random):
    """Waits no longer than it must."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Cutting:
    """A server whose stream of its own messages is cut when told so, with a tool more each time it is opened."""

    def __init__(self, era: Era) -> None:
        self.era = era
        self.streams = 0
        self.cut = asyncio.Event()
        self.gone = False
        self.refused = 0

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        if self.gone:
            self.refused += 1
            raise httpx2.ConnectError("nobody there")
        if request.method == "GET":
            return self._stream()
        message = orjson.loads(request.content)
        match message["method"]:
            case "server/discover" if self.era == "modern":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            case "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            case "tools/list":
                names = [f"tool_{number}" for number in range(max(1, self.streams))]
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
            case "tools/call":
                self.cut.set()
                await eventually(lambda: self.streams == 2 or self.refused == 2)
                result = {"content": [{"type": "text", "text": "ok"}]}
            case "subscriptions/listen":
                return self._stream()
            case _:
                return httpx2.Response(400)
        body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=pieces(body))

    def _stream(self) -> httpx2.Response:
        self.streams += 1
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=self._events())

    async def _events(self) -> AsyncGenerator[bytes]:
        yield b'data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}\n\n'
        await self.cut.wait()
        if self.streams > 1:
            await asyncio.Event().wait()
        raise httpx2.RemoteProtocolError("cut")

    async def connect(self, listener: Listener, era: Era | None) -> Link:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer))
        return HttpLink("cutting", "http://127.0.0.1/mcp", client, listener=listener)


@pytest.fixture(params=["legacy", "modern"])
def cutting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cutting:
    monkeypatch.setattr("toolcrib.sources.mcp_http.RESTART_MIN_S", 0.001)
    return Cutting(request.param)


@pytest.mark.requirement("K1", "X17")
async def test_a_stream_of_changes_that_is_cut_costs_no_call_and_is_opened_again_with_what_was_missed(cutting: Cutting):
    crib = Crib(upstream := McpSource("one", cutting.connect, rng=Hasty()))
    async with crib:
        await eventually(lambda: cutting.streams == 1 and upstream.settled.is_set())
        result = await crib.session().call("one__tool_0")
        assert result.text == "ok"
        await eventually(lambda: len(upstream.snapshot()[0].tools) == 2)
        assert (upstream.health.state, upstream.health.failure) == ("up", None)


@pytest.mark.requirement("K1", "X17")
async def test_a_server_that_is_gone_when_its_stream_of_changes_is_opened_again_is_down(cutting: Cutting):
    upstream = McpSource("one", cutting.connect, rng=random.Random(1))
    async with Crib(upstream):
        await eventually(lambda: cutting.streams == 1 and upstream.settled.is_set())
        cutting.gone = True
        cutting.cut.set()
        await eventually(lambda: upstream.health.state == "down")
        assert "nobody there" in str(upstream.health.reason)


@pytest.mark.requirement("K1", "X17")
async def test_a_stream_of_changes_that_cannot_be_opened_again_costs_no_call(cutting: Cutting):
    crib = Crib(upstream := McpSource("one", cutting.connect, rng=Hasty()))
    async with crib:
        await eventually(lambda: cutting.streams == 1 and upstream.settled.is_set())
        call = asyncio.create_task(crib.session().call("one__tool_0"))
        await eventually(cutting.cut.is_set)
        cutting.gone = True
        assert (await call).text == "ok"


def test_events_are_read_however_they_are_cut_and_never_without_end():
    text = b"retry: 50\r\nid: 7\r\nevent: message\r\ndata: {\ndata: }\r\n\r\n: comment\n\ndata: x\n\n"
    for size in (1, 3, 1_000):
        reader = EventReader(1_000)
        events = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
        assert [(event.name, event.data, event.id) for event in events] == [
            ("message", b"{\n}", "7"),
            ("message", b"x", "7"),
        ]
        assert reader.retry_ms == 50
    with pytest.raises(SourceProtocolError):
        EventReader(100).feed(b"data: " + b"x" * 200)
    reader = EventReader(100)
    with pytest.raises(SourceProtocolError):
        for _ in range(10):
            reader.feed(b"data: " + b"x" * 50 + b"\n")


@pytest.mark.parametrize("sse", [False, True])
async def test_an_answer_of_many_lines_is_handed_on_as_one(sse: bool):
    async with gateway_client(McpSource("spy", Spy(sse=sse, indented=True).connect)) as client:
        await client.names()
        # The client reads line by line.
        answer = await client.call("spy__go", {})
        assert answer["result"]["content"] == [{"type": "text", "text": "ok"}]
