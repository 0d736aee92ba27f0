"""`toolcrib version`."""

import typer


def version() -> None:
    """Prints the version."""
    from importlib.metadata import version as installed_version

    typer.echo(f"toolcrib {installed_version('toolcrib')}")
