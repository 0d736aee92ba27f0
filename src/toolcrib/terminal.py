"""Text on a terminal: wrapped between words under its own beginning; in a pipe one line, so that it can be searched."""

from rich.console import Console
from rich.text import Text

_NARROWEST = 20


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
