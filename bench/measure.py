"""How everything here is measured: CPU time of this process, medians over many runs, interleaved."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """CPU seconds of one call, median over `runs`."""

    seconds: float
    runs: int

    @property
    def micros(self) -> float:
        return self.seconds * 1e6


def cpu_time(function: Callable[[], object], *, runs: int = 15, least_s: float = 0.002) -> Timing:
    """The median CPU time of a call; short calls are repeated until the clock can see them."""
    # As timeit does: a collection of all that other benchmarks left behind is nobody's cost here.
    gc.disable()
    try:
        return _cpu_time(function, runs, least_s)
    finally:
        gc.enable()


def _cpu_time(function: Callable[[], object], runs: int, least_s: float) -> Timing:
    repeat = 1
    while True:
        started = time.process_time()
        for _ in range(repeat):
            function()
        took = time.process_time() - started
        if took >= least_s or repeat >= 100_000:
            break
        repeat *= 4
    samples = [took / repeat]
    for _ in range(runs - 1):
        started = time.process_time()
        for _ in range(repeat):
            function()
        samples.append((time.process_time() - started) / repeat)
    return Timing(statistics.median(samples), runs)


def interleaved(functions: Mapping[str, Callable[[], object]], *, rounds: int = 3, runs: int = 5) -> dict[str, Timing]:
    """Every function in turn, several rounds, so that a busy minute hits all of them alike."""
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            samples[name].append(cpu_time(function, runs=runs).seconds)
    return {name: Timing(statistics.median(values), rounds * runs) for name, values in samples.items()}


def table(title: str, headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [f"### {title}", "", "| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, ""])
