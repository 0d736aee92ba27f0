"""Lines on a terminal and in a pipe."""

import io

from rich.console import Console
from rich.text import Text

from toolcrib.terminal import disarm, print_hanging

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


def test_control_characters_of_others_are_shown_and_not_obeyed() -> None:
    assert disarm("a\x1b]52;c;eA==\x07b\rc\u202ed\x9be") == "a‹U+001B›]52;c;eA==‹U+0007›b‹U+000D›c‹U+202E›d‹U+009B›e"


def test_lines_tabs_letters_and_emoji_stay_as_they_are() -> None:
    text = "one\n\ttwo, drei Äpfel, 五, \U0001f468\u200d\U0001f467"
    assert disarm(text) == text
    assert disarm("a\r\nb") == "a\nb"
