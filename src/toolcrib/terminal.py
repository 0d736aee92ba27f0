"""Text on a terminal: wrapped between words under its own beginning; in a pipe one line, so that it can be searched."""

import re

from rich.console import Console
from rich.text import Text

_NARROWEST = 20
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it; line ends and tabs are meant."""


def disarm(text: str) -> str:
    """The text as somebody else wrote it, with every control character written as its code point."""
    return _OBEYED.sub(lambda match: f"‹U+{ord(match[0]):04X}›", text.replace("\r\n", "\n"))


def print_hanging(console: Console, head: Text, text: Text) -> None:
    """Prints `head`, and `text` behind it in a column of its own."""
    if not console.is_terminal:
        line = Text.assemble(head, text)
        line.rstrip()
        console.print(line, soft_wrap=True)
        return
    room = max(_NARROWEST, console.width - head.cell_len)
    for number, line in enumerate(text.wrap(console, room)):
        line.rstrip()
        console.print(Text.assemble(Text(" " * head.cell_len) if number else head, line), soft_wrap=True)
