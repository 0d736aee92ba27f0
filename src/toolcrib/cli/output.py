"""What every command prints with: JSON for machines, tables for people, plain text in pipes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.definitions import Json


def print_json(value: "Json") -> None:
    """Prints a value as JSON, indented for a terminal and compact for a pipe."""
    import orjson

    option = orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0
    sys.stdout.write(orjson.dumps(value, option=option).decode() + "\n")


def write_file(path: Path, content: str) -> None:
    """Writes a file that a person asked for. Raises `ConfigError`."""
    from toolcrib.errors import ConfigError

    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}.") from None


def open_console() -> "Console":
    """A console for tables and bars; without colour where there is no terminal or `NO_COLOR` is set."""
    from rich.console import Console

    class Output(Console):
        """Leaves a reader that went away, as `head` does, to `main`: nothing is wrong then."""

        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise BrokenPipeError

    return Output(highlight=False, soft_wrap=False)
