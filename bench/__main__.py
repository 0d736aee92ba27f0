"""`python -m bench [assembly ...] [--tools FILE]`: the benchmarks, one family after the other."""

import argparse
import platform
from pathlib import Path

from bench import assembly

FAMILIES = {"assembly": assembly.report}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Ratios against the original's way, in one run."
    )
    parser.add_argument("family", nargs="*", choices=[*FAMILIES, []], help="families to run; all if none is named")
    parser.add_argument("--tools", type=Path, help="a JSONL file of real MCP definitions to measure with")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}\n")
    for name in options.family or FAMILIES:
        print(FAMILIES[name](options.tools))


if __name__ == "__main__":
    main()
