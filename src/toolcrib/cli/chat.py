"""`toolcrib chat`: the reference agent in the terminal."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.cli.output import is_text, open_console

if TYPE_CHECKING:
    from toolcrib.agent.host import Host
    from toolcrib.cli.feed import TerminalView
    from toolcrib.definitions import Json
    from toolcrib.settings import Settings
    from toolcrib.sources.base import Source

Api = Literal["openai_chat", "openai_responses", "anthropic"]
RevealOption = Literal["auto", "bridge", "native"]


def chat(
    prompt: Annotated[str | None, typer.Argument(help="One turn; without it, a conversation.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Model name at the endpoint.")] = None,
    endpoint: Annotated[str | None, typer.Option(metavar="URL", help="Base address of the endpoint.")] = None,
    api: Annotated[Api | None, typer.Option(help="Wire format of the endpoint.")] = None,
    context: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Context window of the model, in tokens.")
    ] = None,
    reveal: Annotated[RevealOption | None, typer.Option(help="How deferred tools reach the model.")] = None,
    workdir: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory that the tools work in.")] = None,
) -> None:
    """Talks to a model that has the core tools on its bench and everything else in the crib.

    Example: toolcrib chat --endpoint http://localhost:11434/v1 --model qwen3 "What is in this directory?"
    """
    import asyncio

    if prompt is not None and not is_text(prompt):
        raise typer.BadParameter("is no UTF-8 text.", param_hint="'PROMPT'")
    settings, sources, lock = agent_configuration(
        config, model=model, endpoint=endpoint, api=api, context=context, reveal=reveal, workdir=workdir
    )
    raise typer.Exit(asyncio.run(_converse(settings, sources, lock, prompt)))


def agent_configuration(config: Path | None, **given: object) -> "tuple[Settings, list[Source], Path | None]":
    """Settings, sources and lock file of an agent: a file, what the command line says, or neither.

    Raises `ConfigError`.
    """
    from toolcrib.cli.cribs import DEFAULT_CONFIG
    from toolcrib.config import load_settings, lock_file, open_sources

    path = config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)
    flags: dict[str, Json] = {
        f"agent.{key}": value if isinstance(value, int) else str(value)
        for key, value in given.items()
        if value is not None
    }
    settings = load_settings(path, flags=flags).settings
    lock = lock_file(path, settings) if path else None
    return settings, list(open_sources(settings)), lock


async def _converse(settings: "Settings", sources: "list[Source]", lock: Path | None, prompt: str | None) -> int:
    """Talks until the person, the input or a signal ends it; the exit code."""
    import asyncio

    from toolcrib.cli.keyboard import terminal_kept
    from toolcrib.cli.signals import ENDING, Cancelling

    with terminal_kept(), Cancelling(*ENDING) as ending:
        try:
            return await _talk(settings, sources, lock, prompt)
        except asyncio.CancelledError:
            if ending.number is None:
                raise
            return 128 + ending.number


async def _talk(settings: "Settings", sources: "list[Source]", lock: Path | None, prompt: str | None) -> int:
    from toolcrib.agent.host import open_host
    from toolcrib.cli.feed import TerminalView
    from toolcrib.cli.keyboard import NotText
    from toolcrib.cli.person import Person

    person = Person()
    there = sys.stdin.isatty()
    view = TerminalView(open_console())
    # Without a terminal nobody can answer, and a piped line must never be taken for an approval.
    async with open_host(
        settings,
        sources,
        asker=person.clarify if there else None,
        approver=person.approve if there else None,
        view=view,
        lock=lock,
    ) as host:
        view.watch(host)
        view.line(f"{host.model.name} at {host.model.endpoint}; window {host.session.window or 'unknown'}")
        if prompt is not None:
            return await _turn(host, view, prompt)
        code = 0
        while True:
            try:
                text = await person.line("you> " if there else "")
            except EOFError:
                return code
            except NotText as error:
                view.note(str(error))
                code = 1
                continue
            if text.strip() in {"/quit", "/exit"}:
                return code
            if text.strip():
                code = await _turn(host, view, text)
                if code == _INTERRUPTED and not there:
                    return code


async def _turn(host: "Host", view: "TerminalView", text: str) -> int:
    """One turn, which Ctrl-C ends and nothing else; the exit code if it was the last one."""
    import asyncio

    from toolcrib.cli.signals import Cancelling
    from toolcrib.errors import ModelError

    with Cancelling(signal.SIGINT) as ending:
        try:
            code = int((await host.agent.run(text)).outcome != "completed")
        except ModelError as error:
            code = 1
            view.note(str(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if ending.number is None or task is None or task.uncancel():
                raise
            code = _INTERRUPTED
            view.note("interrupted: the rest of this turn was left out")
    view.end()
    view.line(f"  {host.agent.account}")
    return code


_INTERRUPTED = 128 + signal.SIGINT
"""The exit code of what Ctrl-C ended."""
