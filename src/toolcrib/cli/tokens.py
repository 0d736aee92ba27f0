"""`toolcrib tokens`: what definitions cost on every turn, and what tool search saves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from toolcrib.assembly import Assembly
    from toolcrib.definitions import JsonObject


def tokens(
    tools: Annotated[Path, typer.Option(help="File of definitions: JSONL or a JSON array, in any dialect.")],
    context: Annotated[int | None, typer.Option(min=1, help="Context window of the model, in tokens.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Shows what a file of tool definitions costs per turn, directly and with tool search.

    Example: toolcrib tokens --tools tools.jsonl --context 200000
    """
    from toolcrib.cli.catalogs import load_catalog

    crib = load_catalog(tools)
    report = token_report(crib.session(model_context=context).assemble().assembly)
    if json:
        print_json(report)
        return
    console = open_console()
    direct, visible = _number(report, "direct_tokens"), _number(report, "visible_tokens")
    console.print(f"{report['n_tools']} tools; {report['reason']}")
    width = max(10, min(60, console.width - 34))
    for label, value in (("all attached", direct), ("with Toolcrib", visible)):
        bar = "█" * max(1, round(width * value / max(direct, 1)))
        console.print(f"{label:>14}  {value:>9,} tokens  {bar}")
    console.print(f"{'saved':>14}  {report['saved_pct']:>8} %")
    for item in crib.skipped[:20]:
        console.print(f"left out: {item.toolset}/{item.name}: {item.reason}")


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
