"""`toolcrib version`."""

from typing import Annotated

import typer

from toolcrib.cli.output import print_json


def version(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Prints the version, and whether the compiled kernel is in use.

    Example: toolcrib version --json
    """
    import platform
    from importlib.metadata import version as installed_version

    from toolcrib.kernel import account, kernel

    number = installed_version("toolcrib")
    if json:
        print_json({"version": number, "kernel": kernel is not None, "python": platform.python_version()})
    else:
        typer.echo(f"toolcrib {number}, {account()}")
