"""`toolcrib describe`: the whole definition of one tool."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.crib import Crib
    from toolcrib.definitions import JsonObject
    from toolcrib.errors import ConfigError


def describe(
    name: Annotated[str, typer.Argument(help="Full or short name of the tool.")],
    tools: Annotated[Path | None, typer.Option(metavar="FILE", help="File of definitions.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, as a pipe gets it anyway.")] = False,
) -> None:
    """Prints the name, description and JSON Schema of one tool.

    Example: toolcrib describe create_issue --tools tools.jsonl
    """
    from toolcrib.cli.cribs import open_crib, use_crib
    from toolcrib.errors import CallError

    async def find(crib: "Crib") -> "JsonObject":
        try:
            return crib.session().describe(name)
        except CallError as error:
            raise unknown_tool(name, error.message, crib) from None

    found = use_crib(open_crib(tools=tools, config=config, tool=name), find)
    if json or not sys.stdout.isatty():
        print_json(found)
    else:
        _show(found, open_console())


def _show(found: "JsonObject", console: "Console") -> None:
    """The definition for a person: the description as it is meant to be read, then the schema."""
    from rich.text import Text

    from toolcrib.intake.findings import make_visible
    from toolcrib.terminal import print_hanging

    console.print(Text.assemble((f"{found['name']}", "bold"), (f"  [{found['source']}]", "cyan")))
    for line in f"{found.get('description') or ''}".splitlines():
        print_hanging(console, Text(), Text(make_visible(line)))
    console.print(Text("parameters", style="bold"))
    print_json(found.get("parameters"))


def unknown_tool(name: str, answer: str, crib: "Crib") -> "ConfigError":
    """The error of a name that is no tool, with the nearest if the answer for a model has one."""
    from toolcrib.errors import ConfigError

    for held in crib.held_back:
        if held.name == name:
            reason = held.reason.rstrip(".")
            return ConfigError(
                f"`{name}` is held back: {reason}. `toolcrib pins list` shows it, `pins approve` lets it in."
            )
    for item in crib.skipped:
        if name in (item.name, f"{item.toolset.removeprefix('mcp-')}__{item.name}"):
            return ConfigError(f"`{name}` is left out: {item.reason.rstrip('.')}.")
    for toolset in crib.inventory.toolsets:
        if toolset.unavailable and toolset.prefix and name.startswith(f"{toolset.prefix}__"):
            return ConfigError(f"`{name}` cannot be had now: its server is the one that could not be asked.")
    meant = re.search(r"Did you mean (`[^?]*)\?", answer)
    hint = f"did you mean {meant[1]}?" if meant else "`toolcrib search` finds what there is."
    return ConfigError(f"There is no tool `{name}`: {hint}")
