"""The command line: one module per command, one sentence per error.

Exit codes: 0 for success, 1 for a negative answer, 2 for wrong use or bad input. A traceback is shown only with
`TOOLCRIB_DEBUG=1`.
"""

import os
import select
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import NoReturn, Protocol, cast

_LAST_STREAM = 2
"""The descriptor of standard error."""


def main() -> None:
    """Runs the command line."""
    _open_streams()
    import typer

    from toolcrib.cli.app import build_app
    from toolcrib.errors import ToolcribError

    # Typer has a name for some of its complaints only; this is what they all are.
    parents = cast("tuple[type[Exception], ...]", typer.BadParameter.__mro__)
    complaint = next(kind for kind in parents if kind.__name__ == "ClickException")
    debug = os.environ.get("TOOLCRIB_DEBUG") == "1"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # where the terminal lacks a character
    try:
        code = build_app()(standalone_mode=False)
        _flush()
        sys.exit(code)
    except ToolcribError as error:
        if debug:
            raise
        _say(str(error))
        sys.exit(2)
    except complaint as error:
        _complain(cast("_Complaint", error))
        sys.exit(2)
    except typer.Abort as ended:
        # Ctrl-C, or the end of the input, where an answer was expected.
        sys.exit(130 if isinstance(ended.__context__, KeyboardInterrupt) else 1)
    except SystemExit as ended:
        # Typer takes a reader that went away for a failure.
        if isinstance(ended.__context__, BrokenPipeError):
            _fail(ended.__context__)
        raise
    except OSError as error:
        if debug:
            raise
        _fail(error)
    except KeyboardInterrupt:
        sys.exit(130)


def _open_streams() -> None:
    """Puts an empty stream where whoever started this closed one: else the next file or pipe would take its place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _LAST_STREAM:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _flush() -> None:
    if not sys.stdout.closed:  # as the gateway leaves it
        sys.stdout.flush()


def _fail(error: OSError) -> NoReturn:
    """Ends with what the system said; a reader that went away, as `head` does, is no failure."""
    if isinstance(error, BrokenPipeError) and _has_lost_its_reader():
        _leave_without_output(0)
    place = f"{error.filename}: " if error.filename else ""
    _say(f"{place}{error.strerror or error}.")
    _leave_without_output(2)


def _has_lost_its_reader() -> bool:
    """Whether nobody reads standard output any more: what broke may be the pipe of standard error, or of a server."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _leave_without_output(code: int) -> NoReturn:
    """Ends although there may be output left that cannot be written."""
    with suppress(OSError):
        _flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _say(text: str) -> None:
    """Says what is wrong."""
    with _heard_or_not():
        sys.stderr.write(f"toolcrib: {text}\n")


@contextmanager
def _heard_or_not() -> Generator[None]:
    """Within it nobody needs to read standard error: the exit code says the same."""
    try:
        yield
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class _Complaint(Protocol):
    """What the parser says about a command line."""

    def format_message(self) -> str: ...
    def show(self) -> None: ...


def _complain(error: _Complaint) -> None:
    """Says in one sentence what is wrong with the command line; a group without a command shows its help."""
    message = error.format_message()
    if "\n" in message:
        with _heard_or_not():
            error.show()
        return
    command = getattr(getattr(error, "ctx", None), "command_path", "toolcrib")
    step = "" if message.endswith("?") else f" (see `{command} --help`)."
    _say(f"{message.rstrip('.')}{step}")
