"""One turn: an assembly and one search, against the original's way on the same list, in the same run."""

import copy
from collections.abc import Sequence

import orjson

from bench import original
from bench.catalogs import definitions, queries
from bench.cribs import Servers, frozen, live, with_description
from bench.measure import Case, Family, growth, interleaved, short
from toolcrib.session import Session

CASES = ("original", "dicts, checked", "frozen records", "one changed", "cold, dicts", "cold, frozen")

WARM_TURNS = 200
"""Turns before anything is measured; a tenth of them where a turn takes long."""


def measure(count: int) -> dict[str, float]:
    """Milliseconds of one turn in each case."""
    tools = definitions(count)
    original.REGISTRY.register(tools)
    asked = iter(queries(100_000))
    over_dicts, over_records = live(copy.deepcopy(tools)), frozen(Servers(tools))
    source = Servers(tools)
    changing = frozen(source)
    told = iter(range(10**9))

    def turn(session: Session) -> None:
        session.begin_turn()
        session.assemble()
        orjson.dumps(session.search(next(asked)).body)

    def as_the_original() -> None:
        original.assemble(tools)
        original.search(tools, next(asked))

    def change() -> None:
        source.change(with_description(tools[count // 2], f"Changed for the {next(told)}. time."))

    few = 15 if count <= 2_000 else 3 if count <= 20_000 else 1
    cold = Servers(tools)
    # A process that has been serving for a while: some words were asked before, and some tools shown.
    for session in (over_dicts, over_records, changing):
        for _ in range(WARM_TURNS if count <= 2_000 else WARM_TURNS // 10):
            turn(session)
    return interleaved(
        {
            "original": Case(as_the_original, most=few),
            "dicts, checked": Case(lambda: turn(over_dicts)),
            "frozen records": Case(lambda: turn(over_records)),
            "one changed": Case(lambda: turn(changing), change),
            "cold, dicts": Case(lambda: turn(live(tools)), most=few),
            "cold, frozen": Case(lambda: turn(frozen(cold)), most=few),
        }
    )


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
