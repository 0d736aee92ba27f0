"""What every command prints with: JSON for machines, tables for people, plain text in pipes."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.definitions import Json


def print_json(value: "Json") -> None:
    """Prints a value as JSON, indented for a terminal and compact for a pipe."""
    import orjson

    option = orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0
    try:
        written = orjson.dumps(value, option=option)
    except TypeError:
        # A word of the command line, or a name of the disk, that is no UTF-8.
        written = orjson.dumps(_mended(value), option=option)
    sys.stdout.write(written.decode() + "\n")


def _mended(value: "Json") -> "Json":
    """The value with what is no character replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    if isinstance(value, Mapping):
        return {key.encode("utf-8", "replace").decode(): _mended(item) for key, item in value.items()}
    return value


def write_file(path: Path, content: str) -> None:
    """Writes a file that a person asked for. Raises `ConfigError`."""
    from toolcrib.errors import ConfigError

    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}.") from None


def require_writable(path: Path) -> None:
    """Looks whether a file can be written, before the work that it is for. Raises `ConfigError`."""
    from toolcrib.errors import ConfigError

    folder = path.parent
    if path.is_dir():
        raise ConfigError(f"{path}: is a directory; name a file.")
    if not folder.is_dir():
        raise ConfigError(f"{path}: there is no directory {folder}: create it first.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"{path}: cannot be written: Permission denied.")


def is_text(value: str) -> bool:
    """Whether a word of the command line is text: bytes that are none come as halves of characters."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def open_console() -> "Console":
    """A console for tables and bars; without colour where there is no terminal or `NO_COLOR` is set."""
    from rich.console import Console

    class Output(Console):
        """Leaves a reader that went away, as `head` does, to `main`: nothing is wrong then."""

        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise BrokenPipeError

    return Output(highlight=False, soft_wrap=False)
