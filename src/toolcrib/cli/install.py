"""`toolcrib install`: the gateway in front of the servers that a client already has."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from toolcrib.clients.base import ClientConfig, Family, Scope, Surroundings
    from toolcrib.clients.install import InstallPlan


def install(
    client: Annotated[
        str | None,
        typer.Argument(
            help="claude-code, claude-desktop, cursor, vscode, windsurf, codex, gemini, zed, hermes or mcp-json."
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Every client that is found and has servers.")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="SERVER", help="Move this server only; repeatable.")] = None,
    scope: Annotated[
        Literal["user", "project", "all"], typer.Option(help="The person's servers, those of this project, or both.")
    ] = "user",
    context: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Context window of the client's model, in tokens; else what its file says, or 200000.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Puts the gateway in front of a client's servers; `toolcrib uninstall` takes it out again, to the byte.

    The servers move into a file of the gateway, and one entry that starts `toolcrib serve` takes their place. A
    backup lies beside the client's file. Servers that only the client can start stay where they are. The gateway
    defers tools from 10 % of the model's context window on; below, every tool stays attached.

    Example: toolcrib install claude-code --dry-run
    """
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients.install import report_of

    plans = plan_all(read_surroundings(), client=client, every=all, only=only or [], scope=scope, context=context)
    if not dry_run:
        apply_all(plans)
    if json:
        print_json([{**report_of(plan), "changed": not dry_run, **_diff(plan, dry_run)} for plan in plans])
        return
    for plan in plans:
        _show(plan, dry_run=dry_run)


def plan_all(
    around: "Surroundings",
    *,
    client: str | None,
    every: bool,
    only: Sequence[str],
    scope: Literal["user", "project", "all"],
    context: int | None = None,
) -> "list[InstallPlan]":
    """The plans for one client or for all, made before anything is written. Raises `ConfigError`."""
    from toolcrib.cli.surroundings import find_launcher
    from toolcrib.clients.discovery import discover
    from toolcrib.clients.install import plan_install
    from toolcrib.errors import ConfigError

    if client is None and not every:
        raise ConfigError(f"Name one client, or give --all. {_found_here(around)}")
    families = choose_families(client, every=every)
    launcher = find_launcher(around)
    plans: list[InstallPlan] = []
    found = discover(families, around)
    if found.problems:
        raise ConfigError(found.problems[0])
    for family in families:
        for configs in _by_file(family, found.configs, scope if family.name != "mcp-json" else "all"):
            if every and not _worth(configs):
                continue
            plans.append(plan_install(family, configs, launcher=launcher, only=only, context=context))
    if not plans:
        raise ConfigError(_nothing(families, around, scope) if not every else "No client here has servers to move.")
    return plans


def _found_here(around: "Surroundings") -> str:
    """Which clients have servers here, in one sentence."""
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.discovery import discover

    counts: dict[str, int] = {}
    for config in discover(FAMILIES, around).configs:
        counts[config.client] = counts.get(config.client, 0) + len(config.servers)
    found = ", ".join(f"{client} ({count})" for client, count in counts.items() if count)
    return f"Found here, with servers: {found}." if found else "No client with servers was found here."


def _nothing(families: "Sequence[Family]", around: "Surroundings", scope: str) -> str:
    place = families[0].places(around)[0]
    if not place.path.exists():
        return f"{place.path}: is not there: is {families[0].title} installed, and has it servers?"
    other = "" if scope != "user" else " in the user's scope: try --scope project, or add servers first"
    return f"{place.path}: has no servers{other}."


def apply_all(plans: "Sequence[InstallPlan]") -> None:
    """All of them, or none: if one cannot be written, those before it are taken back. Raises `ConfigError`."""
    from toolcrib.clients.install import apply_install
    from toolcrib.clients.uninstall import apply_uninstall, plan_uninstall
    from toolcrib.errors import ConfigError

    done: list[InstallPlan] = []
    try:
        for plan in plans:
            apply_install(plan)
            done.append(plan)
    except ConfigError:
        for plan in reversed(done):
            apply_uninstall(plan_uninstall(plan.family, plan.path, plan.manifest))
        raise


def choose_families(client: str | None, *, every: bool) -> "Sequence[Family]":
    """One family or all of them. Raises `ConfigError`."""
    from toolcrib.clients import FAMILIES, require_family
    from toolcrib.errors import ConfigError

    if every == (client is not None):
        raise ConfigError("Name one client, such as `cursor`, or give --all; not both.")
    return FAMILIES if client is None else (require_family(client),)


def _by_file(
    family: "Family", configs: "Sequence[ClientConfig]", scope: 'Scope | Literal["all"]'
) -> "list[list[ClientConfig]]":
    """The mappings of servers of a family, put together by the file that they stand in."""
    groups: dict[Path, list[ClientConfig]] = {}
    for config in configs:
        if config.client == family.name and scope in {"all", config.scope} and config.servers:
            groups.setdefault(config.path.resolve(), []).append(config)
    # Of several project files up the tree, the nearest is the one that a client reads.
    nearest_only = family.name == "mcp-json"
    return list(groups.values())[:1] if nearest_only else list(groups.values())


def _worth(configs: "Sequence[ClientConfig]") -> bool:
    from toolcrib.clients.install import part_servers

    return not any(config.installed for config in configs) and any(
        part_servers(config.servers)[0] for config in configs
    )


def _diff(plan: "InstallPlan", dry_run: bool) -> dict[str, str]:
    from toolcrib.clients.install import diff_of, open_texts_of

    if not dry_run:
        return {}
    shown = open_texts_of(plan.family, plan.moved, plan.written, plan.manifest)
    return {"diff": diff_of(plan.path, plan.original, plan.written, shown)}


def _show(plan: "InstallPlan", *, dry_run: bool) -> None:
    from rich.text import Text

    from toolcrib.clients.manifest import backup_path
    from toolcrib.terminal import print_hanging

    console = open_console()
    if dry_run:
        for line in _diff(plan, True)["diff"].splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            console.print(line, style=style, markup=False, soft_wrap=True)
    verb = "would move" if dry_run else "moved"
    count = len(plan.moved)
    names = ", ".join(server.name for server in plan.moved)
    print_hanging(
        console,
        Text(f"{plan.family.title}: ", style="bold"),
        Text(f"{verb} {count} server{'' if count == 1 else 's'} behind Toolcrib: {names}"),
    )
    lines = [("stays", f"{item.name}: {item.reason}") for item in plan.staying]
    lines.append(
        (
            "gate",
            f"{plan.window.threshold:,} tokens of definitions or more are deferred, fewer stay attached (window "
            f"{plan.window.tokens:,}, {plan.window.origin}; --context N for another)",
        )
    )
    if plan.shared:
        lines.append(("note", "whoever shares this project gets an entry with paths of this machine"))
    if dry_run:
        lines.append(("next", "the same without --dry-run; nothing was changed so far"))
    else:
        lines.append(("backup", str(backup_path(plan.path))))
        lines.append(("next", plan.family.note))
        lines.append(("undo", f"toolcrib uninstall {plan.family.name}"))
    for label, text in lines:
        print_hanging(console, Text(f"  {label}: "), Text(text))
