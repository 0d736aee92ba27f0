"""`toolcrib audit` with servers that a test answers for."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.audit.test_audit_report import tools
from tests.cli.terminal import Terminal
from tests.clients.samples import SAMPLES

from toolcrib.audit.report import Failure, Listed
from toolcrib.cli import app as application
from toolcrib.cli.audit import build_command
from toolcrib.cli.install import plan_all
from toolcrib.clients.base import Surroundings
from toolcrib.clients.install import apply_install
from toolcrib.definitions import JsonObject


class Servers:
    """Answers for servers, and remembers what it was asked to start."""

    def __init__(self, **answers: Listed) -> None:
        self.answers = answers
        self.started: dict[str, JsonObject] = {}

    def __call__(self, entries: Mapping[str, JsonObject], *, done: Callable[[str], None]) -> Mapping[str, Listed]:
        self.started = dict(entries)
        for name in entries:
            done(name)
        return {name: self.answers.get(name, tools(name, 2)) for name in entries}


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    made = Servers()

    def build_app() -> typer.Typer:
        app = typer.Typer(pretty_exceptions_enable=False)
        app.command("audit")(build_command(made))
        app.command("other")(lambda: None)
        return app

    monkeypatch.setattr(application, "build_app", build_app)
    return made


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.requirement("X23")
def test_the_servers_of_every_client_are_found_and_started_once(
    home: Path, terminal: Terminal, servers: Servers
) -> None:
    for sample in SAMPLES:
        write(home / sample.path, sample.text)
    done = terminal.run("audit", "--yes", "--json", "--context", "32000")
    assert done.code == 0, done.err
    names = {row["name"]: row for row in done.json["servers"]}
    assert len(names) == sum(len(sample.moved) + len(sample.staying) for sample in SAMPLES)
    assert names["keyed"]["status"] == "skipped" and "${input:key}" in names["keyed"]["error"]
    assert "keyed" not in servers.started and "idle" not in servers.started
    assert {item["client"] for item in done.json["clients"]} >= {"cursor", "zed", "codex"}


@pytest.mark.requirement("X23")
def test_two_clients_with_one_server_start_it_once_and_two_servers_with_one_name_are_told_apart(
    home: Path, terminal: Terminal, servers: Servers
) -> None:
    write(home / ".cursor/mcp.json", '{"mcpServers": {"git": {"command": "g"}, "x": {"command": "1"}}}')
    write(home / ".gemini/settings.json", '{"mcpServers": {"git": {"command": "g"}, "x": {"command": "2"}}}')
    assert terminal.run("audit", "--yes", "--json").code == 0
    assert list(servers.started) == ["git", "x", "x-gemini"]


@pytest.mark.requirement("X23")
def test_what_a_client_hides_is_not_counted(home: Path, terminal: Terminal, servers: Servers) -> None:
    write(home / ".gemini/settings.json", '{"mcpServers": {"git": {"command": "g", "includeTools": ["git_1"]}}}')
    assert terminal.run("audit", "--yes", "--json").code == 0
    assert servers.started["git"]["include"] == ["git_1"]


@pytest.mark.requirement("X23")
def test_after_an_installation_the_servers_behind_the_gateway_count(
    home: Path, terminal: Terminal, servers: Servers
) -> None:
    write(home / ".cursor/mcp.json", SAMPLES[2].text)
    before = terminal.run("audit", "--yes", "--json").json
    around = Surroundings(home=home, platform="linux", cwd=home)
    for plan in plan_all(around, client="cursor", every=False, only=[], scope="user"):
        apply_install(plan)
    after = terminal.run("audit", "--yes", "--json").json
    assert sorted(row["name"] for row in after["servers"]) == sorted(row["name"] for row in before["servers"])
    assert after["total_tokens"] == before["total_tokens"]


@pytest.mark.requirement("X23")
@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.client for sample in SAMPLES])
def test_a_named_file_of_any_client_is_understood(
    home: Path, terminal: Terminal, servers: Servers, sample: Any
) -> None:
    path = write(home / "elsewhere" / Path(sample.path).name, sample.text)
    done = terminal.run("audit", "--config", str(path), "--json")
    assert done.code == 0, done.err
    assert {row["name"] for row in done.json["servers"]} == {*sample.moved, *sample.staying}


@pytest.mark.requirement("X23")
def test_the_report_and_the_picture_are_written(home: Path, terminal: Terminal, servers: Servers) -> None:
    path = write(home / "mcp.json", '{"mcpServers": {"big": {"command": "x"}, "bad": {"command": "y"}}}')
    servers.answers = {"big": tools("big", 200), "bad": Failure(reason="it ended with code 1")}
    picture = home / "picture.svg"
    done = terminal.run("audit", "--config", str(path), "--context", "32000", "--svg", str(picture))
    assert done.code == 0, done.err
    assert "bad did not start: it ended with code 1" in done.out and "Saved per turn" in done.out
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_nothing_is_started_without_consent(
    home: Path, terminal: Terminal, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / ".cursor/mcp.json", SAMPLES[2].text)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    refused = terminal.run("audit")
    assert refused.code == 2 and "--yes" in refused.err and not servers.started


def test_wrong_use_is_one_sentence(home: Path, terminal: Terminal, servers: Servers) -> None:
    broken = write(home / "broken.json", '{\n"mcpServers": {')
    other = write(home / "other.json", '{"a": 1}')
    empty = write(home / "empty.json", '{"mcpServers": {}}')
    good = write(home / "good.json", '{"mcpServers": {"a": {"command": "x"}}}')
    target = home / "no" / "picture.svg"
    for args, said in (
        (("audit",), "No client with MCP servers"),
        (("audit", "--config", str(home / "none.json")), "cannot be read"),
        (("audit", "--config", str(broken)), "broken.json:2: "),
        (("audit", "--config", str(other)), "names no servers"),
        (("audit", "--config", str(empty)), "names no servers"),
        (("audit", "--config", str(good), "--svg", str(target)), "cannot be written"),
    ):
        refused = terminal.run(*args)
        assert refused.code == 2, args
        assert said in refused.err and len(refused.err.splitlines()) == 1, refused.err
