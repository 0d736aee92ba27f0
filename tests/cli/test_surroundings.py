"""A full disk, a reader that went away, a terminal of another alphabet: no traceback, and the right exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal, toolcrib

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "tools.jsonl"
TOOLCRIB = (sys.executable, "-m", "toolcrib")


def started(*args: str, stdout: int, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        (*TOOLCRIB, *args), stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **environ}, check=False
    )


@pytest.mark.parametrize("command", [("describe", "forecast_v2"), ("tokens",)])
def test_a_reader_that_went_away_is_no_failure(command: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = started(*command, "--tools", str(CORPUS), stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "wrong", ["run --task task.md --endpoint http://127.0.0.1:9/v1", "run --task no.md", "tokens -x"]
)
def test_what_nobody_hears_of_is_a_failure_nevertheless(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Shorten it.", encoding="utf-8")
    (tmp_path / "toolcrib.yaml").write_text("agent: {endpoint: http://127.0.0.1:9/v1}", encoding="utf-8")
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            (*TOOLCRIB, *wrong.split()), cwd=tmp_path, stdout=subprocess.PIPE, stderr=write, check=False
        )
    finally:
        os.close(write)
    assert done.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_said_in_one_sentence() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = started("tokens", "--tools", str(CORPUS), stdout=full)
    finally:
        os.close(full)
    assert (done.returncode, done.stderr) == (2, b"toolcrib: No space left on device.\n")


def test_what_the_terminal_has_no_character_for_is_replaced() -> None:
    done = started("tokens", "--tools", str(CORPUS), stdout=subprocess.PIPE, PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"with Toolcrib" in done.stdout


def test_a_word_that_is_no_utf_8_is_answered_in_json() -> None:
    done = toolcrib("search", "door \udcff", "--tools", CORPUS, "--retrieval", "lexical", "--json")
    assert done.returncode == 0 and '"query":"door ?"' in done.stdout


def test_a_working_directory_that_is_gone_is_named(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = terminal.run("uninstall", "cursor")
    assert (done.code, done.err) == (2, "toolcrib: The working directory is gone: change to one that exists.\n")


def test_a_file_of_definitions_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text('\ufeff{"name": "open_door", "description": "Open the door."}\n', encoding="utf-8")
    assert toolcrib("tokens", "--tools", path, "--json").returncode == 0


def test_a_bar_ends_in_its_line_where_tool_search_costs_more_than_all_tools(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text('{"name": "open_door", "description": "Open the door."}\n', encoding="utf-8")
    attached, bridge, *_ = terminal.run("tokens", "--tools", str(path), "--context", "100").out.splitlines()
    assert 0 < attached.count("█") < bridge.count("█") <= 60


def test_a_file_of_definitions_may_begin_with_a_blank_line(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text(
        '\n{"name": "open_door", "description": "Open the door."}\n{"name": "shut_door"}\n', encoding="utf-8"
    )
    done = terminal.run("tokens", "--tools", str(path), "--json")
    assert json.loads(done.out)["n_tools"] == 2


@pytest.mark.parametrize("command", [("install", "cursor"), ("uninstall", "cursor"), ("audit",), ("doctor",)])
def test_a_link_that_leads_to_itself_is_named(home: Path, terminal: Terminal, command: tuple[str, ...]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.symlink_to(path.name)
    done = terminal.run(*command)
    assert done.code in (1, 2)
    assert "mcp.json: is a link that leads nowhere but to itself" in "".join((done.out, done.err)).replace("\n", " ")


def test_a_tool_that_is_held_back_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text(
        '{"name": "hide", "description": "Reads.\\u202e", "server": "s"}\n{"name": "read", "description": "Reads.", "server": "s"}\n',
        encoding="utf-8",
    )
    done = toolcrib("describe", "s__hide", "--tools", path)
    assert done.returncode == 2 and "`s__hide` is held back: " in done.stderr and "pins list" in done.stderr
