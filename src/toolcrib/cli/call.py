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
    import asyncio

    from toolcrib.cli.cribs import open_crib
    from toolcrib.definitions import ModelCall, Result
    from toolcrib.dialects.mcp import write_result
    from toolcrib.sources.mcp_source import McpSource

    crib = open_crib(tools=None, config=config)

    async def run() -> Result:
        async with crib:
            await asyncio.gather(*(item.settled.wait() for item in crib.sources if isinstance(item, McpSource)))
            return await crib.session().call(name, arguments)

    result = asyncio.run(run())
    if json:
        print_json(write_result(ModelCall(id="caller", name=name, arguments=None), result))
    else:
        typer.echo(result.text)
    if result.is_error:
        raise typer.Exit(1)
