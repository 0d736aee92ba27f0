"""`toolcrib doctor`: one page that says what works, what does not, and what to do about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json
from toolcrib.limits import DOCTOR_START_S

if TYPE_CHECKING:
    from toolcrib.definitions import JsonObject
    from toolcrib.doctor.examination import Diagnosis


def doctor(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here, or what install made."),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Context window of the model, in tokens; else what the profiles say."),
    ] = None,
    wait: Annotated[
        float, typer.Option(metavar="N", min=0.1, help="Seconds that a server may take to answer.")
    ] = DOCTOR_START_S,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Checks the configuration, every server, the gate, the search, pins and clients; exit code 1 if one is wrong.

    It starts the configured servers, asks each for its tools, and ends them. Without a configuration file here, it
    looks at those that `toolcrib install` made.

    Example: toolcrib doctor --config toolcrib.yaml --context 200000
    """
    import logging

    # What goes wrong is on the page, once and with its next step.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())
    found = _examine_all(config, context=context, wait_s=wait, quiet=json)
    if json:
        pages = [{"config": str(path) if path else None, **diagnosis.as_json()} for path, diagnosis in found]
        several: JsonObject = {"healthy": all(diagnosis.healthy for _, diagnosis in found), "configs": pages}
        print_json(pages[0] if len(pages) == 1 else several)
    else:
        from toolcrib.doctor.rendering import render

        render([diagnosis for _, diagnosis in found], open_console())
    if not all(diagnosis.healthy for _, diagnosis in found):
        raise typer.Exit(1)


def _examine_all(
    config: Path | None, *, context: int | None, wait_s: float, quiet: bool
) -> "list[tuple[Path | None, Diagnosis]]":
    """The check-up of every configuration in question, one after the other. Raises `ConfigError`."""
    import asyncio
    import os

    from toolcrib.cli.config import changed_settings
    from toolcrib.cli.cribs import DEFAULT_CONFIG
    from toolcrib.cli.progress import starting_bar
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.state import client_states, gateway_files
    from toolcrib.config import load_settings
    from toolcrib.doctor.examination import examine

    around = read_surroundings()
    states = client_states(FAMILIES, around)
    paths: list[Path | None] = [config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)]
    if paths == [None]:
        paths = [*gateway_files(FAMILIES, around)] or [None]
    configurations = [(path, load_settings(path)) for path in paths]
    enabled = [
        f"mcp-{name}"
        for _, loaded in configurations
        for name, entry in loaded.settings.mcpServers.items()
        if not entry.disabled
    ]
    found: list[tuple[Path | None, Diagnosis]] = []
    with starting_bar(enabled, quiet=quiet) as heard:
        for number, (path, loaded) in enumerate(configurations, 1):
            diagnosis = asyncio.run(
                examine(
                    loaded,
                    path=path,
                    changed=changed_settings(loaded),
                    clients=states if number == len(configurations) else None,
                    environ=os.environ,
                    context=context,
                    wait_s=wait_s,
                    heard=heard,
                )
            )
            found.append((path, diagnosis))
    return found
