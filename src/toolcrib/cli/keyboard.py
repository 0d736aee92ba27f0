"""The terminal as lines: with editing where it is for conversation, plainly where somebody agrees to something.

A question is answered with what is typed after it: the editor of lines would keep what was typed before.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib import import_module


class NotText(ValueError):
    """A line that cannot be read as text."""

    def __init__(self) -> None:
        super().__init__(f"that line is no {_encoding().upper()} text and was left out")


def read_line(prompt: str) -> str:
    """One line, as it comes. Raises `EOFError`, `NotText`."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    # Without the buffer, and with it its lock: a thread that waits for a line must not keep the program from ending.
    line: bytes = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer).readline()
    if not line:
        raise EOFError
    try:
        return line.decode(_encoding()).rstrip("\r\n")
    except UnicodeDecodeError:
        raise NotText from None


def edit_line(prompt: str) -> str:
    """One line, with editing and a history where there is a terminal. Raises `EOFError`, `NotText`."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return read_line(prompt)
    with suppress(ImportError):
        import_module("readline")  # `input` edits lines with it
    try:
        line = input(prompt)
        line.encode()
    except UnicodeError:
        raise NotText from None
    return line


def discard_typed() -> None:
    """Forgets what was typed ahead: it is no answer to what is asked now."""
    if not sys.stdin.isatty():
        return
    try:
        import termios
    except ImportError:
        return
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def terminal_kept() -> Generator[None]:
    """Leaves the terminal as it was found: an editor of lines that never came to its end cannot."""
    if not sys.stdin.isatty():
        yield
        return
    try:
        import termios
    except ImportError:
        yield
        return
    found = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, found)


def _encoding() -> str:
    return getattr(sys.stdin, "encoding", None) or "utf-8"
