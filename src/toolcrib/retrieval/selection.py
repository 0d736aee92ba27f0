"""Picks the hits from scored rows: best first, ties by key, and no toolset that crowds out its rivals (D2).

A toolset gets at most half of the places, rounded up, as long as others have something that comes close: a
rival at least `RIVAL_SHARE` as good as what it displaces. So a server that offers twenty look-alikes cannot
fill an answer, while a query that only one toolset can answer still gets all its tools. Order is by score
alone.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from toolcrib.limits import SELECTION_MAX_ROWS
from toolcrib.retrieval.base import Document

RIVAL_SHARE = 0.75
Scored = tuple[float, Document]


def select(
    scores: NDArray[np.float32],
    document: Callable[[int], Document],
    *,
    limit: int,
    rival: float = RIVAL_SHARE,
) -> list[Scored]:
    """The `limit` best documents with positive scores, best first."""
    pool = limit * 4
    while True:
        rows = best_rows(scores, pool)
        ranked = sorted(((float(scores[row]), document(row)) for row in rows), key=_order)
        chosen, held = _shared_out(ranked, limit)
        if len(chosen) == limit or len(rows) < pool or pool >= SELECTION_MAX_ROWS:
            return _settled(chosen, held, limit, rival)
        pool *= 8


def best_rows(scores: NDArray[np.float32], limit: int) -> list[int]:
    """Rows of at least the `limit` best positive scores, ties at the edge included."""
    top = float(scores.max(initial=0.0))
    if top <= 0.0:
        return []
    rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    for share in (0.5, 0.2, 0.0):
        rows = np.flatnonzero(scores > np.float32(top * share))
        if len(rows) >= limit:
            break
    if len(rows) > limit:
        values = scores[rows]
        edge = np.partition(values, len(values) - limit)[len(values) - limit]
        rows = rows[values >= edge]
    return rows.tolist()


def _order(scored: Scored) -> tuple[float, str]:
    return -scored[0], scored[1].key


def _shared_out(ranked: Sequence[Scored], limit: int) -> tuple[list[Scored], list[Scored]]:
    most = (limit + 1) // 2
    taken: Counter[str] = Counter()
    chosen: list[Scored] = []
    held: list[Scored] = []
    for scored in ranked:
        toolset = scored[1].toolset
        # A tool without a toolset has no siblings to crowd others out with.
        if toolset and taken[toolset] >= most:
            held.append(scored)
        elif len(chosen) < limit:
            taken[toolset] += 1
            chosen.append(scored)
        if len(chosen) == limit:
            break
    return chosen, held


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
