"""A bar on the terminal while servers start; nothing in a pipe."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def starting_bar(total: int, *, quiet: bool) -> Generator[Callable[[str], None]]:
    """Shows a bar on standard error until the block ends; call what it gives with the name of each that came in."""
    if quiet or not total or not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("starting servers"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, console=Console(stderr=True, highlight=False)) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, advance=1, description=name)
