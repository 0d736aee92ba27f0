"""`toolcrib uninstall`: the client's configuration as it was before."""

from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.clients.uninstall import UninstallPlan


def uninstall(
    client: Annotated[str | None, typer.Argument(help="The client, as given to `toolcrib install`.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every client that the gateway was put in front of.")] = False,
    keep_changes: Annotated[
        bool, typer.Option("--keep-changes", help="For a file that has changed since: put the servers back into it.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Restores a client's configuration byte for byte, if nobody has changed it since.

    Example: toolcrib uninstall claude-code
    """
    from toolcrib.cli.install import choose_families
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients.uninstall import apply_uninstall, find_installed, plan_uninstall, report_of
    from toolcrib.errors import ConfigError

    around = read_surroundings()
    plans = [
        plan_uninstall(family, path, manifest, keep_changes=keep_changes)
        for family in choose_families(client, every=all)
        for path, manifest in find_installed(family, around)
    ]
    if not plans:
        raise ConfigError(f"Nothing is installed for {client or 'any client'} here.")
    if not dry_run:
        for plan in plans:
            apply_uninstall(plan)
    if json:
        print_json([{**report_of(plan), "changed": not dry_run} for plan in plans])
        return
    for plan in plans:
        _show(plan, dry_run=dry_run)


def _show(plan: "UninstallPlan", *, dry_run: bool) -> None:
    from toolcrib.clients.install import diff_of

    console = open_console()
    if dry_run:
        shown = _open_texts(plan)
        for line in diff_of(plan.path, plan.current, plan.restored, shown).splitlines():
            console.print(line, markup=False, soft_wrap=True)
    verb = f"would be {plan.way}" if dry_run and plan.way != "already as before" else plan.way
    console.print(f"{plan.family.title}: {plan.path}: {verb}.", markup=False, soft_wrap=True)
    for file in plan.kept_files:
        console.print(f"  kept, because it was changed: {file}", markup=False, soft_wrap=True)
    for file in plan.kept_locks:
        console.print(f"  kept, because it has what you approved: {file}", markup=False, soft_wrap=True)


def _open_texts(plan: "UninstallPlan") -> "Mapping[str, str]":
    from toolcrib.clients.base import as_object
    from toolcrib.clients.install import open_texts_of

    moved = [
        plan.family.read(name, as_object(raw) or {})  # pyright: ignore[reportArgumentType]
        for part in plan.manifest.sections
        for name, raw in part.servers.items()
    ]
    return open_texts_of(plan.family, moved, plan.current, plan.manifest)
