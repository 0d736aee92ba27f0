import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.clients import META
from tests.gateway.http_clients import Answer, client_of

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.gateway.auth import TokenFile
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.door import Door
from toolcrib.gateway.http import HttpApp, open_app
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.run import Options
from toolcrib.gateway.server import Gateway
from toolcrib.settings import GatewaySettings, ProfileSettings, Settings, ToolSearchSettings, ToolsSettings

VERSION = "2026-07-28"


async def ask(
    app: HttpApp,
    method: str = "POST",
    path: str = "/mcp",
    body: Any = b"",
    gone: asyncio.Event | None = None,
    until: bytes | None = None,
    **headers: str,
) -> Answer:
    """One request to the application; the client leaves at `gone`, or when it has read `until`."""
    async with client_of(app) as client:
        client.send(method, path, body, **headers)
        return await client.answer(gone=gone, until=until)


def modern(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The body and the headers of a modern request."""
    meta = {**META, **params.pop("_meta", {})}
    headers = {"mcp_protocol_version": VERSION, "mcp_method": method}
    name = params.get("name") or params.get("uri")
    if name:
        headers["mcp_name"] = name
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}, headers


async def open_session(app: HttpApp, *, capabilities: dict[str, Any] | None = None, **headers: str) -> str:
    info = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": info}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = await ask(app, body=body, **headers)
    assert answer.status == 200
    return answer.headers["mcp-session-id"]


@asynccontextmanager
async def served(
    server: MemoryServer | None = None, *, tokens: TokenFile | None = None, gate: Any = "auto", **more: Any
) -> AsyncGenerator[HttpApp]:
    settings = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled=gate, retrieval="lexical")))
    crib = Crib((server or MemoryServer()).source("one"), settings=settings, core=())
    gateway = Gateway(crib, Profiles({"none": ProfileSettings(tools=("nothing",))}))
    async with crib:
        changes = ChangeFeed(crib)
        anonymous = gateway.profiles.principal("local") if tokens is None else None
        app = HttpApp(gateway, changes, door=Door(tokens=tokens, **more), anonymous=anonymous)
        try:
            yield app
        finally:
            app.sessions.close()
            changes.close()


@pytest.mark.requirement("F1", "F4")
@pytest.mark.parametrize("path", ["/mcp", "/health", "/nothing"])
@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil", "127.0.0.1.evil", "localhost.", "localhost:80@evil", "localhost/../x",
     "localhost?x", "localhost#x", "0.0.0.0:80", "[::2]:80", "localhost:port", "127.0.0.1, evil", ""],
)  # fmt: skip
async def test_a_host_that_is_not_ours_is_refused_on_every_path(host: str, path: str):
    async with served() as app:
        assert (await ask(app, path=path, host=host)).status == 421


@pytest.mark.requirement("F1")
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil", "file://", "http://evil@x"])
async def test_an_origin_that_is_not_ours_is_refused(origin: str):
    async with served() as app:
        assert (await ask(app, origin=origin)).status == 403


@pytest.mark.requirement("F1", "F2")
async def test_loopback_and_configured_names_are_served():
    body, headers = modern("server/discover")
    async with served(hosts=["Gate.example"], origins=["https://app.example"]) as app:
        for host in ("localhost", "127.0.0.1:9", "[::1]:9", "LOCALHOST:1", "gate.example"):
            assert (await ask(app, body=body, host=host, **headers)).status == 200
        for origin in ("http://localhost:3000", "https://app.example", "http://[::1]:3000"):
            assert (await ask(app, body=body, origin=origin, **headers)).status == 200


@pytest.mark.parametrize("method", ["initialize", "tools/none"])
async def test_a_request_is_answered_under_its_id_however_large_that_is(method: str):
    body = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{}}' % (10**30, method.encode())
    async with served() as app:
        answer = await ask(app, body=body, mcp_session_id=await open_session(app))
        assert (answer.status, json.loads(answer.body)["id"]) == (200, 10**30)


@pytest.mark.requirement("G2", "G3", "G9", "A19")
async def test_a_token_opens_the_door_and_wrong_ones_close_it(tmp_path: Path):
    tokens = TokenFile(tmp_path / "tokens.json")
    secret, _ = tokens.create("ann", profile="default", days=1)
    body, headers = modern("tools/list")
    async with served(tokens=tokens) as app:
        refused = await ask(app, body=body, **headers)
        assert (refused.status, refused.headers["www-authenticate"][:6]) == (401, "Bearer")
        assert (await ask(app, path="/mcp?token=" + secret, body=body, **headers)).status == 401
        assert (await ask(app, body=body, authorization=f"Bearer {secret}", **headers)).status == 200
        tokens.revoke("ann")
        assert (await ask(app, body=body, authorization=f"Bearer {secret}", **headers)).status == 401
        wrong = [await ask(app, body=body, authorization="Bearer wrong", **headers) for _ in range(12)]
        assert wrong[-1].status == 429


@pytest.mark.requirement("G2", "G3", "F1")
async def test_words_that_were_good_before_are_asked_again_who_says_them(tmp_path: Path):
    tokens = TokenFile(tmp_path / "tokens.json")
    secret, _ = tokens.create("ann", profile="default", days=1)
    body, headers = modern("tools/list")
    headers["authorization"] = f"Bearer {secret}"

    async def status(**more: str) -> int:
        client.send(body={**body, "id": next(ids)}, **headers, **more)
        return (await client.answer()).status

    ids = iter((1, 2, 30, 400, 400, 400, 5_000))
    async with served(tokens=tokens) as app, client_of(app) as client:
        assert [await status() for _ in range(4)] == [200] * 4
        assert await status(host="evil.example") == 421
        assert await status(origin="https://evil.example") == 403
        tokens.revoke("ann")
        assert await status() == 401


@pytest.mark.requirement("X19", "A1")
async def test_a_tokens_profile_decides_what_is_listed(tmp_path: Path):
    tokens = TokenFile(tmp_path / "tokens.json")
    all_of_it, _ = tokens.create("ann", profile="default", days=1)
    nothing, _ = tokens.create("bob", profile="none", days=1)
    gone, _ = tokens.create("eve", profile="no-such-profile", days=1)
    body, headers = modern("tools/list")
    async with served(tokens=tokens) as app:
        ann = (await ask(app, body=body, authorization=f"Bearer {all_of_it}", **headers)).json["result"]
        bob = (await ask(app, body=body, authorization=f"Bearer {nothing}", **headers)).json["result"]
        eve = await ask(app, body=body, authorization=f"Bearer {gone}", **headers)
    assert ([len(ann["tools"]), ann["cacheScope"]], [len(bob["tools"]), bob["cacheScope"]]) == (
        [1, "private"], [0, "private"],
    )  # fmt: skip
    assert eve.status == 403


@pytest.mark.requirement("G5")
async def test_a_session_belongs_to_who_opened_it(tmp_path: Path):
    tokens = TokenFile(tmp_path / "tokens.json")
    ann, _ = tokens.create("ann", profile="default", days=1)
    bob, _ = tokens.create("bob", profile="default", days=1)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with served(tokens=tokens) as app:
        session = await open_session(app, authorization=f"Bearer {ann}")
        for method in ("POST", "GET", "DELETE"):
            other = await ask(app, method, body=ping, authorization=f"Bearer {bob}", mcp_session_id=session)
            never = await ask(app, method, body=ping, authorization=f"Bearer {bob}", mcp_session_id="never")
            assert (other.status, other.body) == (never.status, never.body)
            assert other.status == 404
        mine = await ask(app, body=ping, authorization=f"Bearer {ann}", mcp_session_id=session)
        assert mine.json["result"] == {}
        assert (await ask(app, "DELETE", authorization=f"Bearer {ann}", mcp_session_id=session)).status == 200
        assert (await ask(app, body=ping, authorization=f"Bearer {ann}", mcp_session_id=session)).status == 404
        assert (await ask(app, body=ping, authorization=f"Bearer {ann}")).status == 400


@pytest.mark.requirement("E3", "F11")
async def test_wrong_sizes_types_and_methods_have_their_status():
    body, headers = modern("tools/list")
    async with served() as app:
        assert (await ask(app, body=b"x" * (4 * 1024 * 1024 + 1), **headers)).status == 413
        assert (await ask(app, body=body, content_length="99999999", **headers)).status == 413
        assert (await ask(app, body=body, content_type="text/plain", **headers)).status == 415
        assert (await ask(app, body=body, accept="text/html", **headers)).status == 406
        assert (await ask(app, "PUT", body=body)).status == 405
        assert (await ask(app, "GET", mcp_protocol_version=VERSION)).status == 405
        assert (await ask(app, path="/mcp/../etc", body=body)).status == 404
        assert (await ask(app, body=b"{", **headers)).json["error"]["code"] == -32700
        assert (await ask(app, body=b"[]", **headers)).status == 400


@pytest.mark.requirement("F7", "A18")
async def test_headers_that_disagree_with_the_body_are_refused():
    body, headers = modern("tools/call", name="tool_call", arguments={"name": "one__echo", "arguments": {}})
    async with served(gate="on") as app:
        right = await ask(app, body=body, mcp_param_tool="one__echo", **headers)
        assert right.status == 200
        wrong = [
            await ask(app, body=body, mcp_param_tool="one__other", **headers),
            await ask(app, body=body, **headers),
            await ask(app, body=body, mcp_param_tool="one__echo", **{**headers, "mcp_name": "tool_search"}),
            await ask(app, body=body, mcp_param_tool="one__echo", **{**headers, "mcp_method": "tools/list"}),
            await ask(app, body=body, mcp_param_tool="one__echo", **{**headers, "mcp_protocol_version": "2025-11-25"}),
        ]
    assert {(item.status, item.json["error"]["code"]) for item in wrong} == {(400, -32020)}


@pytest.mark.requirement("X15", "X16")
async def test_a_call_of_a_stateless_client_is_noted_as_a_call_and_not_as_an_assembly():
    body, headers = modern("tools/call", name="tool_call", arguments={"name": "one__echo", "arguments": {}})
    async with served(gate="on") as app:
        await ask(app, body=modern("tools/list")[0], **modern("tools/list")[1])
        for _ in range(3):
            assert (await ask(app, body=body, mcp_param_tool="one__echo", **headers)).status == 200
        stages = [event.stage for event in app._gateway.crib.activity.events]
    assert (stages.count("assemble"), stages.count("done")) == (1, 3)


@pytest.mark.requirement("X18", "L3")
async def test_what_comes_before_the_answer_makes_it_a_stream():
    server = MemoryServer()

    async def slow(params: Any) -> Any:
        token = params["_meta"]["progressToken"]
        server.push({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        await asyncio.sleep(0)
        return {"content": []}

    server.methods["tools/call"] = slow
    body, headers = modern("tools/call", name="one__echo", _meta={"progressToken": 7})
    async with served(server) as app:
        answer = await ask(app, body=body, **headers)
    assert answer.headers["content-type"] == "text/event-stream"
    assert [event.get("method") for event in answer.events] == ["notifications/progress", None]
    assert answer.events[0]["params"]["progressToken"] == 7


@pytest.mark.requirement("F8", "K2")
async def test_a_client_that_leaves_cancels_its_call():
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    body, headers = modern("tools/call", name="one__echo")
    async with served(server) as app:
        await ask(app, body=modern("tools/list")[0], **modern("tools/list")[1])
        for number in range(1, 21):
            gone = asyncio.Event()
            task = asyncio.create_task(ask(app, body=body, gone=gone, **headers))
            await eventually(lambda number=number: server.count("tools/call") >= number)
            gone.set()
            await task
        assert server.count("notifications/cancelled") == 20
        assert app._gateway.in_flight == 0
        assert not server.links[-1].waiters


@pytest.mark.requirement("X16", "X17")
async def test_an_old_client_hears_of_changes_on_its_own_stream():
    server = MemoryServer([tool("first")])
    async with served(server) as app:
        session = await open_session(app)
        await ask(app, body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, mcp_session_id=session)
        task = asyncio.create_task(ask(app, "GET", until=b"list_changed", mcp_session_id=session))
        await asyncio.sleep(0)
        server.tools = [tool("second")]
        server.push({"method": "notifications/tools/list_changed"})
        answer = await task
    assert [event["method"] for event in answer.events] == ["notifications/tools/list_changed"]


@pytest.mark.requirement("L1")
@pytest.mark.usefixtures("patient_queue")
async def test_two_hundred_clients_with_the_same_ids_each_get_their_own_answer():
    async def slow(params: Any) -> Any:
        await asyncio.sleep(0)
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}

    async with served(MemoryServer(tools__call=slow)) as app:

        async def one(number: int) -> bool:
            body, headers = modern("tools/call", name="one__echo", arguments={"text": f"nonce-{number}"})
            answer = (await ask(app, body=body, **headers)).json
            return answer["id"] == 1 and answer["result"]["content"][0]["text"] == f"nonce-{number}"

        assert all(await asyncio.gather(*(one(number) for number in range(200))))


@pytest.mark.requirement("F3", "F5")
async def test_http_does_not_start_open_by_mistake(tmp_path: Path):
    settings = Settings(gateway=GatewaySettings(tokens=str(tmp_path / "tokens.json")))
    crib = Crib(settings=settings)
    gateway = Gateway(crib, Profiles({}))
    changes = ChangeFeed(crib)

    def start(host: str, **options: bool) -> HttpApp:
        return open_app(gateway, changes, Options(http=f"{host}:0", **options), settings)

    for host, options, reason in (
        ("127.0.0.1", {}, "token create"),
        ("0.0.0.0", {}, "--public"),
        ("0.0.0.0", {"public": True}, "token create"),
        ("0.0.0.0", {"public": True, "allow_unauthenticated": True}, "loopback"),
    ):
        with pytest.raises(ConfigError, match=reason):
            start(host, **options)
    assert start("127.0.0.1", allow_unauthenticated=True)
    TokenFile(tmp_path / "tokens.json").create("a", profile="default", days=1)
    assert start("127.0.0.1")
    assert start("0.0.0.0", public=True)


@pytest.mark.parametrize(
    "accept",
    [
        "Application/JSON, Text/Event-Stream",
        "application/json\r\naccept: text/event-stream",
        "text/event-stream\r\nAccept: application/json",
    ],
)
async def test_what_a_client_accepts_may_be_said_in_parts_and_in_any_letters(accept: str):
    body, headers = modern("tools/list")
    async with served() as app:
        assert (await ask(app, body=body, accept=accept, **headers)).status == 200


@pytest.mark.requirement("E1")
async def test_a_request_of_an_old_client_whose_id_is_null_is_told_so():
    async with served() as app:
        session = await open_session(app)
        for method in ("ping", "initialize"):
            body = {"jsonrpc": "2.0", "id": None, "method": method}
            answer = await ask(app, body=body, mcp_session_id=session)
            assert (answer.status, answer.json["error"]["code"]) == (400, -32600)
