"""`toolcrib doctor`: one page that says what works, what does not, and what to do about it."""

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.output import open_console, print_json
from toolcrib.limits import DOCTOR_START_S


def doctor(
    config: Annotated[Path | None, typer.Option(help="Configuration file; without it, toolcrib.yaml here.")] = None,
    context: Annotated[
        int | None, typer.Option(min=1, help="Context window of the model, in tokens; else what the profiles say.")
    ] = None,
    wait: Annotated[float, typer.Option(min=0.1, help="Seconds that a server may take to answer.")] = DOCTOR_START_S,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Checks the configuration, every server, the gate, the search, pins and clients; exit code 1 if one is wrong.

    It starts the configured servers, asks each for its tools, and ends them.

    Example: toolcrib doctor --config toolcrib.yaml --context 200000
    """
    import asyncio
    import logging
    import os

    from toolcrib.cli.config import changed_settings
    from toolcrib.cli.cribs import DEFAULT_CONFIG
    from toolcrib.cli.progress import starting_bar
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.state import client_states
    from toolcrib.config import load_settings
    from toolcrib.doctor.examination import examine

    # What goes wrong is on the page, once and with its next step.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())
    path = config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)
    loaded = load_settings(path)
    states = client_states(FAMILIES, read_surroundings())
    enabled = sum(not entry.disabled for entry in loaded.settings.mcpServers.values())
    with starting_bar(enabled, quiet=json) as heard:
        diagnosis = asyncio.run(
            examine(
                loaded,
                path=path,
                changed=changed_settings(loaded),
                clients=states,
                environ=os.environ,
                context=context,
                wait_s=wait,
                heard=heard,
            )
        )
    if json:
        print_json({"config": str(path) if path else None, **diagnosis.as_json()})
    else:
        from toolcrib.doctor.rendering import render

        render(diagnosis, open_console())
    if not diagnosis.healthy:
        raise typer.Exit(1)
