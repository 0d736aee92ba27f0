"""The command line: one module per command, one sentence per error.

Exit codes: 0 for success, 1 for a negative answer, 2 for wrong use or bad input. A traceback is shown only with
`TOOLCRIB_DEBUG=1`.
"""

import os
import sys


def main() -> None:
    """Runs the command line."""
    from toolcrib.cli.app import build_app
    from toolcrib.errors import ToolcribError

    debug = os.environ.get("TOOLCRIB_DEBUG") == "1"
    try:
        build_app()()
    except ToolcribError as error:
        if debug:
            raise
        sys.stderr.write(f"toolcrib: {error}\n")
        sys.exit(2)
    except BrokenPipeError:
        # The reader went away, as `head` does: nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
