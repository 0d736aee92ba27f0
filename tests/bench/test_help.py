"""Every benchmark says what it does, what it takes and what is wrong, without a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.__main__ import ABOUT, FAMILIES

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(
    path.stem
    for path in (ROOT / "bench").glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
)


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, timeout=60)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_says_how_it_is_run(name: str) -> None:
    said = run("bench" if name == "__main__" else f"bench.{name}", "--help")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("usage: ")
    assert "[]" not in said.stdout


@pytest.mark.parametrize("name", ["calibration", "cohort", "real_catalogs", "salience"])
def test_a_benchmark_without_its_files_says_what_it_needs(name: str) -> None:
    said = run(f"bench.{name}")
    assert said.returncode == 2
    assert "the following arguments are required" in said.stderr
    assert "Traceback" not in said.stderr


def test_every_family_is_described_and_an_unknown_one_is_named() -> None:
    assert ABOUT.keys() == FAMILIES.keys()
    said = run("bench", "serach")
    assert said.returncode == 2
    assert "there is no serach" in said.stderr
