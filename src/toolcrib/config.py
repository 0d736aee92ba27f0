"""From a configuration file to settings, and where each value came from.

A wrong key is an error that names the nearest right one; a wrong value is an error that names its place. Nothing
falls back in silence: a typo that switched a limit off would be worse than no start. Later wins: defaults, then the
file, then the environment (`TOOLCRIB_TOOLS__TOOL_SEARCH__ENABLED=on`), then what the command line sets.
"""

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ConfigError
from toolcrib.intake.pins import lock_beside
from toolcrib.jsonc import TextError, read_jsonc
from toolcrib.settings import ServerSettings, Settings
from toolcrib.sources.base import Source
from toolcrib.wrong_settings import explain
from toolcrib.yaml_text import read_yaml

ENV_PREFIX = "TOOLCRIB_"
_JSON_SUFFIXES = (".json", ".jsonc")
_CLIENT_KEYS = {
    "httpUrl": "url",
    "serverUrl": "url",
    "includeTools": "include",
    "excludeTools": "exclude",
    "disabledTools": "exclude",
}
_CLIENT_TYPES = {"streamableHttp": "streamable-http", "streamable_http": "streamable-http", "local": "stdio"}
_WITHOUT_SECTION = ("lock", "pins", "plugins", "screening")
"""Settings that a variable with a single word means; other such variables are somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings, and the origin of every value that is not a default."""

    settings: Settings
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Dotted key → `file:…`, `env:…` or `flag`."""


def load_settings(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Json] | None = None,
) -> Loaded:
    """Reads settings. `flags` are dotted keys with their values. Raises `ConfigError`."""
    data: JsonObject = {}
    origins: dict[str, str] = {}
    if path is not None:
        data = _from_client_file(_read_file(path), path)
        origins.update((key, f"file:{path}") for key, _ in _leaves(data))
    layers = (
        [(key, value, f"env:{name}") for name, key, value in _environment(os.environ if environ is None else environ)],
        [(key, value, "flag") for key, value in (flags or {}).items()],
    )
    where = str(path) if path else "settings"
    for layer in layers:
        for key, value, origin in layer:
            was_valid = origin != "flag" and _is_valid(data)
            _set(data, key, value)
            origins[key] = origin
            if was_valid and not _is_valid(data):
                # What is wrong is the variable, not the file.
                where = origin.removeprefix("env:")
    settings = build_settings(data, where=where)
    return Loaded(settings=_with_places(settings, path) if path is not None else settings, origins=origins)


def lock_file(path: Path, settings: Settings) -> Path:
    """The lock file that belongs to a configuration file."""
    return _beside(path, settings.lock) if settings.lock else lock_beside(path)


def _with_places(settings: Settings, path: Path) -> Settings:
    activity, gateway = settings.activity, settings.gateway
    if activity.file:
        activity = msgspec.structs.replace(activity, file=str(_beside(path, activity.file)))
    if gateway.tokens:
        gateway = msgspec.structs.replace(gateway, tokens=str(_beside(path, gateway.tokens)))
    return msgspec.structs.replace(settings, activity=activity, gateway=gateway)


def _beside(path: Path, name: str) -> Path:
    """A file that a configuration names, beside the configuration: whoever starts us may stand anywhere."""
    try:
        return path.parent / Path(name).expanduser()
    except RuntimeError:
        raise ConfigError(f"{path}: `{name}` names the home of nobody here: write the whole path.") from None


def build_settings(data: Mapping[str, Json], *, where: str = "settings") -> Settings:
    """Settings from plain data. Raises `ConfigError` that names the place and the nearest key."""
    prepared = _expand_shorthand(data)
    try:
        settings = msgspec.convert(prepared, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {explain(str(error), prepared)}") from None
    search = settings.tools.tool_search
    if search.search_default_limit > search.max_search_limit:
        raise ConfigError(
            f"{where}: `tools.tool_search.search_default_limit` ({search.search_default_limit}) is above "
            f"`max_search_limit` ({search.max_search_limit}): lower the first or raise the second."
        )
    return settings


def open_sources(settings: Settings) -> Sequence[Source]:
    """The sources that settings name. Raises `ConfigError`."""
    from toolcrib.sources.functions import Functions
    from toolcrib.sources.plugins import load_plugins
    from toolcrib.sources.servers import open_servers

    sources: list[Source] = []
    for name, entry in settings.python.items():
        try:
            module = importlib.import_module(entry.module)
        except ImportError as error:
            raise ConfigError(f"python.{name}: the module `{entry.module}` cannot be imported: {error}.") from None
        sources.append(Functions.of(module, name=name, include=entry.include, exclude=entry.exclude))
    sources.extend(open_servers(settings))
    if settings.plugins:
        sources.extend(load_plugins().sources)
    return sources


def _from_client_file(data: JsonObject, path: Path) -> JsonObject:
    """The part of an MCP client's own file that concerns us: its servers, with the keys that we know."""
    servers = data.get("mcpServers", data.get("servers"))
    if path.suffix not in _JSON_SUFFIXES or not isinstance(servers, Mapping):
        return data
    taken: JsonObject = {
        name: _from_client_entry(entry) if isinstance(entry, Mapping) else entry for name, entry in servers.items()
    }
    ours = {key: value for key, value in data.items() if key in Settings.__struct_fields__}
    return {**ours, "mcpServers": taken}


