"""Runs the command line in this process, as a shell would see it."""

import contextlib
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import pytest

from toolcrib.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)


@dataclass(frozen=True, slots=True)
class Terminal:
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def run(self, *args: str) -> Outcome:
        self.monkeypatch.setattr(sys, "argv", ["toolcrib", *args])
        self.capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        captured = self.capsys.readouterr()
        return Outcome(code=code, out=captured.out, err=captured.err)


def toolcrib(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a pipe would see of the command, without the time that a process takes to start."""
    args = ["toolcrib", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", args),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return subprocess.CompletedProcess(args, code, out.getvalue(), err.getvalue())
