"""The five views: each shows what the gateway really knows, and what is decided there counts at the same desk."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.terminal import toolcrib
from tests.console.consoles import SEARCHING, console_page
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.http_clients import client_of
from tests.gateway.test_http import modern

from toolcrib.audit.report import build_report, report_json
from toolcrib.errors import SourceUnavailable
from toolcrib.settings import ActivitySettings, ServerSettings, Settings
from toolcrib.sources.link import Link
from toolcrib.sources.mcp_source import McpSource

TOOLS = [tool("create_issue", "Opens an issue in a repository."), tool("delete_repo", "Deletes a repository for good.")]


async def call(page: Any, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """A call of a client of the same gateway."""
    body, headers = modern("tools/call", name=tool, arguments=arguments)
    async with client_of(page.app) as client:
        client.send(body=body, **headers)
        return (await client.answer()).json["result"]


@pytest.mark.requirement("X27", "X26")
async def test_a_search_shows_its_hits_what_each_field_gave_and_what_the_model_reads(tmp_path: Path):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        found = (await page.ask("api/search", {"query": "open an issue", "limit": 1})).json
        (hit,) = found["matches"]
        assert (hit["name"], hit["toolset"], found["total_available"]) == ("git__create_issue", "mcp-git", 2)
        assert abs(sum(hit["evidence"].values()) - hit["score"]) < 0.01
        assert "git__create_issue" in found["answer"] and found["tokens"] > 0
        assert (found["abstained"], found["retrieval"]) == (False, "lexical")
        assert page.gateway.crib.activity.events == (), "looking is no activity"


@pytest.mark.requirement("X27", "X2")
async def test_a_search_that_finds_nothing_says_so_and_one_for_nothing_is_refused(tmp_path: Path):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        nothing = (await page.ask("api/search", {"query": "knit scarves"})).json
        assert (nothing["abstained"], nothing["matches"]) == (True, [])
        assert (await page.ask("api/search", {"query": "  "})).status == 400
        unknown = await page.ask("api/search", {"query": "x", "profile": "nobody"})
        assert (unknown.status, "no profile" in unknown.json["error"]) == (409, True)


@pytest.mark.requirement("X27", "S19")
async def test_a_search_sees_what_its_profile_sees(tmp_path: Path):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        found = (await page.ask("api/search", {"query": "open an issue", "profile": "none"})).json
        assert (found["matches"], found["total_available"]) == ([], 0)


async def test_calls_do_not_wait_for_the_index_of_the_first_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        discovery, threads = page.gateway.crib.discovery, list[bool]()
        retriever = discovery._require_retriever()
        made = retriever.index

        def index(*given: Any) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return made(*given)

        monkeypatch.setattr(discovery, "_retriever", SimpleNamespace(index=index))
        assert (await page.ask("api/search", {"query": "open an issue"})).status == 200
        assert threads == [False]


@pytest.mark.requirement("X27", "X7")
async def test_the_same_search_again_is_answered_as_the_first_time(tmp_path: Path):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        answers = [(await page.ask("api/search", {"query": "open an issue"})).json for _ in range(12)]
        assert len({answer["answer"] for answer in answers}) == 1


@pytest.mark.requirement("X27", "X23")
async def test_the_token_picture_is_that_of_an_audit(tmp_path: Path):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        picture = (await page.ask("api/tokens", {"context": 100_000})).json
        assert picture == report_json(build_report({"git": TOOLS}, context=100_000, settings=Settings(tools=SEARCHING)))
        assert picture["servers"][0]["tools"] == 2
        assert (await page.ask("api/tokens", {"context": 100_000})).json == picture


@pytest.mark.requirement("X27", "X15")
async def test_the_token_picture_leaves_no_trace_in_the_feed(tmp_path: Path):
    settings = Settings(tools=SEARCHING, activity=ActivitySettings(file=str(tmp_path / "feed.jsonl")))
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path, settings=settings) as page:
        await page.ask("api/tokens", {})
        assert (tmp_path / "feed.jsonl").read_bytes() == b""


@pytest.mark.requirement("X27", "X22", "B4")
async def test_a_call_that_waits_is_shown_and_allowed_once(tmp_path: Path):
    server = MemoryServer(TOOLS)
    async with console_page(server.source("git"), directory=tmp_path) as page:
        page.console.welcome("http://127.0.0.1:8765")
        refused = await call(page, "git__delete_repo", text="all of it")
        assert "allow it at http://127.0.0.1:8765/console/" in refused["content"][0]["text"]
        (waiting,) = (await page.ask("api/approvals")).json
        assert (waiting["tool"], waiting["toolset"], waiting["principal"]) == ("git__delete_repo", "mcp-git", "local")
        assert (waiting["arguments"], waiting["rule"]) == ('{"text": "all of it"}', "*delete*")
        assert 0 < waiting["left_s"] <= 600
        assert (await page.ask("api/overview")).json["waiting"] == 1
        assert (await page.ask("api/approvals", {"id": waiting["id"], "allow": True})).status == 200
        answers = [(await call(page, "git__delete_repo", text="all of it")).get("isError", False) for _ in range(2)]
    assert answers == [False, True]
    assert server.count("tools/call") == 1
    decided = next(event for event in page.gateway.crib.activity.events if event.stage == "decide")
    assert (decided.tool, decided.reason) == ("git__delete_repo", "allowed in the console by local")


@pytest.mark.requirement("X27", "X22")
async def test_a_decision_that_comes_too_late_gets_a_clear_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path) as page:
        await call(page, "git__delete_repo")
        (waiting,) = (await page.ask("api/approvals")).json
        monkeypatch.setattr("toolcrib.gateway.desk.default_directory", lambda: page.gateway.desk.directory)
        refused = await asyncio.to_thread(toolcrib, "approvals", "refuse", waiting["id"])
        assert "Refused" in refused.stdout
        for allow in (True, False):
            late = await page.ask("api/approvals", {"id": waiting["id"], "allow": allow})
            assert (late.status, "does not wait any more" in late.json["error"]) == (409, True)
        assert (await page.ask("api/approvals", {"id": "../../tokens", "allow": True})).status == 409


@pytest.mark.requirement("X27", "X17")
async def test_health_says_how_every_server_is_and_since_when(tmp_path: Path):
    good, bad = MemoryServer(TOOLS), MemoryServer()
    sources = (good.source("good"), bad.source("bad"), MemoryServer().source("idle", start="on_demand"))
    async with console_page(*sources, directory=tmp_path) as page:
        await eventually(lambda: sources[2].health.state == "stopped")
        bad.links[-1].fail("it ended with exit code 3")
        await eventually(lambda: sources[1].health.state == "down")
        servers = (await page.ask("api/health")).json
        assert [(item["name"], item["state"], item["tools"]) for item in servers] == [
            ("bad", "down", 1), ("good", "up", 2), ("idle", "stopped", 1),
        ]  # fmt: skip
        assert servers[0]["reason"] == servers[0]["failure"] == "it ended with exit code 3"
        assert (servers[0]["restarts"], servers[1]["failure"], servers[1]["restarts"]) == (0, None, 0)
        assert all(item["since_s"] >= 0 for item in servers)
        assert (await page.ask("api/overview")).json["down"] == 1


@pytest.mark.requirement("J1", "J9", "I3")
async def test_what_a_server_was_given_is_hidden_in_what_it_says_of_its_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_OF_ONE", "canary-in-a-variable")
    entry = ServerSettings(
        command="canary-command", args=("--api-key", "canary-argument"), env={"A": "${SECRET_OF_ONE}", "B": "canary-env"},
        headers={"Authorization": "Bearer canary-header"},
    )  # fmt: skip
    server = MemoryServer()
    settings = Settings(tools=SEARCHING, mcpServers={"one": entry})
    async with console_page(server.source("one"), directory=tmp_path, settings=settings) as page:
        server.links[-1].fail(
            "canary-in-a-variable, canary-argument, canary-env, canary-header and \x1b[31m\u202ered\u200b"
        )
        await eventually(lambda: page.gateway.servers[0].health.state == "down")
        answer = await page.ask("api/health")
        assert b"canary" not in answer.body
        assert answer.json[0]["reason"] == "***, ***, ***, *** and ‹U+001B›[31m‹U+202E›red‹U+200B›"
        found = await page.ask("api/search", {"query": "echo"})
        assert found.json["matches"][0]["unavailable"].startswith("***, ***")
        assert b"canary" not in found.body


@pytest.mark.requirement("J1")
async def test_what_a_server_was_given_is_hidden_in_the_token_picture_too(tmp_path: Path):
    settings = Settings(
        tools=SEARCHING, mcpServers={"one": ServerSettings(command="x", env={"A": "canary-in-a-variable"})}
    )

    async def connect(*_: object) -> Link:
        raise SourceUnavailable("it ended: canary-in-a-variable is no key")

    source = McpSource("one", connect)
    async with console_page(source, directory=tmp_path, settings=settings) as page:
        answer = await page.ask("api/tokens", {})
        assert answer.json["servers"][0]["error"] == "it ended: *** is no key"


async def test_somebody_who_does_not_wait_for_the_token_picture_starts_no_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    began, may_end = threading.Semaphore(0), threading.Event()

    def figures(*_: object) -> dict[str, str]:
        began.release()
        may_end.wait(30)
        return {"made": "once"}

    monkeypatch.setattr("toolcrib.console.picture._figures", figures)
    async with console_page(directory=tmp_path) as page:
        for _ in range(3):
            impatient = asyncio.ensure_future(page.console._picture.show(1_000))
            await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.gather(impatient, return_exceptions=True)
        patient = asyncio.ensure_future(page.console._picture.show(1_000))
        await asyncio.to_thread(began.acquire)
        may_end.set()
        assert await patient == {"made": "once"}
        assert not began.acquire(blocking=False)


@pytest.mark.requirement("I3")
async def test_hidden_characters_of_a_tool_are_written_out_wherever_they_stand(tmp_path: Path):
    hidden = tool("echo", "Echo\u202e reversed \x1b[2J and\u200b zero.")
    settings = Settings(tools=SEARCHING, screening="off")
    async with console_page(MemoryServer([hidden]).source("one"), directory=tmp_path, settings=settings) as page:
        text = (await page.ask("api/search", {"query": "echo reversed"})).body.decode()
        assert "‹U+202E›" in text and "‹U+200B›" in text
        assert not {"\u202e", "\u200b", "\x1b"} & set(text)
        assert "\\u001b" not in text.replace("\\\\u001b", "")
