"""The machine as it is: the only place where a command reads home, platform and environment for the clients."""

import os
import shutil
import sys
from pathlib import Path

from toolcrib.clients.base import Surroundings
from toolcrib.clients.install import Launcher
from toolcrib.errors import ConfigError
from toolcrib.home import require_home


def read_surroundings() -> Surroundings:
    """Home, platform, working directory and environment now. Raises `ConfigError`."""
    try:
        cwd = Path.cwd()
    except OSError:
        raise ConfigError("The working directory is gone: change to one that exists.") from None
    return Surroundings(home=require_home(), platform=sys.platform, cwd=cwd, environ=dict(os.environ))


def find_launcher(around: Surroundings) -> Launcher:
    """How to start this very installation of Toolcrib from anywhere, also without a shell's search path."""
    directory = around.xdg_home / "toolcrib" if around.platform != "win32" else around.config_home / "toolcrib"
    program = "toolcrib.exe" if around.platform == "win32" else "toolcrib"
    beside = Path(sys.executable).with_name(program)
    found = str(beside) if beside.is_file() else shutil.which("toolcrib")
    if found:
        return Launcher(command=found, directory=directory)
    return Launcher(command=sys.executable, args=("-m", "toolcrib"), directory=directory)
