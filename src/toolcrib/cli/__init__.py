"""The command line: one module per command, one sentence per error.

Exit codes: 0 for success, 1 for a negative answer, 2 for wrong use or bad input. A traceback is shown only with
`TOOLCRIB_DEBUG=1`.
"""

import os
import sys
from typing import Protocol, cast


def main() -> None:
    """Runs the command line."""
    import typer

    from toolcrib.cli.app import build_app
    from toolcrib.errors import ToolcribError

    # Typer has a name for some of its complaints only; this is what they all are.
    parents = cast("tuple[type[Exception], ...]", typer.BadParameter.__mro__)
    complaint = next(kind for kind in parents if kind.__name__ == "ClickException")
    debug = os.environ.get("TOOLCRIB_DEBUG") == "1"
    try:
        sys.exit(build_app()(standalone_mode=False))
    except ToolcribError as error:
        if debug:
            raise
        sys.stderr.write(f"toolcrib: {error}\n")
        sys.exit(2)
    except complaint as error:
        _complain(cast("_Complaint", error))
        sys.exit(2)
    except typer.Abort:
        # The end of the input where an answer was expected.
        sys.exit(1)
    except BrokenPipeError:
        # The reader went away, as `head` does: nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


class _Complaint(Protocol):
    """What the parser says about a command line."""

    def format_message(self) -> str: ...
    def show(self) -> None: ...


def _complain(error: _Complaint) -> None:
    """Says in one sentence what is wrong with the command line; a group without a command shows its help."""
    message = error.format_message()
    if "\n" in message:
        error.show()
        return
    command = getattr(getattr(error, "ctx", None), "command_path", "toolcrib")
    step = "" if message.endswith("?") else f" (see `{command} --help`)."
    sys.stderr.write(f"toolcrib: {message.rstrip('.')}{step}\n")
