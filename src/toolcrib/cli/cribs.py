"""The crib that a command works on: a file of definitions, or the sources of a configuration file."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from toolcrib.cli.catalogs import load_catalog
from toolcrib.cli.progress import starting_bar
from toolcrib.config import load_settings, open_sources
from toolcrib.crib import Crib
from toolcrib.definitions import Json
from toolcrib.errors import ConfigError
from toolcrib.intake.pins import LOCK_NAME
from toolcrib.limits import CONNECT_S
from toolcrib.sources.base import Settling

T = TypeVar("T")

DEFAULT_CONFIG = "toolcrib.yaml"


def open_crib(
    *, tools: Path | None, config: Path | None, flags: Mapping[str, Json] | None = None, lock: Path | None = None
) -> Crib:
    """The crib of `--tools` or `--config`; without either, of `toolcrib.yaml` here. Raises `ConfigError`."""
    if tools is not None and config is not None:
        raise ConfigError("Give --tools or --config, not both.")
    path = config or (Path(DEFAULT_CONFIG) if tools is None and Path(DEFAULT_CONFIG).exists() else None)
    settings = load_settings(path, flags=flags).settings
    if tools is not None:
        return load_catalog(tools, settings=settings, lock=lock)
    if path is None:
        raise ConfigError(f"There is no {DEFAULT_CONFIG} here: give --tools FILE or --config FILE{_made_by_install()}.")
    sources = open_sources(settings)
    if not sources:
        raise ConfigError(f"{path}: names no tools: give it `mcpServers` or `python` (docs/configuration.md).")
    return Crib(*sources, settings=settings, lock=lock or path.parent / (settings.lock or LOCK_NAME))


def use_crib(crib: Crib, work: Callable[[Crib], Awaitable[T]]) -> T:
    """Starts the servers of a crib, waits for their tools, does the work, and ends them.

    Servers that cannot be asked are named on standard error; the others count.
    """
    import asyncio
    import logging

    # What goes wrong is said here, once.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())

    async def run() -> T:
        async with crib:
            waiting = [(source.name, source) for source in crib.sources if isinstance(source, Settling)]
            with starting_bar(len(waiting), quiet=False) as heard:
                await asyncio.gather(*(_settle(name, source, heard) for name, source in waiting))
            for toolset in crib.inventory.toolsets:
                if toolset.unavailable:
                    sys.stderr.write(f"toolcrib: {toolset.name} could not be asked: {toolset.unavailable}\n")
            return await work(crib)

    return asyncio.run(run())


async def _settle(name: str, source: Settling, heard: Callable[[str], None]) -> None:
    import asyncio

    with suppress(TimeoutError):
        async with asyncio.timeout(CONNECT_S):
            await source.settled.wait()
    heard(name)


def _made_by_install() -> str:
    """A file that the person may mean, because an installation made it."""
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.state import gateway_files

    files = gateway_files(FAMILIES, read_surroundings())
    return f", such as {files[0]}" if files else ""