def _from_client_entry(entry: Mapping[str, Json]) -> JsonObject:
    """A server as clients write it: other words for the same, keys of their own, and nothing where there is nothing."""
    known = set(ServerSettings.__struct_fields__)
    taken: JsonObject = {}
    for key, value in entry.items():
        ours = _CLIENT_KEYS.get(key, key)
        if ours in known and value is not None:
            taken[ours] = _CLIENT_TYPES.get(str(value), value) if ours == "type" else value
    if taken.get("type") == "remote":
        del taken["type"]
    return taken


def _read_file(path: Path) -> JsonObject:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text.") from None
    data: Any = _parse_json(text, path) if path.suffix in _JSON_SUFFIXES else _parse_yaml(text, path)
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in cast("dict[object, object]", data)):
        raise ConfigError(f"{path}: must hold keys and values, such as `tools:`.")
    return cast("JsonObject", data)


def _parse_json(text: str, path: Path) -> Json:
    """JSON as people and editors write it: comments and trailing commas do no harm, tabs neither."""
    if not text.strip():
        return None
    try:
        return read_jsonc(text).data()
    except TextError as error:
        line = text.count("\n", 0, error.offset) + 1
        raise ConfigError(f"{path}:{line}: is no valid JSON: {error.message.rstrip('.')}.") from None


def _parse_yaml(text: str, path: Path) -> object:
    try:
        return read_yaml(text)
    except TextError as error:
        line = text.count("\n", 0, error.offset) + 1
        raise ConfigError(f"{path}:{line}: is no valid YAML: {error.message.rstrip('.')}.") from None


_OFF = frozenset({"semantic", "abstention"})
"""Settings of `tools.tool_search` that can be off and never on."""


def _expand_shorthand(data: Mapping[str, Json]) -> JsonObject:
    """`tool_search: true` means auto, `false` off; inside it, `enabled: true` means on (as YAML reads `on`)."""
    # YAML reads `pins: off` as false.
    data = {key: "off" if key in {"pins", "screening"} and value is False else value for key, value in data.items()}
    tools = data.get("tools")
    if not isinstance(tools, Mapping) or "tool_search" not in tools:
        return dict(data)
    search: Json = tools["tool_search"]
    if isinstance(search, bool):
        search = {"enabled": "auto" if search else "off"}
    elif isinstance(search, Mapping):
        # YAML reads `semantic: off` as false.
        search = {
            key: _mode(value) if key in {"enabled", "listing"} or (key in _OFF and value is False) else value
            for key, value in search.items()
        }
    return {**data, "tools": {**tools, "tool_search": search}}


def _mode(value: Json) -> Json:
    words = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
    return words.get(str(value).lower(), value) if isinstance(value, bool | int | str) else value


def _environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, Json]]:
    for name in sorted(environ):
        key = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
        if name.startswith(ENV_PREFIX) and ("." in key or key in _WITHOUT_SECTION):
            try:
                yield name, key, cast("Json", read_yaml(environ[name]))
            except TextError:
                raise ConfigError(f"The variable {name} holds no valid value.") from None


def _is_valid(data: JsonObject) -> bool:
    try:
        msgspec.convert(_expand_shorthand(data), Settings, strict=True)
    except msgspec.ValidationError:
        return False
    return True


def _set(data: JsonObject, key: str, value: Json) -> None:
    *parents, last = key.split(".")
    node: Any = data
    for parent in parents:
        inner = node.get(parent)
        if parent == "tool_search" and isinstance(inner, bool):
            inner = {"enabled": "auto" if inner else "off"}
        node[parent] = dict(cast("JsonObject", inner)) if isinstance(inner, dict) else {}
        node = node[parent]
    node[last] = value


def _leaves(data: Mapping[str, Json], prefix: str = "") -> Iterator[tuple[str, Json]]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
