"""`toolcrib call`: runs one tool, through the same stages as a model's call."""

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.output import print_json


def call(
    name: Annotated[str, typer.Argument(help="The tool.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments as a JSON object.")] = "{}",
    config: Annotated[Path | None, typer.Option(help="Configuration file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> None:
    """Runs one tool and prints its result; exit code 1 if the call failed.

    Example: toolcrib call time__get_current_time '{"timezone": "Europe/Vienna"}'
    """
    import orjson

    from toolcrib.cli.cribs import open_crib, use_crib
    from toolcrib.cli.describe import unknown_tool
    from toolcrib.definitions import ModelCall
    from toolcrib.dialects.mcp import write_result
    from toolcrib.errors import ConfigError, ToolNotAvailable

    try:
        given = orjson.loads(arguments)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"The arguments are no valid JSON: {error}.") from None
    if not isinstance(given, dict):
        raise ConfigError('The arguments must be a JSON object, such as \'{"timezone": "UTC"}\'.')
    crib = open_crib(tools=None, config=config, tool=name)
    result = use_crib(crib, lambda crib: crib.session().call(name, arguments))
    if result.code == ToolNotAvailable.code:
        raise unknown_tool(name, result.text)
    if json:
        print_json(write_result(ModelCall(id="caller", name=name, arguments=None), result))
    else:
        typer.echo(result.text)
    if result.is_error:
        raise typer.Exit(1)
