"""The console's door: who gets in, what a browser is told, and what is never there."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.console.consoles import HOST, ORIGIN, console_page
from tests.gateway.http_clients import Answer, client_of

from toolcrib.console import values
from toolcrib.limits import AUTH_FAILURES_PER_MINUTE, CONSOLE_BODY_MAX_BYTES, CONSOLE_CODE_S, SSE_PING_S

PATHS = ["", "console.js", "nothing", "api/overview", "api/sign-in", "api/activity", "api/nothing"]
API = [("GET", "overview"), ("GET", "approvals"), ("GET", "health"), ("GET", "activity"), ("POST", "search"),
       ("POST", "tokens"), ("POST", "approvals"), ("POST", "sign-out"), ("GET", "nothing")]  # fmt: skip


@pytest.mark.requirement("F1", "X27")
@pytest.mark.parametrize("path", PATHS)
async def test_another_host_or_origin_is_refused_on_every_path_before_anything_else(path: str, tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        for app in (page.app, page.apart):
            for host in ("evil.example", "localhost.evil", "127.0.0.1.evil", "[::1].evil", ""):
                async with client_of(app) as client:
                    client.send("GET", f"/console/{path}", host=host)
                    assert (await client.answer()).status == 421
            for origin in ("http://evil.example", "null", "http://[::1", "http://[::1]evil", "http://127.0.0.1:x"):
                async with client_of(app) as client:
                    client.send("GET", f"/console/{path}", host=HOST, origin=origin)
                    assert (await client.answer()).status == 403


@pytest.mark.requirement("J11", "F1")
@pytest.mark.parametrize(("method", "path"), API)
async def test_a_page_of_another_port_of_this_machine_is_none_of_ours(method: str, path: str, tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        for more in (
            {"origin": "http://127.0.0.1:3000"},
            {"sec_fetch_site": "same-site"},
            {"sec_fetch_site": "cross-site"},
        ):
            assert (await page.ask(f"api/{path}", {} if method == "POST" else None, **more)).status == 403


@pytest.mark.requirement("J11", "J12")
@pytest.mark.parametrize(("method", "path"), API)
async def test_nothing_is_answered_without_both_the_cookie_and_the_token(method: str, path: str, tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        body = {} if method == "POST" else None
        for missing in (
            {"cookie": ""},
            {"x_toolcrib_console": ""},
            {"x_toolcrib_console": "wrång"},
            {"cookie": '=; a="b; [x]=ü'},
        ):
            assert (await page.ask(f"api/{path}", body, **missing)).status == 401


@pytest.mark.requirement("J11")
async def test_a_change_says_where_it_is_from_and_is_json(tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        decision = {"id": "1", "allow": True}
        assert (await page.ask("api/approvals", decision, origin="")).status == 403
        assert (await page.ask("api/sign-in", {"secret": "x"}, origin="")).status == 403
        assert (await page.ask("api/approvals", decision, content_type="text/plain")).status == 415
        assert (await page.ask("api/approvals", decision)).status == 409


async def test_cookies_of_other_servers_of_this_machine_do_not_hide_ours(tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        for others in ("a(b=c; =; [x]=1", "expires=1", 'a="b; c', "toolcrib-console-9=z", "toolcrib-console-8765=z"):
            assert (await page.ask("api/overview", cookie=f"{others}; {page.cookie}; d")).status == 200


@pytest.mark.requirement("X27")
async def test_an_address_of_its_own_serves_the_console_and_nothing_else(tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        for path, status in (("/console/", 200), ("/mcp", 404), ("/health", 404)):
            async with client_of(page.apart) as client:
                client.send("GET", path)
                assert (await client.answer()).status == status


@pytest.mark.requirement("J11")
async def test_the_cookie_is_for_this_page_alone(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:
        answer = await page.sign_in()
        name, *flags = answer.headers["set-cookie"].split("; ")
        assert name.startswith("toolcrib-console-8765=") and page.token not in answer.headers["set-cookie"]
        assert set(flags) == {"Path=/console", "HttpOnly", "SameSite=Strict"}
        over_tls = await page.ask("api/sign-in", {"secret": page.console.entry.make_code()}, origin=f"https://{HOST}")
        assert "; Secure" in over_tls.headers["set-cookie"]


@pytest.mark.requirement("J12", "X27")
async def test_a_token_of_a_client_does_not_open_the_console_nor_one_of_the_console_the_gateway(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:
        assert page.door.tokens is not None
        client, _ = page.door.tokens.create("ann", profile="default", days=1)
        admin, _ = page.door.tokens.create("olga", profile="default", days=1, role="console")
        assert (await page.sign_in(client)).status == 401
        assert (await page.ask("api/overview", authorization=f"Bearer {client}")).status == 401
        assert (await page.sign_in(admin)).status == 200
        assert (await page.ask("api/overview")).json["name"] == "olga"
        async with client_of(page.app) as other:
            other.send(authorization=f"Bearer {admin}")
            assert (await other.answer()).status == 401


@pytest.mark.requirement("F2", "X27")
async def test_a_program_uses_its_console_token_alone(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:
        assert page.door.tokens is not None
        admin, _ = page.door.tokens.create("script", profile="default", days=1, role="console")
        told = {"authorization": f"Bearer {admin}", "sec_fetch_site": "", "origin": ""}
        assert (await page.ask("api/health", **told)).status == 200
        assert (await page.ask("api/search", {"query": "echo"}, **told)).status == 200
        page.door.tokens.revoke("script")
        assert (await page.ask("api/health", **told)).status == 401


async def test_the_printed_link_works_once_and_signing_out_ends_it(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:
        code = page.console.entry.make_code()
        assert (await page.sign_in(code)).status == 200
        assert (await page.ask("api/overview")).status == 200
        assert (await page.sign_in(code)).status == 401
        out = await page.ask("api/sign-out", {})
        assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (200, True)
        assert (await page.ask("api/overview")).status == 401


async def test_the_printed_link_waits_for_an_hour(tmp_path: Path):
    now = 0.0
    async with console_page(directory=tmp_path, signed_in=False) as page:
        page.console.entry._clock = lambda: now
        early, now = page.console.entry.make_code(), CONSOLE_CODE_S - 1
        assert (await page.sign_in(early)).status == 200
        late, now = page.console.entry.make_code(), now + CONSOLE_CODE_S
        assert (await page.sign_in(late)).status == 401


@pytest.mark.requirement("G3", "J12")
async def test_a_revoked_token_ends_what_was_signed_in_with_it(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:
        assert page.door.tokens is not None
        admin, _ = page.door.tokens.create("olga", profile="default", days=1, role="console")
        await page.sign_in(admin)
        assert (await page.ask("api/overview")).status == 200
        page.door.tokens.revoke("olga")
        assert (await page.ask("api/overview")).status == 401


@pytest.mark.requirement("G9")
async def test_wrong_secrets_at_the_console_and_wrong_tokens_at_the_gateway_count_together(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:

        async def at_the_gateway() -> Answer:
            async with client_of(page.app) as client:
                client.send(authorization="Bearer wrong")
                return await client.answer()

        for _ in range(AUTH_FAILURES_PER_MINUTE // 2):
            assert (await page.sign_in("wrong")).status == 401
            assert (await at_the_gateway()).status == 401
        assert (await page.sign_in()).status == 429
        assert (await at_the_gateway()).status == 429


async def test_an_open_page_whose_sign_in_ended_does_not_lock_its_machine_out(tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        await page.ask("api/sign-out", {})
        for _ in range(2 * AUTH_FAILURES_PER_MINUTE):
            assert (await page.ask("api/overview")).status == 401
        assert (await page.sign_in()).status == 200


@pytest.mark.requirement("J10")
@pytest.mark.parametrize("path", [*PATHS, "../mcp", "api/health"])
async def test_every_answer_forbids_the_browser_what_the_page_does_not_need(path: str, tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        if path == "api/activity":
            async with client_of(page.app) as client:
                client.send("GET", "/console/api/activity", cookie=page.cookie, x_toolcrib_console=page.token)
                headers = (await client.answer(until=b"data: ")).headers
        else:
            headers = (await page.ask(path)).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self';") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "require-trusted-types-for 'script'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
        assert "no-store" in headers["cache-control"]


@pytest.mark.requirement("F11")
async def test_only_files_of_the_page_are_served(tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        assert (await page.ask("")).headers["content-type"] == "text/html; charset=utf-8"
        assert (await page.ask("console.js")).headers["content-type"] == "text/javascript; charset=utf-8"
        for path in ("../app.py", "%2e%2e/app.py", "static/index.html", "..", "console.js/", "api", "api/"):
            assert (await page.ask(path)).status == 404
        assert (await page.ask("console.js", method="POST")).status == 405
        assert (await page.ask("api/health", {})).status == 405
        async with client_of(page.app) as client:
            client.send("GET", "/console")
            answer = await client.answer()
        assert (answer.status, answer.headers["location"]) == (308, "/console/")


@pytest.mark.requirement("J10")
def test_the_page_holds_nothing_inline_and_never_writes_markup():
    static = Path(values.__file__).with_name("static")
    html = (static / "index.html").read_text(encoding="utf-8")
    assert "<style" not in html and "style=" not in html and " on" not in html.replace(" on the", "")
    assert html.count("<script") == html.count('<script type="module" src=') == 1
    scripts = "".join(path.read_text(encoding="utf-8") for path in static.glob("*.js"))
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "http:",
        "https:",
    ):
        assert word not in scripts, word


@pytest.mark.requirement("J9")
async def test_no_field_says_how_a_server_is_started(tmp_path: Path):
    kinds = [kind for kind in vars(values).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    fields = {field for kind in kinds for field in kind.__struct_fields__}
    assert not fields & {"command", "args", "env", "cwd", "url", "headers", "launch"}
    async with console_page(directory=tmp_path) as page:
        for path, body in (("search", {"query": "x"}), ("tokens", {}), ("approvals", {"id": "1", "allow": True})):
            for more in ("command", "args", "env"):
                answer = await page.ask(f"api/{path}", {**body, more: ["sh"]})
                assert (answer.status, more in answer.json["error"]) == (400, True)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"query": 1}', b'{"query": "x", "limit": 0}', b"{", b'{"query": "\xff"}']
)
async def test_a_body_that_is_none_is_answered_with_what_is_wrong(body: bytes, tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        assert (await page.ask("api/search", body, method="POST", origin=ORIGIN)).status == 400


@pytest.mark.requirement("F10")
async def test_nobody_who_is_not_known_has_a_long_body_kept(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page:
        for path in ("/console/", "/console/api/sign-in", "/health"):
            for field, status in (
                (f"content-length: {CONSOLE_BODY_MAX_BYTES + 1}", 413),
                ("transfer-encoding: chunked", 411),
            ):
                async with client_of(page.app) as client:
                    request = f"POST {path} HTTP/1.1\r\nhost: {HOST}\r\n{field}\r\n\r\n".encode()
                    client.feed(request + (b"0\r\n\r\n" if status == 411 else b""))
                    assert (await client.answer()).status == status


async def test_an_answer_that_takes_long_is_still_one_whole_answer(tmp_path: Path):
    async with console_page(directory=tmp_path) as page, client_of(page.app) as client:
        may_go_on = asyncio.Event()

        async def slow(*_: object) -> str:
            await may_go_on.wait()
            return "done"

        page.console._answers = {"tokens": {"GET": slow}}
        client.send("GET", "/console/api/tokens", cookie=page.cookie, x_toolcrib_console=page.token)
        client.connection.tick(asyncio.get_running_loop().time() + SSE_PING_S + 1)
        assert client.wire.data == b""
        may_go_on.set()
        answer = await client.answer()
        assert (answer.status, answer.json) == (200, "done")


@pytest.mark.requirement("I3")
async def test_a_refusal_is_as_safe_to_show_as_an_answer(tmp_path: Path):
    async with console_page(directory=tmp_path) as page:
        answer = await page.ask("api/search", {"query": "x", "profile": "a\u202eb"})
        assert "a‹U+202E›b" in answer.json["error"]


async def test_a_fault_of_the_console_is_its_own_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with console_page(directory=tmp_path) as page:
        monkeypatch.setattr(page.gateway.desk, "waiting", lambda: 1 / 0)
        answer = await page.ask("api/approvals")
        assert (answer.status, "log says why" in answer.json["error"]) == (500, True)
        assert "ZeroDivisionError" in caplog.text


async def test_only_so_many_are_signed_in_at_once_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.console.entry.CONSOLE_SESSIONS", 2)
    async with console_page(directory=tmp_path) as page:
        first = (page.cookie, page.token)
        for _ in range(2):
            await page.sign_in()
        assert (await page.ask("api/overview")).status == 200
        assert (await page.ask("api/overview", cookie=first[0], x_toolcrib_console=first[1])).status == 401
        monkeypatch.setattr("toolcrib.console.entry.CONSOLE_SESSION_S", 0.0)
        await page.sign_in()
        assert (await page.ask("api/overview")).status == 401


@pytest.mark.requirement("X27")
async def test_a_person_at_the_terminal_gets_a_link_and_a_log_never_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    async with console_page(directory=tmp_path, signed_in=False) as page:
        page.console.welcome(ORIGIN)
        assert "toolcrib token create NAME --console --file" in caplog.text
        told: list[str] = []
        page.console._tell = told.append
        page.console.welcome(ORIGIN)
        code = told[0].strip().partition("#")[2]
        assert f"{ORIGIN}/console/#{code}" in told[0]
        assert code not in caplog.text
        assert (await page.sign_in(code)).status == 200
        assert code not in caplog.text
