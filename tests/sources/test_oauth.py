"""Signing in, over real HTTP: discovery, registration, PKCE, code, token, renewal, and what goes wrong."""

import asyncio
import os
import stat
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import msgspec
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from tests.fakes.memory_upstream import eventually
from tests.fakes.oauth_service import Service, oauth_service

from toolcrib.crib import Crib
from toolcrib.settings import ServerSettings
from toolcrib.sources import oauth_browser
from toolcrib.sources.mcp_source import McpSource
from toolcrib.sources.oauth import open_oauth
from toolcrib.sources.oauth_store import FileStorage, default_directory
from toolcrib.sources.patience import Patience
from toolcrib.sources.processes import Guard
from toolcrib.sources.servers import open_server
from toolcrib.sources.supervisor import Pace

Era = Literal["auto", "legacy", "modern"]
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class Browser:
    """Follows redirects, as a person's browser would."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.answers: list[int] = []

    def __call__(self, url: str) -> bool:
        self.opened.append(url)
        with httpx2.Client(follow_redirects=True, trust_env=False) as client:
            self.answers.append(client.get(url).status_code)
        return True


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Browser:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    # Where a sign-in comes back to follows from the server's name: tests that run beside each other keep apart.
    monkeypatch.setattr(oauth_browser, "_FIRST_PORT", 41_000 + os.getpid() % 4_000)
    found = Browser()
    monkeypatch.setattr(webbrowser, "open", found)
    return found


@asynccontextmanager
async def connected(
    service: Service, era: Era = "auto", name: str = "protected"
) -> AsyncGenerator[tuple[Crib, McpSource]]:
    entry = ServerSettings(url=service.url, oauth=True, era=era)
    source = open_server(name, entry, guard=Guard(), pace=Pace(clock=lambda: 0.0, every_s=0))
    crib = Crib(source)
    async with crib:
        await source.settled.wait()
        yield crib, source


async def call(crib: Crib, text: str = "hi") -> Any:
    return await crib.session().call("protected__echo", {"text": text})


async def is_ready(source: McpSource) -> None:
    """Has its tools and is not marked: a person may have been waited for in between."""
    await until(lambda: source.snapshot()[0].tools and source.snapshot()[0].unavailable is None)


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - the event is somebody else's
        await asyncio.sleep(0.005)


def token_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "toolcrib" / "oauth").glob("*.json")
    return path


@ERAS
@pytest.mark.requirement("X17", "G7")
async def test_a_person_signs_in_once_and_the_tools_are_there(era: Era, browser: Browser, tmp_path: Path):
    async with oauth_service(Service()) as service:
        async with connected(service, era) as (crib, source):
            await is_ready(source)
            assert (await call(crib)).text == "hi"
        async with connected(service, era) as (crib, source):
            await is_ready(source)
            assert (await call(crib)).text == "hi"
    assert (len(browser.opened), browser.answers) == (1, [200])
    assert (service.registrations, service.exchanges, service.renewals) == (1, 1, 0)
    assert stat.S_IMODE(token_file(tmp_path).stat().st_mode) == 0o600


@ERAS
@pytest.mark.requirement("X17")
async def test_a_token_that_the_server_no_longer_takes_is_renewed_without_a_person(era: Era, browser: Browser):
    async with oauth_service(Service()) as service, connected(service, era) as (crib, source):
        await is_ready(source)
        service.expire_everything()
        answers = await asyncio.gather(*(call(crib, str(number)) for number in range(5)))
    assert [answer.text for answer in answers] == ["0", "1", "2", "3", "4"]
    assert len(browser.opened) == 1
    assert service.renewals == 1


@pytest.mark.requirement("X17")
async def test_after_a_restart_a_token_that_has_ended_is_renewed_where_it_was_issued(browser: Browser):
    async with oauth_service(Service(expires_in=1)) as service:
        async with connected(service) as (_, source):
            await is_ready(source)
        service.expire_everything()
        service.expires_in = 3600
        await asyncio.sleep(1.1)  # the clock of the token is the wall's
        async with connected(service) as (crib, source):
            await is_ready(source)
            assert (await call(crib)).text == "hi"
    assert len(browser.opened) == 1
    assert service.renewals >= 1
    assert service.exchanges == 1


@pytest.mark.requirement("X17")
async def test_two_gateways_share_a_sign_in_and_do_not_use_up_each_others_renewal(browser: Browser):
    async with (
        oauth_service(Service()) as service,
        connected(service) as (one, first),
        connected(service) as (two, second),
    ):
        await is_ready(first)
        await is_ready(second)
        service.expire_everything()
        assert (await call(one)).text == "hi"
        assert (await call(two)).text == "hi"
        service.expire_everything()
        assert (await call(two)).text == "hi"
        assert (await call(one)).text == "hi"
    assert (len(browser.opened), service.exchanges, service.renewals) == (1, 1, 2)


@pytest.mark.requirement("X17")
async def test_a_refused_sign_in_is_the_reason_and_no_second_page_opens(browser: Browser):
    async with oauth_service(Service(refuses=True)) as service, connected(service) as (_, source):
        await until(lambda: "refused" in str(source.snapshot()[0].unavailable))
        assert "access_denied" in str(source.snapshot()[0].unavailable)
    assert len(browser.opened) == 1


@pytest.mark.requirement("X17", "G7")
async def test_an_answer_to_another_question_is_sent_away_and_the_waiting_goes_on(browser: Browser):
    async with oauth_service(Service(wrong_state=True)) as service, connected(service) as (crib, source):
        await eventually(lambda: browser.answers)
        assert browser.answers == [400]
        assert "waits for somebody to sign in" in str(source.snapshot()[0].unavailable)
        assert service.exchanges == 0
        service.wrong_state = False
        await asyncio.to_thread(browser, browser.opened[0])
        await is_ready(source)
        assert (await call(crib)).text == "hi"
    assert service.exchanges == 1


@pytest.mark.requirement("X17")
async def test_a_sign_in_that_ends_during_a_call_fails_the_call_and_asks_again_at_the_next_start(browser: Browser):
    async with oauth_service(Service()) as service, connected(service) as (crib, source):
        await is_ready(source)
        service.expire_everything()
        service.refresh.clear()
        answers = await asyncio.gather(*(call(crib) for _ in range(3)))
        assert all(answer.is_error and "sign in again" in answer.text for answer in answers)
        await is_ready(source)
        assert (await call(crib)).text == "hi"
    assert len(browser.opened) == 2


@pytest.mark.requirement("J4")
async def test_tokens_that_others_can_read_are_not_used(browser: Browser, tmp_path: Path):
    async with oauth_service(Service()) as service:
        async with connected(service) as (_, source):
            await is_ready(source)
        token_file(tmp_path).chmod(0o644)
        async with connected(service) as (_, source):
            await until(lambda: source.snapshot()[0].unavailable)
            assert "chmod 600" in str(source.snapshot()[0].unavailable)


@pytest.mark.requirement("K10")
async def test_where_nothing_can_be_kept_the_sign_in_counts_until_the_end_of_the_process(
    browser: Browser, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "toolcrib").write_text("a file where a directory should be")
    async with oauth_service(Service()) as service, connected(service) as (crib, source):
        await is_ready(source)
        assert (await call(crib)).text == "hi"
        service.expire_everything()
        assert (await call(crib)).text == "hi"
    assert (len(browser.opened), service.renewals) == (1, 1)
    assert "cannot be kept" in caplog.text


@pytest.mark.requirement("X17")
async def test_a_file_that_holds_no_sign_in_is_made_anew(browser: Browser, tmp_path: Path):
    async with oauth_service(Service()) as service:
        async with connected(service) as (_, source):
            await is_ready(source)
        token_file(tmp_path).write_bytes(b'{"tokens": 5')
        async with connected(service) as (_, source):
            await is_ready(source)
    assert len(browser.opened) == 2
    assert msgspec.json.decode(token_file(tmp_path).read_bytes())["tokens"]["access_token"] in service.access


@pytest.mark.requirement("X17")
async def test_a_token_that_another_gateway_renewed_and_that_ended_as_well_is_renewed_again(browser: Browser):
    server, issuer = "http://127.0.0.1:9/mcp", "http://127.0.0.1:10"
    theirs = FileStorage(server, default_directory())
    await theirs.set_tokens(OAuthToken(access_token="first", refresh_token="r1", expires_in=60))
    await theirs.set_client_info(OAuthClientInformationFull(client_id="us", redirect_uris=[AnyUrl(f"{issuer}/back")]))
    theirs.keep_places(
        OAuthMetadata(
            issuer=AnyHttpUrl(issuer),
            authorization_endpoint=AnyHttpUrl(f"{issuer}/authorize"),
            token_endpoint=AnyHttpUrl(f"{issuer}/token"),
        ),
        None,
    )
    request = httpx2.Request("POST", server)
    flow = open_oauth("protected", server, Patience()).async_auth_flow(request)

    assert (await anext(flow)).headers["authorization"] == "Bearer first"
    await theirs.set_tokens(OAuthToken(access_token="second", refresh_token="r2", expires_in=60))
    assert (await flow.asend(httpx2.Response(401, request=request))).headers["authorization"] == "Bearer second"
    renewal = await flow.asend(httpx2.Response(401, request=request))
    assert (str(renewal.url), b"refresh_token=r2" in renewal.content) == (f"{issuer}/token", True)
    answer = {"access_token": "third", "token_type": "Bearer", "refresh_token": "r3", "expires_in": 60}
    again = await flow.asend(httpx2.Response(200, json=answer, request=renewal))
    assert (again is request, again.headers["authorization"]) == (True, "Bearer third")
    with pytest.raises(StopAsyncIteration):
        await flow.asend(httpx2.Response(401, request=request))
    assert browser.opened == []
