"""What every command prints with: JSON for machines, tables for people, plain text in pipes."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.definitions import Json


def print_json(value: "Json") -> None:
    """Prints a value as JSON, indented for a terminal and compact for a pipe."""
    import orjson

    option = orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0
    sys.stdout.write(orjson.dumps(value, option=option).decode() + "\n")


def open_console() -> "Console":
    """A console for tables and bars; without colour where there is no terminal or `NO_COLOR` is set."""
    from rich.console import Console

    class Output(Console):
        """Leaves a reader that went away, as `head` does, to `main`: nothing is wrong then."""

        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise BrokenPipeError

    return Output(highlight=False, soft_wrap=False)
