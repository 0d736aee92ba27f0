"""A bar on the terminal while something takes its time; nothing in a pipe."""

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.retrieval.base import Retriever
    from toolcrib.retrieval.filling import FillState


_NAMED = 3


@contextmanager
def starting_bar(names: Sequence[str], *, quiet: bool) -> Generator[Callable[[str], None]]:
    """Shows a bar on standard error until the block ends; call what it gives with the name of each that came in."""
    if quiet or not names or not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    left = list(names)
    columns = (TextColumn("starting servers"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, console=Console(stderr=True, highlight=False)) as bar:
        task = bar.add_task(waited_for(left), total=len(names))

        def heard(name: str) -> None:
            if name in left:
                left.remove(name)
            bar.update(task, advance=1, description=waited_for(left))

        yield heard


def waited_for(names: Sequence[str]) -> str:
    """Who keeps us waiting: whoever sees that for a minute wants to know."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"waiting for {', '.join(names[:_NAMED])}{more}" if names else ""


def wait_for_vectors(retriever: "Retriever", *, seconds: float = float("inf")) -> None:
    """Waits until every tool of the indexes has its vectors, or as long as given, with a bar on standard error."""
    from toolcrib.retrieval.factory import RerankedRetriever, fills_of

    ends = time.monotonic() + seconds
    for fill in fills_of(retriever):
        if not fill.state.settled:
            with vector_bar("reading tools") as heard:
                fill.wait(max(0.0, ends - time.monotonic()), heard)
    if isinstance(retriever, RerankedRetriever):
        retriever.wait(max(0.0, ends - time.monotonic()))


@contextmanager
def vector_bar(doing: str) -> "Generator[Callable[[FillState], None]]":
    """Shows how far the vectors are, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda state: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, console=Console(stderr=True, highlight=False)) as bar:
        task = bar.add_task("", total=None)
        yield lambda state: bar.update(task, completed=state.done, total=state.wanted or None)
