"""Reading files of definitions: JSON Lines or a JSON array, in any dialect.

A line may say which server a tool belongs to (`server`); tools of one server become one toolset, and its name their
prefix.
"""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import orjson

from toolcrib.crib import Crib
from toolcrib.definitions import Json, JsonObject
from toolcrib.dialects import expand_definitions
from toolcrib.errors import ConfigError
from toolcrib.settings import Settings
from toolcrib.sources.base import freeze_toolset
from toolcrib.sources.listed import ListedToolsets

DEFAULT_TOOLSET = "tools"


def load_catalog(
    path: Path, *, settings: Settings | None = None, lock: Path | None = None, core: Iterable[str] | None = None
) -> Crib:
    """A crib over a file of definitions. Raises `ConfigError` that names the line.

    Without settings it only counts: nothing is screened or compared with a lock. Without a core the usual one counts.
    """
    servers: dict[str, list[JsonObject]] = {}
    for definition in read_definitions(path):
        server = definition.pop("server", None)
        servers.setdefault(server if isinstance(server, str) and server else "", []).append(definition)
    if not servers:
        raise ConfigError(f"{path}: holds no tools.")
    toolsets = tuple(
        freeze_toolset(f"mcp-{name}", definitions, origin="mcp")
        if name
        else freeze_toolset(DEFAULT_TOOLSET, definitions, origin="mcp", prefix="")
        for name, definitions in servers.items()
    )
    if not any(toolset.tools for toolset in toolsets):
        reason = toolsets[0].skipped[0].reason
        raise ConfigError(f"{path}: holds no tool that can be used: {reason.rstrip('.')}.")
    chosen = settings or Settings(pins="off", screening="off")
    return Crib(ListedToolsets(str(path), toolsets), settings=chosen, lock=lock, core=core)


def read_definitions(path: Path) -> Iterator[JsonObject]:
    """The definitions of a file, one by one. Raises `ConfigError`."""
    try:
        text = path.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
    if text.lstrip()[:1] == b"[" or _is_one_object(text):
        yield from _objects(_parse(text, str(path)), str(path))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield from _objects(_parse(line, f"{path}:{number}"), f"{path}:{number}")


def _is_one_object(text: bytes) -> bool:
    """Whether the file is one JSON object over several lines, such as the answer of `tools/list`."""
    begun = text.lstrip()
    return begun[:1] == b"{" and not _parses(begun.partition(b"\n")[0])


def _parses(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _parse(text: bytes, where: str) -> Json:
    try:
        return cast("Json", orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{where}: is no valid JSON: {error}.") from None


def _objects(value: Json, where: str) -> Iterator[JsonObject]:
    for definition in expand_definitions(value):
        if not isinstance(definition, dict):
            raise ConfigError(f"{where}: a tool definition must be a JSON object.")
        yield definition
