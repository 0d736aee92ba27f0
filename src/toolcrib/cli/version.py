"""`toolcrib version`."""

import typer


def version() -> None:
    """Prints the version, and whether the compiled kernel is in use."""
    from importlib.metadata import version as installed_version

    from toolcrib.kernel import account

    typer.echo(f"toolcrib {installed_version('toolcrib')}, {account()}")
