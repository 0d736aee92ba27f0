"""Finding the servers that a person already has.

Every place of every family is looked at; what is not there costs nothing. A file that cannot be read is a problem to
report, and keeps nobody from seeing the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolcrib.clients.base import (
    ClientConfig,
    ClientServer,
    Family,
    Format,
    Place,
    Section,
    Surroundings,
    as_object,
)
from toolcrib.clients.editing import load_data, servers_at
from toolcrib.clients.files import decode, load_bytes, place_of, resolved
from toolcrib.definitions import JsonObject
from toolcrib.errors import ConfigError
from toolcrib.jsonc import TextError

COMMON = "mcp-json"
"""The family whose format most clients share."""
_NAMED: tuple[tuple[str, Section], ...] = (
    (COMMON, ("mcpServers",)),
    ("vscode", ("servers",)),
    ("zed", ("context_servers",)),
    ("codex", ("mcp_servers",)),
    ("hermes", ("mcp_servers",)),
)
"""By which key a file that somebody named is understood, in this order."""
_WORDS: dict[Format, str] = {"jsonc": "JSON", "toml": "TOML", "yaml": "YAML"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is on this machine."""

    configs: tuple[ClientConfig, ...]
    problems: tuple[str, ...]
    """One sentence for each file that could not be read."""


def discover(families: Iterable[Family], around: Surroundings) -> Found:
    """The configurations of these families; a file that two of them share belongs to the first."""
    configs: list[ClientConfig] = []
    problems: dict[str, None] = {}
    seen: set[tuple[Path, Section]] = set()
    for family in families:
        # Several places may lie in one file, and that file may be large: it is read once.
        files: dict[Path, JsonObject | None] = {}
        for place in family.places(around):
            try:
                key = (resolved(place.path), place.section)
            except ConfigError as error:
                problems[str(error)] = None
                continue
            if key in seen:
                continue
            if place.path not in files:
                try:
                    files[place.path] = load_file(place.path, family.format) if _exists(place.path) else None
                except ConfigError as error:
                    files[place.path] = None
                    problems[str(error)] = None
            config = _config(family, place, files[place.path])
            if config is not None:
                seen.add(key)
                configs.append(config)
    return Found(configs=tuple(configs), problems=tuple(problems))


def _config(family: Family, place: Place, data: JsonObject | None) -> ClientConfig | None:
    """The servers of one place, or nothing if there is none."""
    servers = servers_at(data, place.section) if data is not None else None
    if servers is None:
        return None
    return ClientConfig(
        client=family.name,
        path=place.path,
        section=place.section,
        scope=place.scope,
        format=family.format,
        servers=tuple(_read(family, name, value) for name, value in servers.items()),
    )


def load_any(path: Path, families: Iterable[Family]) -> ClientConfig:
    """The servers of a file that somebody named, in whatever client's format it is. Raises `ConfigError`."""
    suffix = path.suffix.lower()
    format: Format = "toml" if suffix == ".toml" else "yaml" if suffix in {".yaml", ".yml"} else "jsonc"
    data = load_file(path, format)
    by_name = {family.name: family for family in families}
    for name, section in _NAMED:
        family = by_name[name]
        # The common key may stand in a file of any format; the others belong to one client each.
        if name == COMMON or family.format == format:
            config = _config(family, Place(path=path, section=section, scope="project"), data)
            if config is not None:
                return config
    keys = ", ".join(dict.fromkeys(f"`{section[0]}`" for _, section in _NAMED))
    raise ConfigError(f"{path}: names no servers: none of {keys} is there.")


def load_file(path: Path, format: Format) -> JsonObject:
    """The data of a client's file. Raises `ConfigError` that names the line."""
    text = decode(load_bytes(path), path)
    try:
        return load_data(text, format)
    except TextError as error:
        raise ConfigError(
            f"{path}:{place_of(text, error.offset)}: is no valid {_WORDS[format]}: {error.message}."
        ) from None


def _read(family: Family, name: str, value: object) -> ClientServer:
    raw = as_object(value)  # pyright: ignore[reportArgumentType]
    if raw is None:
        return ClientServer(name=name, raw={}, obstacle="it is no mapping")
    return family.read(name, raw)


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
