"""One turn: an assembly and one search, against the original's way on the same list, in the same run.

The original searches by words alone, so the turns without a mark do the same job: `semantic: off`. *Hybrid* is the
default, which also looks up what is meant. No turn asks what a turn before it asked. A cold turn is the first one of a
crib that was just made: nothing was read, frozen or indexed. Making it is not counted, as registering the tools is not
with the original; *with the crib* it is, and so is letting it go.
"""

import copy
from collections.abc import Callable, Sequence

import orjson

from bench import original
from bench.catalogs import definitions, queries
from bench.cribs import Servers, frozen, live, with_description
from bench.measure import Case, Family, growth, interleaved, run_family, short
from toolcrib.definitions import JsonObject
from toolcrib.retrieval.base import Settling
from toolcrib.session import Session

CASES = (
    "original",
    "dicts, checked",
    "dicts, hybrid",
    "frozen records",
    "frozen, hybrid",
    "one changed",
    "one changed, hybrid",
    "cold, dicts",
    "cold, with the crib",
    "cold, frozen",
)

WARM_TURNS = 200
"""Turns before anything is measured; a tenth of them where a turn takes long."""
WARM_SEARCHES = 500
"""Searches before that: what an index makes only once it is asked often, it has made then."""


def measure(count: int) -> dict[str, float]:
    """Milliseconds of one turn in each case."""
    tools = definitions(count)
    original.REGISTRY.register(tools)
    asked = iter(dict.fromkeys(queries(100_000)))

    def turn(session: Session) -> None:
        session.begin_turn()
        session.assemble()
        orjson.dumps(session.search(next(asked)).body)

    def as_the_original() -> None:
        original.assemble(tools)
        original.search(tools, next(asked))

    def served(session: Session, before: Callable[[], object] | None = None) -> Case:
        """In a process that has been serving for a while: tools were read, some words asked before, some tools shown."""
        retriever = session._crib.discovery.prepare(session.catalog)
        if isinstance(retriever, Settling):
            retriever.settle()
        for _ in range(WARM_SEARCHES):
            session._crib.discovery.rank(session.catalog, next(asked), limit=5)
        for _ in range(WARM_TURNS if count <= 2_000 else WARM_TURNS // 10):
            turn(session)
        return Case(lambda: turn(session), before)

    def first(make: Callable[[], Session]) -> Case:
        """The first turn of a new session of a new crib; both are made, and let go, uncounted."""
        fresh: list[Session] = []
        return Case(lambda: turn(fresh[0]), lambda: fresh.append(make()), fresh.clear, most=few)

    few = 15 if count <= 2_000 else 3 if count <= 20_000 else 1
    cold = Servers(tools)
    changing, hybrid = _Changing(tools, "lexical"), _Changing(tools, "hybrid")
    return interleaved(
        {
            "original": Case(as_the_original, most=few),
            "dicts, checked": served(live(copy.deepcopy(tools))),
            "dicts, hybrid": served(live(copy.deepcopy(tools), "hybrid")),
            "frozen records": served(frozen(Servers(tools))),
            "frozen, hybrid": served(frozen(Servers(tools), "hybrid")),
            "one changed": served(changing.session, changing.change),
            "one changed, hybrid": served(hybrid.session, hybrid.change),
            "cold, dicts": first(lambda: live(tools)),
            "cold, with the crib": Case(lambda: turn(live(tools)), most=few),
            "cold, frozen": first(lambda: frozen(cold)),
        }
    )


class _Changing:
    """A session over servers one of which announces other words for a tool, again and again."""

    def __init__(self, tools: list[JsonObject], retrieval: str) -> None:
        self._tool = tools[len(tools) // 2]
        self._source = Servers(tools)
        self._told = 0
        self.session = frozen(self._source, retrieval)

    def change(self) -> None:
        self._told += 1
        self._source.change(with_description(self._tool, f"Changed for the {self._told}. time."))


def report(sizes: Sequence[int]) -> Family:
    """The table of all sizes."""
    lines: dict[str, dict[int, float]] = {case: {} for case in CASES}
    rows: list[list[str]] = []
    for count in sizes:
        found = measure(count)
        base = found["original"]
        for case in CASES:
            lines[case][count] = found[case]
        cells = [f"{short(found[case])} ({base / found[case]:,.1f}×)" for case in CASES[1:]]
        rows.append([f"{count:,}", short(base), *cells])
    rows.append(["growth 2,000 → 20,000", *(growth(lines[case], 2_000, 20_000) for case in CASES)])
    return Family(
        name="turn",
        title="One turn: assembly and one search (CPU ms; × against the original's way in the same run)",
        headings=["tools", *CASES],
        rows=rows,
        lines=lines,
    )


if __name__ == "__main__":
    run_family("turn")
