"""Gemini CLI.

User: `~/.gemini/settings.json`. Project: `.gemini/settings.json`. JSON with comments, key `mcpServers`. Local:
`command`, `args`, `env`, `cwd`. Remote: `httpUrl` for streamable HTTP, `url` for SSE (or as `type` says), `headers`.
`includeTools` and `excludeTools` choose tools. `$NAME` and `${NAME}` refer to the environment.
"""

from collections.abc import Sequence
from dataclasses import replace

from toolcrib.clients.base import ClientServer, Family, Place, Surroundings
from toolcrib.clients.servers import Keys, read_server
from toolcrib.definitions import Json, JsonObject

_SECTION = ("mcpServers",)


def places(around: Surroundings) -> Sequence[Place]:
    """The user's file, and one in every directory from here upwards."""
    user = around.home / ".gemini" / "settings.json"
    return (
        Place(path=user, section=_SECTION),
        *(
            Place(path=path, section=_SECTION, scope="project")
            for path in (directory / ".gemini" / "settings.json" for directory in around.tree)
            if path != user
        ),
    )


def read(name: str, raw: JsonObject) -> ClientServer:
    """One entry of the file."""
    keys = Keys(
        url={"httpUrl": "http", "url": "sse"}, include="includeTools", exclude="excludeTools", bare_references=True
    )
    # A name may have parameters after it, which do not count.
    chosen = {key: _names(raw[key]) for key in ("includeTools", "excludeTools") if key in raw}
    return replace(read_server(name, {**raw, **chosen}, keys), raw=raw)


def _names(value: Json) -> Json:
    return (
        [item.partition("(")[0] if isinstance(item, str) else item for item in value]
        if isinstance(value, list)
        else value
    )


FAMILY = Family(
    name="gemini",
    title="Gemini CLI",
    format="jsonc",
    places=places,
    read=read,
    note="Start Gemini CLI anew.",
)
