"""`toolcrib search`: what a model would find."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.crib import Crib
    from toolcrib.definitions import Json, JsonObject
    from toolcrib.explaining import Explained


def search(
    query: Annotated[str, typer.Argument(help="What is needed, in a few words.")],
    tools: Annotated[Path | None, typer.Option(metavar="FILE", help="File of definitions to search.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, max=50, help="Hits at most.")] = None,
    retrieval: Annotated[Literal["lexical", "hybrid"] | None, typer.Option(help="How to search.")] = None,
    semantic: Annotated[Literal["static", "off"] | None, typer.Option(help="What meaning comes from.")] = None,
    abstention: Annotated[
        Literal["usual", "cautious", "off"] | None, typer.Option(help="How readily to answer with nothing.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each field gave to each score.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Searches tools as a model would.

    Example: toolcrib search --tools tools.jsonl "open an issue" --explain
    """
    from toolcrib.cli.cribs import open_crib, use_crib
    from toolcrib.cli.progress import wait_for_vectors
    from toolcrib.explaining import explain_search
    from toolcrib.intake.findings import make_visible
    from toolcrib.limits import FILL_SEARCH_WAIT_S
    from toolcrib.retrieval.factory import RerankedRetriever

    flags: dict[str, Json] = {"tools.tool_search.enabled": "on"}
    if retrieval:
        flags["tools.tool_search.retrieval"] = retrieval
    if semantic:
        flags["tools.tool_search.semantic"] = semantic
    if abstention:
        flags["tools.tool_search.abstention"] = abstention

    async def look(crib: "Crib") -> "Explained":
        session = crib.session()
        # A short-lived process has no background: it waits a while, and the answer says how far it came.
        retriever = crib.discovery.prepare(session.catalog)
        wait_for_vectors(retriever, seconds=FILL_SEARCH_WAIT_S)
        found = explain_search(crib, session, query, limit=limit, explain=explain)
        if isinstance(retriever, RerankedRetriever) and "unavailable" in found.answer.mode:
            why = retriever.reranker.state.last_failure or "the vectors of the tools are not all there yet"
            sys.stderr.write(f"toolcrib: The reranker had no part in this: {make_visible(why)}.\n")
        return found

    found = use_crib(open_crib(tools=tools, config=config, flags=flags), look)
    if json:
        print_json(found.as_json())
        return
    _show(found, open_console())
    if explain:
        _show_reading(found, open_console())


def _show(found: "Explained", console: "Console") -> None:
    """The hits, and what an answer says beside them."""
    from rich.text import Text

    from toolcrib.intake.findings import make_visible

    answer = found.answer
    if answer.abstained:
        names = ", ".join(found.nearest)
        total = answer.body["total_available"]
        among = "The one tool does not fit." if total == 1 else f"Nothing among {total:,} tools fits."
        console.print(f"{among}{f' Nearest, without fitting: {names}.' if names else ''}")
    if answer.doubtful:
        console.print("Perhaps none of these fits; they come nearest.", style="yellow")
    unmet = answer.body.get("nothing_for")
    for need in unmet if isinstance(unmet, list) else ():
        console.print(Text(f"Nothing fits for: {make_visible(str(need))}", style="yellow"))
    for number, match in enumerate(found.matches, 1):
        _print_match(number, match, console)


def _show_reading(found: "Explained", console: "Console") -> None:
    """What was looked up, and how."""
    from rich.text import Text

    from toolcrib.intake.findings import make_visible

    for line in found.read_as.splitlines():
        console.print(Text(f"Read as: {make_visible(line)}", style="dim"))
    console.print(f"Searched: {found.answer.mode}.", style="dim", highlight=False)


def _print_match(number: int, match: "JsonObject", console: "Console") -> None:
    from rich.text import Text

    from toolcrib.intake.findings import make_visible
    from toolcrib.terminal import print_hanging

    signature, toolset = (f"{match['signature']}", "bold"), (f"  [{match['toolset']}]", "cyan")
    first = Text.assemble((f"{match['score']:.2f}  ", "dim"), signature, toolset)
    print_hanging(console, Text(f"{number:>2}. "), first)
    print_hanging(console, Text("    "), Text(make_visible(f"{match['description']}")))
    same = match.get("same_as")
    if isinstance(same, list):
        print_hanging(console, Text("    "), Text(f"The same: {make_visible(', '.join(map(str, same)))}"))
    parts = match.get("evidence")
    if isinstance(parts, dict):
        shown = sorted(parts.items(), key=lambda item: -abs(float(str(item[1]))))
        # Without a blank between them, a name and its figure stay on one line.
        text = "  ".join(f"{name}={value:+.2f}" for name, value in shown)
        print_hanging(console, Text("    "), Text(text, style="dim"))
