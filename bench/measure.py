"""How everything here is measured: CPU time of this process, medians over many runs, interleaved."""

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

SIZES = (34, 226, 2_000, 20_000, 100_000)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure. What `before` and `after` do is not counted."""

    run: Callable[[], object]
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    most: int = 15
    """Samples at most: fewer for what takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family of measurements found, ready to be printed, kept and drawn."""

    name: str
    title: str
    headings: list[str]
    rows: list[list[str]]
    lines: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])
    """For the picture: by name, tools → milliseconds."""
    notes: list[str] = field(default_factory=list[str])


def sample(case: Case, *, least_s: float = 0.002) -> float:
    """CPU seconds of one call; a short one is repeated until the clock can see it, if nothing comes before it."""
    repeat, took = 0, 0.0
    while True:
        if case.before:
            case.before()
        started = time.process_time()
        case.run()
        took += time.process_time() - started
        if case.after:
            case.after()
        repeat += 1
        if took >= least_s or repeat >= 10_000:
            return took / repeat


def interleaved(cases: Mapping[str, Case], *, rounds: int = 15, budget_s: float = 8.0) -> dict[str, float]:
    """Median milliseconds of every case, taken in turns so that a busy minute hits all of them alike.

    Each round has an order of its own: what a case finds in the processor's caches is what the one before it left.
    """
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        if case.most > 3:
            sample(case)  # warm
    started = time.process_time()
    gc.collect()
    order, draw = list(cases.items()), random.Random(7)
    for _ in range(rounds):
        draw.shuffle(order)
        for name, case in order:
            if len(samples[name]) < case.most:
                samples[name].append(sample(case))
        if time.process_time() - started > budget_s:
            break
    return {name: statistics.median(values) * 1000 for name, values in samples.items()}


def growth(values: Mapping[int, float], small: int, large: int) -> str:
    """How much more a case costs at `large` tools than at `small`."""
    return f"{values[large] / values[small]:,.1f}×" if small in values and large in values else "–"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def short(ms: float) -> str:
    """Milliseconds with three digits that matter."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}" if ms < 0.1 else f"{ms:.2f}" if ms < 10 else f"{ms:.1f}"


def table(title: str, headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [f"### {title}", "", "| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, ""])


def run_family(name: str) -> None:
    """`python -m bench.NAME` is `python -m bench NAME`, with the same options."""
    from bench.__main__ import main

    main([name, *sys.argv[1:]])
