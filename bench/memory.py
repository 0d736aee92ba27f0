"""Memory beyond the definitions: what a crib takes on top of frozen records, in a process of its own."""

import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Family, run_family


def resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def show(count: int) -> None:
    """Prints the memory of the frozen records, then what an assembly and a first search add."""
    import numpy as np

    from bench.catalogs import definitions
    from bench.cribs import Servers, frozen

    np.zeros(1)
    frozen(Servers(definitions(34))).search("warm up")
    start = resident_mb()
    tools = definitions(count)
    gc.collect()
    plain = resident_mb()
    source = Servers(tools)
    gc.collect()
    records = resident_mb()
    session = frozen(source)
    session.assemble()
    gc.collect()
    assembled = resident_mb()
    session.search("create an issue")
    gc.collect()
    print(plain - start, records - plain, assembled - records, resident_mb() - assembled)


def report(sizes: Sequence[int]) -> Family:
    """The table of the larger sizes."""
    rows: list[list[str]] = []
    for count in [size for size in sizes if size >= 2_000]:
        code = f"from bench.memory import show; show({count})"
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        plain, records, assembly, index = map(float, output.split())
        rows.append([f"{count:,}", *(f"{value:,.0f}" for value in (plain, records, assembly, index, assembly + index))])
    return Family(
        name="memory",
        title="Resident memory (MB), lexical index",
        headings=["tools", "plain dicts", "frozen records", "+ assembly", "+ first search", "beyond the records"],
        rows=rows,
    )


if __name__ == "__main__":
    run_family("memory")
