"""Live activity: what ran reaches every page that watches, and no page holds anything up."""

from pathlib import Path
from typing import Any

import pytest
from tests.console.consoles import SEARCHING, Page, console_page
from tests.console.test_views import TOOLS, call
from tests.factories import bridged
from tests.fakes.memory_upstream import MemoryServer, eventually
from tests.gateway.http_clients import Answer, HttpClient, client_of

from toolcrib.activity import Event
from toolcrib.limits import CONSOLE_BACKLOG, CONSOLE_BEAT_NOTES, CONSOLE_STREAMS
from toolcrib.settings import ActivitySettings, Settings

CANARY = "canary-in-an-argument"


@pytest.fixture(autouse=True)
def patient_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed beats when a test says so, however busy the machine is."""
    monkeypatch.setattr("toolcrib.console.feed.CONSOLE_BEAT_S", 3_600.0)


def watch(page: Page, client: HttpClient) -> None:
    """Begins to watch."""
    client.send("GET", "/console/api/activity", cookie=page.cookie, x_toolcrib_console=page.token)


def seen(client: HttpClient) -> list[dict[str, Any]]:
    """What a page has read so far."""
    return Answer(client.wire.data, whole=False).events


@pytest.mark.requirement("X27", "X15")
async def test_a_page_sees_what_ran_before_it_came_and_what_runs_after(tmp_path: Path):
    async with (
        console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page,
        client_of(page.app) as client,
    ):
        await call(page, "git__create_issue", text="before")
        watch(page, client)
        await call(page, "git__create_issue", text="after")
        page.console.feed.beat()
        page.console.feed.beat()
        first, second = seen(client)
        for message in (first, second):
            done = message["events"][-1]
            assert (done["stage"], done["tool"], done["outcome"]) == ("done", "git__create_issue", "ok")
            assert done["duration_ms"] >= 0 and done["tokens"] > 0
        assert [event["stage"] for event in second["events"]] == [event["stage"] for event in first["events"]]
        feed = [event.as_json()["stage"] for event in page.gateway.crib.activity.events]
        assert [event["stage"] for message in (first, second) for event in message["events"]] == feed


@pytest.mark.requirement("J1", "X15", "X27")
@pytest.mark.parametrize("kept", ["shapes", "values"])
async def test_arguments_are_shapes_whatever_the_file_of_the_feed_holds(kept: Any, tmp_path: Path):
    settings = Settings(tools=SEARCHING, activity=ActivitySettings(arguments=kept))
    source = MemoryServer(TOOLS).source("git")
    async with console_page(source, directory=tmp_path, settings=settings) as page, client_of(page.app) as client:
        await call(page, "git__create_issue", text=CANARY)
        await page.gateway.crib.session().execute([bridged("git__create_issue", {"text": CANARY})])
        await call(page, "git__create_issue", text=[CANARY])
        await call(page, "tool_search", query=CANARY)
        watch(page, client)
        assert CANARY.encode() not in client.wire.data
        shapes = [event["arguments"] for event in seen(client)[0]["events"] if "arguments" in event]
        assert shapes[0] == {"text": f"string({len(CANARY)})"}


@pytest.mark.requirement("F10", "X27")
async def test_a_page_that_does_not_read_is_cut_off_and_nothing_is_kept_for_it(tmp_path: Path):
    source = MemoryServer(TOOLS).source("git")
    async with (
        console_page(source, directory=tmp_path) as page,
        client_of(page.app) as slow,
        client_of(page.app) as other,
    ):
        watch(page, slow)
        watch(page, other)
        slow.connection.pause_writing()
        for _ in range(CONSOLE_BACKLOG + 1):
            assert page.console.feed.watching == 2
            await call(page, "git__create_issue")
            page.console.feed.beat()
        assert slow.wire.aborted and not other.wire.aborted
        assert page.console.feed.watching == 1
        assert len(seen(other)) == CONSOLE_BACKLOG + 2


@pytest.mark.requirement("X27", "K11")
async def test_only_so_many_watch_and_who_leaves_makes_room(tmp_path: Path):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        clients = [HttpClient(page.app) for _ in range(CONSOLE_STREAMS)]
        for client in clients:
            watch(page, client)
        assert (await page.ask("api/activity")).status == 503
        await clients[0].leave()
        async with client_of(page.app) as client:
            watch(page, client)
            assert seen(client)
        for client in clients[1:]:
            await client.leave()


@pytest.mark.requirement("X27")
async def test_of_a_storm_the_last_calls_are_shown_and_the_others_counted(tmp_path: Path):
    source = MemoryServer(TOOLS).source("git")
    async with console_page(source, directory=tmp_path) as page, client_of(page.app) as client:
        watch(page, client)
        shown = CONSOLE_BEAT_NOTES // 2
        for number in range(shown + 7):
            await call(page, "git__create_issue", text="x" * number)
        page.console.feed.beat()
        message = seen(client)[-1]
        assert message["missed"] == 14
        shapes = [event["arguments"]["text"] for event in message["events"] if "arguments" in event]
        assert shapes == [f"string({number})" for number in range(7, shown + 7)]


@pytest.mark.requirement("X27")
async def test_nobody_who_watches_stands_in_the_way_of_a_call(tmp_path: Path):
    source = MemoryServer(TOOLS).source("git")
    async with console_page(source, directory=tmp_path) as page, client_of(page.app) as client:
        watch(page, client)
        assert page.gateway.crib.activity._sinks == [], "a sink would make events of every call as it runs"


@pytest.mark.requirement("J12", "G3")
async def test_a_stream_ends_with_the_sign_in_that_opened_it(tmp_path: Path):
    async with console_page(directory=tmp_path, signed_in=False) as page, client_of(page.app) as client:
        assert page.door.tokens is not None
        secret, _ = page.door.tokens.create("olga", profile="default", days=1, role="console")
        await page.sign_in(secret)
        watch(page, client)
        page.door.tokens.revoke("olga")
        page.console.feed.beat()
        assert page.console.feed.watching == 0
        assert client.wire.data.endswith(b"0\r\n\r\n")


@pytest.mark.requirement("J12")
async def test_signing_out_ends_the_streams_of_every_tab(tmp_path: Path):
    async with console_page(directory=tmp_path) as page, client_of(page.app) as client:
        watch(page, client)
        await page.ask("api/sign-out", {})
        page.console.feed.beat()
        assert page.console.feed.watching == 0
        assert client.wire.data.endswith(b"0\r\n\r\n")


@pytest.mark.requirement("G3", "J12")
async def test_a_file_of_tokens_that_cannot_be_trusted_ends_its_streams_and_no_others(tmp_path: Path):
    async with (
        console_page(directory=tmp_path) as page,
        client_of(page.app) as by_link,
        client_of(page.app) as by_token,
    ):
        watch(page, by_link)
        assert page.door.tokens is not None
        secret, _ = page.door.tokens.create("olga", profile="default", days=1, role="console")
        await page.sign_in(secret)
        watch(page, by_token)
        page.door.tokens.path.write_bytes(b"no tokens")
        page.console.feed.beat()
        assert page.console.feed.watching == 1
        assert by_token.wire.data.endswith(b"0\r\n\r\n")


async def test_an_event_that_cannot_be_shown_does_not_end_the_feed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("toolcrib.console.feed.CONSOLE_BEAT_S", 0.0)
    source = MemoryServer(TOOLS).source("git")
    async with console_page(source, directory=tmp_path) as page, client_of(page.app) as client:
        watch(page, client)
        page.gateway.crib.activity.record(Event(stage="search", detail=2**70))
        await eventually(lambda: "the feed left something out" in caplog.text)
        await call(page, "git__create_issue")
        while len(seen(client)) < 2:
            client.wire.news.clear()
            await client.wire.news.wait()


@pytest.mark.requirement("K12")
async def test_streams_end_when_the_gateway_stops(tmp_path: Path):
    async with console_page(directory=tmp_path) as page, client_of(page.app) as client:
        watch(page, client)
        page.console.close()
        assert client.wire.data.endswith(b"0\r\n\r\n")


async def test_the_feed_beats_by_itself_while_somebody_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.console.feed.CONSOLE_BEAT_S", 0.0)
    source = MemoryServer(TOOLS).source("git")
    async with console_page(source, directory=tmp_path) as page, client_of(page.app) as client:
        watch(page, client)
        await call(page, "git__create_issue")
        while len(seen(client)) < 2:
            client.wire.news.clear()
            await client.wire.news.wait()
        assert seen(client)[1]["events"]
