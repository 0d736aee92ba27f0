"""Any client that reads `.mcp.json` in a project's root, in the common format.

JSON, key `mcpServers`. Local: `command`, `args`, `env`. Remote: `url`, `headers`, mostly with `type: http|sse`; what
other clients call `serverUrl` and `httpUrl` is understood too, and so are the `include` and `exclude` of our own files.
"""

from collections.abc import Sequence

from toolcrib.clients.base import ClientServer, Family, Place, Surroundings
from toolcrib.clients.servers import Keys, read_server
from toolcrib.definitions import JsonObject


def nearest_files(around: Surroundings) -> Sequence[Place]:
    """`.mcp.json` here and in every directory above."""
    return tuple(
        Place(path=directory / ".mcp.json", section=("mcpServers",), scope="project") for directory in around.tree
    )


def read(name: str, raw: JsonObject) -> ClientServer:
    """One entry of the file."""
    keys = Keys(
        url={"url": None, "serverUrl": None, "httpUrl": "http"}, include="include", exclude="exclude", patterns=True
    )
    return read_server(name, raw, keys)


FAMILY = Family(
    name="mcp-json",
    title=".mcp.json",
    format="jsonc",
    places=nearest_files,
    read=read,
    note="Start the client anew.",
)
