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


ABOUT = {
    "turn": "one turn: an assembly and a search",
    "assembly": "an assembly, by what happened since the last one",
    "listing": "the listing of names, made from nothing",
    "search": "a search with the index built, against peers",
    "validation": "checking the arguments of one call",
    "memory": "memory beyond the definitions",
    "gateway": "one call through the gateway, against peers",
    "gateway-search": "one search through the gateway",
    "gateway-start": "how the gateway starts, and what a session takes",
    "agent": "what the reference agent adds to a turn",
}


def family(name: str) -> str:
    """A family's name. Raises `ArgumentTypeError` for any other."""
    if name not in FAMILIES:
        raise argparse.ArgumentTypeError(f"there is no {name}; families are {', '.join(FAMILIES)}")
    return name


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Ratios in one run, CPU time, medians; prints Markdown.",
        epilog="families:\n" + "\n".join(f"  {name:<15} {about}" for name, about in ABOUT.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "family", nargs="*", type=family, metavar="family", help="what to measure; all if none is named"
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of tools, with commas between")
    parser.add_argument("--catalog", type=Path, help="a file of real definitions, one JSON object a line")
    parser.add_argument("--out", type=Path, help="a folder for the figures as JSON and the pictures as SVG")
    options = parser.parse_args(arguments)
    if options.catalog:
        catalogs.use(options.catalog)
    sizes = tuple(int(size) for size in options.sizes.split(","))
    print(f"Python {platform.python_version()}, {platform.machine()}; n = {options.sizes} tools\n", flush=True)
    for name in options.family or FAMILIES:
        started = time.monotonic()
        measured = FAMILIES[name](sizes)
        print(table(measured.title, measured.headings, measured.rows))
        print("\n".join([*measured.notes, f"({time.monotonic() - started:.0f} s)", ""]), flush=True)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}.json").write_text(json.dumps(asdict(measured), indent=1), encoding="utf-8")
            if measured.lines:
                picture = draw_growth(measured.lines, title=measured.title)
                (options.out / f"bench-{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
