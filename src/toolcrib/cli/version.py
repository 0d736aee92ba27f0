"""`toolcrib version`."""

from importlib.metadata import version as installed_version

import typer


def version() -> None:
    """Prints the version."""
    typer.echo(f"toolcrib {installed_version('toolcrib')}")
