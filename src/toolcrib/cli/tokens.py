"""`toolcrib tokens`: what definitions cost on every turn, and what tool search saves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.assembly import Assembly
    from toolcrib.definitions import JsonObject


def tokens(
    tools: Annotated[
        Path, typer.Option(metavar="FILE", help="File of definitions: JSONL or a JSON array, in any dialect.")
    ],
    context: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Context window of the model, in tokens.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Shows what a file of tool definitions costs per turn, directly and with tool search.

    Example: toolcrib tokens --tools tools.jsonl --context 200000
    """
    from rich.text import Text

    from toolcrib.cli.catalogs import load_catalog
    from toolcrib.cli.cribs import left_out
    from toolcrib.terminal import print_hanging

    crib = load_catalog(tools)
    report = token_report(crib.session(model_context=context).assemble().assembly)
    if json:
        print_json(report)
        return
    _show(report, context, open_console())
    for line in left_out(crib.skipped, 20):
        print_hanging(open_console(), Text(""), Text(line))


def _show(report: "JsonObject", context: int | None, console: "Console") -> None:
    """The figures as a picture, and what they mean in sentences."""
    from rich.text import Text

    from toolcrib.terminal import print_hanging

    direct, visible = _number(report, "direct_tokens"), _number(report, "visible_tokens")
    width = max(10, min(60, console.width - 34))
    for label, value, style in (("all attached", direct, "red"), ("with Toolcrib", visible, "green")):
        bar = "█" * max(1, round(width * value / max(direct, visible, 1)))
        console.print(Text.assemble(f"{label:>13}  ", (f"{value:>9,}", "bold"), " tokens  ", (bar, style)))
    console.print(f"{'saved':>13}  {report['saved_pct']:>7} %")
    console.print()
    of_what = f"a window of {context:,}" if context else "an unknown window; --context N for yours"
    count = _number(report, "n_tools")
    deferred, attached = (
        ("1 tool is deferred: it reaches", "1 tool stays attached: it is below")
        if count == 1
        else (f"{count:,} tools are deferred: they reach", f"{count:,} tools stay attached: they are below")
    )
    verdict = f"{deferred if report['activated'] else attached} the threshold"
    sentence = f"{verdict} of {report['threshold_tokens']:,} tokens per turn ({of_what})."
    print_hanging(console, Text(), Text(sentence))
    if report["activated"]:
        names = f"The model sees three tools, and {report['names_listed']:,} names in the description of the first."
        print_hanging(console, Text(), Text(names))


def token_report(assembly: "Assembly") -> "JsonObject":
    """The figures of an assembly, with the keys that scripts rely on."""
    from toolcrib.bridge import BRIDGE_TOOLSET
    from toolcrib.tokens import estimate_tokens

    catalog = assembly.catalog
    decision = assembly.decision
    visible = sum(
        tool.chars for tool in assembly.tools if tool.toolset != BRIDGE_TOOLSET and catalog.get(tool.name) is None
    )
    direct = estimate_tokens(visible + catalog.chars)
    saved = 100 * (1 - assembly.tokens / direct) if direct else 0.0
    return {
        "n_tools": catalog.size,
        "direct_tokens": direct,
        "bridge_tokens": assembly.bridge_tokens,
        "listing_tokens": max(0, assembly.tokens - assembly.bridge_tokens - estimate_tokens(visible))
        if decision.defer
        else 0,
        "visible_tokens": assembly.tokens,
        "saved_pct": round(saved, 2),
        "activated": decision.defer,
        "threshold_tokens": decision.threshold,
        "reason": str(decision),
        "names_listed": assembly.listing.names_listed if decision.defer else catalog.size,
    }


def _number(report: "JsonObject", key: str) -> int:
    value = report[key]
    return value if isinstance(value, int) else 0
