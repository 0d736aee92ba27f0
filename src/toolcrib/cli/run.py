"""`toolcrib run`: one unattended turn, for `cron` and its like."""

import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.chat import Api, RevealOption, agent_configuration
from toolcrib.cli.output import open_console, print_json, require_writable, write_file


def run(
    task: Annotated[Path, typer.Option(metavar="FILE", help="File that holds the task, in words.")],
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
    enabled_toolsets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOLSET",
            help="The only toolsets besides the core tools, which stay; repeat or separate by commas.",
        ),
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(metavar="TOOL", help="A tool without which the turn must not start; repeatable.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the record of the run, as JSON.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Model name at the endpoint.")] = None,
    endpoint: Annotated[str | None, typer.Option(metavar="URL", help="Base address of the endpoint.")] = None,
    api: Annotated[Api | None, typer.Option(help="Wire format of the endpoint.")] = None,
    context: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Context window of the model, in tokens.")
    ] = None,
    reveal: Annotated[RevealOption | None, typer.Option(help="How deferred tools reach the model.")] = None,
    workdir: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory that the tools work in.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Runs one task unattended, with the core tools and a scope of its own, and says what really happened.

    Exit code 1: a required tool is missing (no model was asked), an approval was needed that nobody could give, or
    the model failed. A signal ends the run, and the record says so; the exit code is then 128 and its number.

    Example: toolcrib run --task nightly.md --enabled-toolsets mcp-github --require create_issue --record run.json
    """
    import asyncio

    from toolcrib.agent.schedule import RunRecord, run_task
    from toolcrib.cli.feed import TerminalView
    from toolcrib.cli.signals import ENDING, Cancelling

    text = _read_task(task)
    if record is not None:
        require_writable(record)
    settings, sources, lock = agent_configuration(
        config, model=model, endpoint=endpoint, api=api, context=context, reveal=reveal, workdir=workdir
    )
    view = None if json else TerminalView(open_console())
    ending = Cancelling(signal.SIGINT, *ENDING)

    async def work() -> RunRecord:
        with ending:
            return await run_task(
                text,
                settings,
                sources,
                clock=time.time,
                view=view,
                opened=view.watch if view else None,
                enabled_toolsets=_several(enabled_toolsets),
                required_tools=_several(require) or (),
                lock=lock,
                ended=lambda: ending.number.name if ending.number else None,
            )

    done = asyncio.run(work())
    if view is not None:
        view.end()
    if record is not None:
        import orjson

        shown = orjson.dumps(done.as_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        write_file(record, shown.decode())
    if json:
        print_json(done.as_json())
    if not done.succeeded:
        sys.stderr.write(f"toolcrib: {done.outcome}: {done.reason}\n")
        raise typer.Exit(128 + ending.number if ending.number and done.outcome == "interrupted" else 1)


def _read_task(path: Path) -> str:
    """The task in a file. Raises `ConfigError`."""
    from toolcrib.errors import ConfigError

    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text.") from None
    if not text:
        raise ConfigError(f"{path}: holds no task.")
    return text


def _several(values: list[str] | None) -> list[str] | None:
    if values is None:
        return None
    return [part.strip() for value in values for part in value.split(",") if part.strip()]
