"""Windsurf.

`~/.codeium/windsurf/mcp_config.json` on every platform. JSON, key `mcpServers`. Local: `command`, `args`, `env`.
Remote: `serverUrl` (some files have `url`), `headers`. `disabled` switches one off, `disabledTools` hides tools.
`${env:NAME}` refers to the environment.
"""

from collections.abc import Sequence

from toolcrib.clients.base import ClientServer, Family, Place, Surroundings, entry_writer
from toolcrib.clients.servers import Keys, read_server
from toolcrib.definitions import JsonObject


def places(around: Surroundings) -> Sequence[Place]:
    """The one file."""
    return (Place(path=around.home / ".codeium" / "windsurf" / "mcp_config.json", section=("mcpServers",)),)


def read(name: str, raw: JsonObject) -> ClientServer:
    """One entry of the file."""
    return read_server(name, raw, Keys(url={"serverUrl": None, "url": None}, exclude="disabledTools"))


FAMILY = Family(
    name="windsurf",
    title="Windsurf",
    format="jsonc",
    places=places,
    read=read,
    write=entry_writer(reference="${{env:{}}}"),
    note="Press the refresh button of the MCP panel.",
)
