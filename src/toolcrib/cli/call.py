"""`toolcrib call`: runs one tool, through the same stages as a model's call."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import print_json

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.definitions import JsonObject, Result

_SUCH = '\'{"timezone": "UTC"}\''


def call(
    name: Annotated[str, typer.Argument(help="The tool.")],
    arguments: Annotated[
        str, typer.Argument(help="Its arguments as a JSON object; `-` reads it from standard input.")
    ] = "{}",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
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

    text = sys.stdin.read().removeprefix("\ufeff") if arguments == "-" else arguments
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"The arguments are no valid JSON: {error}. Write them like {_SUCH}.") from None
    if not isinstance(given, dict):
        raise ConfigError(f"The arguments must be a JSON object, such as {_SUCH}.")
    crib = open_crib(tools=None, config=config, tool=name, options="--config FILE")

    async def run(crib: "Crib") -> "Result":
        result = await crib.session().call(name, text)
        if result.code == ToolNotAvailable.code:
            raise unknown_tool(name, result.text, crib)
        return result

    result = use_crib(crib, run)
    if json:
        print_json(write_result(ModelCall(id="caller", name=name, arguments=None), result))
    else:
        _show(result)
    if result.is_error:
        raise typer.Exit(1)


def _show(result: "Result") -> None:
    """The text of a result, and a word about what is no text. A terminal is given nothing to obey."""
    from toolcrib.terminal import disarm

    others = [f"[{_name(block)}: --json has it]" for block in result.content if block.get("type") != "text"]
    shown = "\n".join(filter(None, (result.text, *others)))
    sys.stdout.write(f"{disarm(shown) if sys.stdout.isatty() else shown}\n")


def _name(block: "JsonObject") -> str:
    """What a block is, by its kind and what else it says of itself."""
    inner = block.get("resource")
    says = inner if isinstance(inner, dict) else block
    about = (says.get("uri"), says.get("mimeType"))
    return ", ".join(str(part) for part in (block.get("type", "unknown"), *about) if part)
