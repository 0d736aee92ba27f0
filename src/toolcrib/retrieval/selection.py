"""Picks the hits from scored rows: best first, ties by key, and no toolset that crowds out its rivals (D2).

A toolset gets at most half of the places, rounded up, as long as others have something that comes close: a
rival at least `RIVAL_SHARE` as good as what it displaces. So a server that offers twenty look-alikes cannot
fill an answer, while a query that only one toolset can answer still gets all its tools. Order is by score
alone.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from toolcrib.kernel import kernel
from toolcrib.limits import SELECTION_MAX_ROWS
from toolcrib.retrieval.base import Document

RIVAL_SHARE = 0.75
Floats = NDArray[np.float32]
Scored = tuple[float, Document]
Best = Callable[[int], tuple[list[int], list[float]]]
"""Gives the rows of so many of the best positive scores, ties at the edge included, and the scores; best first."""
_SHARES = tuple(map(np.float32, (0.6, 0.4, 0.25, 0.15, 0.05, 0.0)))
"""Shares of the best score above which rows are looked for, until there are enough: nearly always the first or second
leaves little to sort."""

_FEW_ROWS = 1_000
"""Rows up to which all of them are sorted out at once."""


def select(
    best: Best,
    document: Callable[[int], Document],
    *,
    limit: int,
    rival: float = RIVAL_SHARE,
) -> list[Scored]:
    """The `limit` best documents with positive scores, best first."""
    pool = limit
    while True:
        rows, scores = best(pool)
        chosen, held = _shared_out(_ranked(rows, scores, document), limit)
        full = len(chosen) == limit
        if full and not held:
            return chosen
        # The first look is at the best alone; whoever wants to displace them has to be among four times as many.
        if pool > limit and (full or len(rows) < pool or pool >= SELECTION_MAX_ROWS):
            return _settled(chosen, held, limit, rival)
        pool = limit * 4 if pool == limit else pool * 8


def _ranked(rows: list[int], scores: list[float], document: Callable[[int], Document]) -> list[Scored]:
    """The rows in their order: best first, then by key."""
    scored = list(zip(scores, map(document, rows), strict=True))
    if len(set(scores)) < len(scores):
        scored.sort(key=_order)
    return scored


def best_of(scores: Floats) -> Best:
    """What gives the best rows of these scores."""
    return partial(_best if kernel is None else kernel.best, scores)


def best_rows(scores: Floats, limit: int) -> NDArray[np.intp]:
    """Rows of the `limit` best positive scores, ties at the edge included, in ascending order."""
    rows = _near_best(scores, limit)
    if len(rows) > limit:
        values = scores[rows]
        rows = rows[values >= _edge(values, limit)]
    return rows


def _best(scores: Floats, limit: int) -> tuple[list[int], list[float]]:
    """The best rows, and their scores."""
    rows = best_rows(scores, limit)
    rows = rows[(-scores[rows]).argsort(kind="stable")]
    return rows.tolist(), scores[rows].tolist()


def _near_best(scores: Floats, limit: int) -> NDArray[np.intp]:
    """Rows with positive scores, `limit` of the best among them if there are as many: few, where rows are many."""
    if len(scores) <= limit:
        return (scores > 0.0).nonzero()[0]
    if len(scores) <= _FEW_ROWS:
        edge = _edge(scores, limit)
        return ((scores >= edge) if edge > 0.0 else (scores > 0.0)).nonzero()[0]
    top = scores[scores.argmax()]
    rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    for share in _SHARES if top > 0.0 else ():
        rows = (scores > top * share).nonzero()[0]
        if len(rows) >= limit:
            break
    return rows


def _edge(values: Floats, limit: int) -> np.float32:
    """The `limit`-th best value."""
    place = len(values) - limit
    ordered = values.copy()
    ordered.partition(place)
    return ordered[place]


def _shared_out(ranked: list[Scored], limit: int) -> tuple[list[Scored], list[Scored]]:
    most = (limit + 1) // 2
    first = ranked[:limit]
    # Of so many different toolsets none can have more than its places.
    if len(first) - len({document.toolset for _, document in first}) < most:
        return first, []
    taken: dict[str, int] = {}
    chosen: list[Scored] = []
    held: list[Scored] = []
    for scored in ranked:
        toolset = scored[1].toolset
        count = taken.get(toolset, 0)
        # A tool without a toolset has no siblings to crowd others out with.
        if toolset and count >= most:
            held.append(scored)
        else:
            taken[toolset] = count + 1
            chosen.append(scored)
            if len(chosen) == limit:
                break
    return chosen, held


def _order(scored: Scored) -> tuple[float, str]:
    return -scored[0], scored[1].key


def _settled(chosen: list[Scored], held: Sequence[Scored], limit: int, rival: float) -> list[Scored]:
    for scored in held:
        if len(chosen) < limit:
            chosen.append(scored)
            chosen.sort(key=_order)
        elif chosen[-1][0] < rival * scored[0]:
            chosen[-1] = scored
            chosen.sort(key=_order)
        else:
            break
    return chosen
