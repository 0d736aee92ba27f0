"""Where the files of a user go, if the user has a home: in a container there may be none."""

import os
from pathlib import Path

from toolcrib.errors import ConfigError

NO_HOME = "This user has no home directory: set HOME to a directory for its files."


def find_home() -> Path | None:
    """The home directory; nothing for a user without one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def require_home() -> Path:
    """The home directory. Raises `ConfigError` for a user without one."""
    home = find_home()
    if home is None:
        raise ConfigError(NO_HOME)
    return home


def config_directory() -> Path:
    """Where what is configured by commands is kept. Raises `ConfigError` for a user without a home."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else require_home() / ".config") / "toolcrib"
