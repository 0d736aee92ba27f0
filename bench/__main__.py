"""`python -m bench [family ...] [--sizes 34,226,2000] [--catalog file] [--out folder]`:
the benchmarks, one family after the other.

Prints Markdown; with `--out` it also keeps the figures as JSON and draws a picture of every family that has lines.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import agent, assembly, catalogs, gateway, memory, search, turn, validation
from bench.measure import SIZES, Family, table
from bench.picture import draw_growth

FAMILIES: dict[str, Callable[[Sequence[int]], Family]] = {
    "turn": turn.report,
    "assembly": assembly.report,
    "listing": lambda sizes: assembly.listing_growth(),
    "search": search.report,
    "validation": validation.report,
    "memory": memory.report,
    "gateway": lambda sizes: gateway.report("calls"),
    "gateway-search": lambda sizes: gateway.report("search"),
    "gateway-start": lambda sizes: gateway.report("start"),
    "agent": lambda sizes: agent.report([size for size in sizes if size <= 20_000]),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ratios in one run, CPU time, medians.")
    parser.add_argument("family", nargs="*", choices=[*FAMILIES, []], help="families to run; all if none is named")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of tools, with commas between")
    parser.add_argument("--catalog", type=Path, help="a file of real definitions, one JSON object a line")
    parser.add_argument("--out", type=Path, help="a folder for the figures as JSON and the pictures as SVG")
    options = parser.parse_args()
    if options.catalog:
        catalogs.use(options.catalog)
    sizes = tuple(int(size) for size in options.sizes.split(","))
    print(f"Python {platform.python_version()}, {platform.machine()}; n = {options.sizes} tools\n", flush=True)
    for name in options.family or FAMILIES:
        started = time.monotonic()
        family = FAMILIES[name](sizes)
        print(table(family.title, family.headings, family.rows))
        print("\n".join([*family.notes, f"({time.monotonic() - started:.0f} s)", ""]), flush=True)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}.json").write_text(json.dumps(asdict(family), indent=1), encoding="utf-8")
            if family.lines:
                picture = draw_growth(family.lines, title=family.title)
                (options.out / f"bench-{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
