"""Signals: whoever ends a chat or a run ends what it started, too, and a run still says what became of it."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.agent.test_schedule import write_files
from tests.fakes.scripted_model import Say, ScriptedModel, call

PATIENCE_S = 60.0


def allow_commands(folder: Path) -> None:
    with (folder / "config.yaml").open("a", encoding="utf-8") as file:
        file.write("approvals: {rules: {terminal: allow}}\n")


def command_that_signals(name: str) -> object:
    """A command that sends its host a signal, and would run on for long."""
    return call("terminal", {"command": f"echo $$ > pid; kill -{name} $PPID; sleep 600"})


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.requirement("X28")
@pytest.mark.parametrize("name", ["TERM", "HUP", "INT"])
def test_a_signal_ends_a_run_with_its_commands_and_leaves_a_record(name: str, tmp_path: Path) -> None:
    with ScriptedModel([command_that_signals(name)]) as endpoint:
        arguments = write_files(tmp_path, endpoint.openai_url)
        allow_commands(tmp_path)
        command = [sys.executable, "-m", "toolcrib", *arguments, "--record", str(tmp_path / "r.json")]
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, text=True, check=False)
    record = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (record["outcome"], record["reason"]) == ("interrupted", f"SIG{name} ended the run before it was done.")
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")
    assert "Traceback" not in done.stderr
    assert not is_alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


class Screen:
    """A terminal with a program in it."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.shown = ""

    def wait_for(self, words: str) -> None:
        """Reads until the words are there, after those that were waited for before."""
        while words not in self.shown:
            assert select.select([self._master], [], [], PATIENCE_S)[0], self.shown
            self.shown += os.read(self._master, 4_096).decode(errors="replace")
        self.shown = self.shown.partition(words)[2]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())


@contextmanager
def chat_in_a_terminal(folder: Path, endpoint: ScriptedModel) -> Generator[tuple[Screen, subprocess.Popen[bytes], int]]:
    config = write_files(folder, endpoint.openai_url)[-1]
    allow_commands(folder)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "toolcrib", "chat", "--config", config],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb"},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        yield Screen(master), process, slave
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)


@pytest.mark.requirement("X28")
def test_ctrl_c_ends_the_turn_and_the_conversation_goes_on(tmp_path: Path) -> None:
    with (
        ScriptedModel([command_that_signals("INT"), Say("Still here.")]) as endpoint,
        chat_in_a_terminal(tmp_path, endpoint) as (screen, process, slave),
    ):
        before = termios.tcgetattr(slave)
        screen.wait_for("you> ")
        screen.type("Go.\n")
        screen.wait_for("interrupted")
        screen.wait_for("you> ")
        assert not is_alive(int((tmp_path / "pid").read_text(encoding="utf-8")))
        screen.type("Once nore.\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D\x1b[3~m\n")
        screen.wait_for("Still here.")
        assert endpoint.requests[-1].messages[-1]["content"] == "Once more.", "the line was edited"
        screen.wait_for("you> ")
        screen.type("\x03")
        assert process.wait(PATIENCE_S) == 130
        assert termios.tcgetattr(slave) == before


@pytest.mark.requirement("X28")
def test_a_terminal_that_goes_away_ends_the_commands_of_a_chat(tmp_path: Path) -> None:
    with (
        ScriptedModel([command_that_signals("HUP")]) as endpoint,
        chat_in_a_terminal(tmp_path, endpoint) as (screen, process, _),
    ):
        screen.wait_for("you> ")
        screen.type("Go.\n")
        assert process.wait(PATIENCE_S) == 128 + signal.SIGHUP
        assert "Traceback" not in screen.shown
        assert not is_alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


@pytest.mark.requirement("X28")
def test_a_chat_can_be_ended_while_it_asks(tmp_path: Path) -> None:
    with (
        ScriptedModel([call("execute_code", {"code": "1"})]) as endpoint,
        chat_in_a_terminal(tmp_path, endpoint) as (screen, process, _),
    ):
        screen.wait_for("you> ")
        screen.type("Go.\n")
        screen.wait_for("[y/N] ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM


@pytest.mark.requirement("X28", "X14")
def test_a_line_typed_ahead_in_a_terminal_is_no_approval(tmp_path: Path) -> None:
    script = [call("execute_code", {"code": "open('ran', 'w')"}), Say("It was refused.")]
    with (
        ScriptedModel(script) as endpoint,
        chat_in_a_terminal(tmp_path, endpoint) as (screen, _, _),
    ):
        screen.wait_for("you> ")
        screen.type("Go.\ny\n")
        screen.wait_for("[y/N] ")
        screen.type("n\n")
        screen.wait_for("It was refused.")
        assert not (tmp_path / "ran").exists()
