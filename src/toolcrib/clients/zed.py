"""Zed.

| platform | the user's file |
| --- | --- |
| macOS | `~/.config/zed/settings.json` |
| Linux | `~/.config/zed/settings.json` (`XDG_CONFIG_HOME`) |
| Windows | `%APPDATA%/Zed/settings.json` |

Project: `.zed/settings.json`. JSON with comments, key `context_servers`. Local: `command`, `args`, `env`; older files
have `command: {path, args, env}`. Remote: `url`, `headers`. `enabled: false` switches one off. An entry with neither
belongs to an extension, which alone knows how to start it.
"""

from collections.abc import Sequence
from dataclasses import replace

from toolcrib.clients.base import ClientServer, Family, Place, Surroundings, as_object, entry_writer
from toolcrib.clients.servers import read_server
from toolcrib.definitions import JsonObject

_SECTION = ("context_servers",)


def places(around: Surroundings) -> Sequence[Place]:
    """The user's file, and one in every directory from here upwards."""
    if around.platform == "win32":
        user = around.config_home / "Zed" / "settings.json"
    elif around.platform == "darwin":
        user = around.home / ".config" / "zed" / "settings.json"
    else:
        user = around.xdg_home / "zed" / "settings.json"
    return (
        Place(path=user, section=_SECTION),
        *(
            Place(path=directory / ".zed" / "settings.json", section=_SECTION, scope="project")
            for directory in around.tree
        ),
    )


def read(name: str, raw: JsonObject) -> ClientServer:
    """One entry of the file, in the new form or the old."""
    older = as_object(raw.get("command"))
    if older is not None:
        plain: JsonObject = {**raw, "command": older.get("path"), "args": older.get("args"), "env": older.get("env")}
        return replace(read_server(name, plain), raw=raw)
    if "command" not in raw and "url" not in raw:
        return ClientServer(name=name, raw=raw, obstacle="an extension starts it")
    return read_server(name, raw)


FAMILY = Family(
    name="zed",
    title="Zed",
    format="jsonc",
    places=places,
    read=read,
    write=entry_writer(reference=None),
    note="Zed notices by itself.",
)
