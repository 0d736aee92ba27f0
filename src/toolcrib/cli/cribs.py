"""The crib that a command works on: a file of definitions, or the sources of a configuration file."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from toolcrib.cli.catalogs import load_catalog
from toolcrib.cli.progress import starting_bar
from toolcrib.config import load_settings, lock_file, open_sources
from toolcrib.crib import Crib
from toolcrib.definitions import Json, Skipped
from toolcrib.errors import ConfigError
from toolcrib.intake.findings import make_visible
from toolcrib.limits import AUDIT_START_S
from toolcrib.sources.base import Settling, Source

T = TypeVar("T")

DEFAULT_CONFIG = "toolcrib.yaml"
_NAMED = 3
"""Definitions that are named one by one when they are left out, beside what a command is for."""


def open_crib(
    *,
    tools: Path | None,
    config: Path | None,
    flags: Mapping[str, Json] | None = None,
    lock: Path | None = None,
    tool: str | None = None,
    options: str = "--tools FILE or --config FILE",
) -> Crib:
    """The crib of `--tools` or `--config`; without either, of `toolcrib.yaml` here. Raises `ConfigError`.

    No tool is core unless the settings name it, as for a gateway: these commands look at what a model would search.
    With the full name of a `tool`, the servers that cannot have it are left out: nobody waits for them. `options` are
    those of the command by which a file is named.
    """
    if tools is not None and config is not None:
        raise ConfigError("Give --tools or --config, not both.")
    path = config or (Path(DEFAULT_CONFIG) if tools is None and Path(DEFAULT_CONFIG).exists() else None)
    settings = load_settings(path, flags=flags).settings
    core = settings.tools.core or ()
    if tools is not None:
        return load_catalog(tools, settings=settings, lock=lock, core=core)
    if path is None:
        raise ConfigError(f"There is no {DEFAULT_CONFIG} here: give {options}{_made_by_install()}.")
    sources = open_sources(settings)
    if not sources:
        raise ConfigError(
            f"{path}: names no tools: give it servers (`mcpServers: {{NAME: {{command: PROGRAM}}}}`) or Python modules "
            "(`python: {NAME: {module: MODULE}}`)."
        )
    chosen = sources if tool is None else _those_with(tool, sources)
    return Crib(*chosen, settings=settings, lock=lock or lock_file(path, settings), core=core)


def _those_with(tool: str, sources: Sequence[Source]) -> Sequence[Source]:
    """The sources that a name can come from: if its prefix is that of one server, no other server."""
    from toolcrib.sources.mcp_source import McpSource

    servers = [source for source in sources if isinstance(source, McpSource)]
    owners = [source for source in servers if tool.startswith(f"{source.prefix}__")]
    if len(owners) != 1 or not all(source.prefix for source in servers):
        return sources
    return [source for source in sources if source in owners or source not in servers]


def use_crib(crib: Crib, work: Callable[[Crib], Awaitable[T]]) -> T:
    """Starts the servers of a crib, waits for their tools, does the work, and ends them.

    Servers that cannot be asked, and definitions that cannot be used, are named on standard error; the others count.
    """
    import asyncio
    import logging

    # What goes wrong is said here, once.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())

    async def run() -> T:
        async with crib:
            for name, reason in (await settle(crib)).items():
                sys.stderr.write(f"toolcrib: {name} could not be asked: {reason}\n")
            sys.stderr.writelines(f"toolcrib: {line}\n" for line in left_out(crib.skipped))
            return await work(crib)

    return asyncio.run(run())


def left_out(skipped: Sequence[Skipped], most: int = _NAMED) -> Iterator[str]:
    """A line for each definition that cannot be used, and why; of many, the first."""
    for item in skipped[:most]:
        yield make_visible(f"left out: {item.toolset}/{item.name}: {item.reason}")
    if len(skipped) > most:
        yield f"left out: {len(skipped) - most} more; `toolcrib doctor` names those of a configuration"


async def settle(crib: Crib) -> dict[str, str]:
    """Waits for the servers of a started crib, with a bar on the terminal; who could not be asked, and why."""
    import asyncio

    waiting = {source.name: source for source in crib.sources if isinstance(source, Settling)}
    with starting_bar([*waiting], quiet=False) as heard:

        async def one(name: str, source: Settling) -> None:
            await source.settled.wait()
            heard(name)

        tasks = [asyncio.ensure_future(one(name, source)) for name, source in waiting.items()]
        if tasks:
            await asyncio.wait(tasks, timeout=AUDIT_START_S)
        for task in tasks:
            task.cancel()
    silent = f"it did not answer within {AUDIT_START_S:g} seconds"
    reasons = {name: silent for name, source in waiting.items() if not source.settled.is_set()}
    reasons.update(
        (offer.toolset.name, offer.toolset.unavailable) for offer in crib.offers if offer.toolset.unavailable
    )
    return reasons


def _made_by_install() -> str:
    """A file that the person may mean, because an installation made it."""
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.state import gateway_files

    files = gateway_files(FAMILIES, read_surroundings())
    return f", such as {files[0]}" if files else ""
