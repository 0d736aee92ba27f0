"""`toolcrib describe`: the whole definition of one tool."""

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.output import print_json


def describe(
    name: Annotated[str, typer.Argument(help="Full or short name of the tool.")],
    tools: Annotated[Path | None, typer.Option(help="File of definitions.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file.")] = None,
) -> None:
    """Prints the name, description and JSON Schema of one tool.

    Example: toolcrib describe create_issue --tools tools.jsonl
    """
    from toolcrib.cli.cribs import open_crib
    from toolcrib.errors import CallError, ConfigError

    session = open_crib(tools=tools, config=config).session()
    try:
        print_json(session.describe(name))
    except CallError as error:
        raise ConfigError(error.message) from None
