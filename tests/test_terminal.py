"""Lines on a terminal and in a pipe."""

import io

from rich.console import Console
from rich.text import Text

from toolcrib.terminal import print_hanging

WORDS = "one two three four five six seven eight nine ten"


def printed(*, width: int, is_terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=is_terminal, color_system=None)
    print_hanging(console, Text("  ok  "), Text(WORDS))
    return out.getvalue()


def test_a_terminal_gets_a_column_that_breaks_between_words() -> None:
    assert printed(width=30, is_terminal=True).splitlines() == [
        "  ok  one two three four five",
        "      six seven eight nine ten",
    ]


def test_a_pipe_gets_one_line() -> None:
    assert printed(width=30, is_terminal=False) == f"  ok  {WORDS}\n"
