"""The crib that a command works on: a file of definitions, or the sources of a configuration file."""

from collections.abc import Mapping
from pathlib import Path

from toolcrib.cli.catalogs import load_catalog
from toolcrib.config import load_settings, open_sources
from toolcrib.crib import Crib
from toolcrib.definitions import Json
from toolcrib.errors import ConfigError
from toolcrib.intake.pins import LOCK_NAME

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
    return Crib(*open_sources(settings), settings=settings, lock=lock or path.parent / (settings.lock or LOCK_NAME))


def _made_by_install() -> str:
    """A file that the person may mean, because an installation made it."""
    from toolcrib.cli.surroundings import read_surroundings
    from toolcrib.clients import FAMILIES
    from toolcrib.clients.state import gateway_files

    files = gateway_files(FAMILIES, read_surroundings())
    return f", such as {files[0]}" if files else ""
