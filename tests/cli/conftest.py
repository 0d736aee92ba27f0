"""A home directory of its own for every test of the command line."""

from pathlib import Path

import pytest
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(monkeypatch, capsys)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    project = directory / "project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(directory))
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
        "CODEX_HOME",
        "HERMES_HOME",
        "CLAUDE_CONFIG_DIR",
        "TOOLCRIB_DEBUG",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)
    return directory
