"""`toolcrib audit`: what the servers that a person already has cost on every turn, and what tool search would save."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from toolcrib.cli.output import open_console, print_json, write_file

if TYPE_CHECKING:
    from toolcrib.audit.report import AuditReport, Listed
    from toolcrib.clients.gathering import Gathered
    from toolcrib.definitions import JsonObject


class Starter(Protocol):
    """Starts servers side by side and asks each for its tools."""

    def __call__(self, entries: "Mapping[str, JsonObject]", *, done: Callable[[str], None]) -> "Mapping[str, Listed]":
        """What each server lists, or why it does not; calls `done` with each name as it comes in.

        `entries` are those of a gateway file's `mcpServers`. Every server is ended before this returns.
        """
        ...


def build_command(starter: Starter) -> Callable[..., None]:
    """The command, with what starts servers."""

    def audit(
        config: Annotated[
            list[Path] | None, typer.Option(metavar="FILE", help="File that names servers, of any client; repeatable.")
        ] = None,
        context: Annotated[
            int | None, typer.Option(metavar="N", min=1, help="Context window of the model, in tokens.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Start the servers without asking.")] = False,
        svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the picture to this file.")] = None,
        json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    ) -> None:
        """Starts the MCP servers that your clients have, and shows what their tools cost per turn.

        Without --config it looks where Claude Code, Claude Desktop, Cursor, VS Code, Windsurf, Codex, Gemini CLI, Zed
        and Hermes keep their servers, and asks before it starts or contacts them, with the credentials in those files,
        as the client does. Toolcrib reports nothing to anybody; such a server may use the network itself.

        Example: toolcrib audit --context 200000
        """
        import os

        from toolcrib.audit.report import build_report, report_json
        from toolcrib.audit.tokenizers import find_tokenizer

        gathered, problems = find_servers(config or [])
        if not (yes or config):
            _ask(gathered)
        listed = start_all(starter, gathered, quiet=json)
        report = build_report(
            listed,
            context=context,
            tokenizer=find_tokenizer(os.environ),
            clients=gathered.clients if not config else {},
        )
        if svg is not None:
            from toolcrib.audit.picture import svg_picture

            write_file(svg, svg_picture(report))
        if json:
            print_json({**report_json(report), **({"problems": list(problems)} if problems else {})})
            return
        from toolcrib.audit.rendering import render

        console = open_console()
        for problem in problems:
            console.print(f"left out: {problem}", markup=False, soft_wrap=True, style="yellow")
        render(report, console, next_step=_next_step(report, config or []))

    return audit


def _next_step(report: "AuditReport", files: Sequence[Path]) -> str | None:
    """What a person does with what the report says, if there is something to gain."""
    if not report.activated:
        return None
    if report.clients:
        dearest = max(report.clients, key=lambda item: item.tokens - item.with_toolcrib)
        return f"`toolcrib install {dearest.client} --dry-run` shows how the gateway would stand in front of them."
    return f"`toolcrib serve --config {files[0]}` is the gateway in front of them." if len(files) == 1 else None


def start_servers(entries: "Mapping[str, JsonObject]", *, done: Callable[[str], None]) -> "Mapping[str, Listed]":
    """Starts real servers, with the gateway's own sources."""
    import time

    from toolcrib.audit.starting import Startable, build_starter
    from toolcrib.config import build_settings
    from toolcrib.sources.processes import Guard
    from toolcrib.sources.servers import open_server
    from toolcrib.sources.supervisor import Pace

    guard = Guard()
    pace = Pace(clock=time.monotonic)

    def open_one(name: str, entry: "JsonObject") -> Startable:
        settings = build_settings({"mcpServers": {name: entry}}).mcpServers[name]
        return open_server(name, settings, guard=guard, pace=pace)

    return build_starter(open_one)(entries, done=done)


def find_servers(files: Sequence[Path]) -> "tuple[Gathered, tuple[str, ...]]":
    """The servers of these files, or of every client here; and files that cannot be read. Raises `ConfigError`."""
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.discovery import discover, load_any
    from toolcrib.clients.gathering import gather
    from toolcrib.errors import ConfigError

    problems: tuple[str, ...] = ()
    if files:
        gathered = gather([load_any(path, FAMILIES) for path in files], FAMILIES)
    else:
        found = discover(FAMILIES, read_surroundings())
        gathered, problems = gather(found.configs, FAMILIES), found.problems
    if not gathered.entries and not gathered.skipped:
        where = ", ".join(str(path) for path in files)
        raise ConfigError(
            problems[0]
            if problems
            else f"{where}: names no servers."
            if files
            else "No client with MCP servers was found here: give --config FILE."
        )
    return gathered, problems


def start_all(starter: Starter, gathered: "Gathered", *, quiet: bool) -> "dict[str, Listed]":
    """What every server lists, with a bar on the terminal meanwhile."""
    import logging

    from toolcrib.audit.report import Failure
    from toolcrib.cli.progress import starting_bar

    # What goes wrong is in the report, once and with its reason.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())
    with starting_bar([*gathered.entries], quiet=quiet) as heard:
        answers = starter(gathered.entries, done=heard)
    listed: dict[str, Listed] = {}
    for name in gathered.entries:
        listed[name] = answers.get(name, Failure(reason="it gave no answer"))
    for name, reason in gathered.skipped.items():
        listed[name] = Failure(reason=reason, status="skipped")
    return listed


def _ask(gathered: "Gathered") -> None:
    from toolcrib.errors import ConfigError

    names = ", ".join(gathered.entries)
    if not sys.stdin.isatty():
        raise ConfigError(f"This would start {len(gathered.entries)} servers ({names}): give --yes to agree.")
    if gathered.entries and not typer.confirm(f"Start {len(gathered.entries)} servers ({names})?", err=True):
        raise typer.Exit(1)
