"""Any client that reads `.mcp.json` in a project's root, in the common format.

JSON, key `mcpServers`. Local: `command`, `args`, `env`. Remote: `url`, `headers`, mostly with `type: http|sse`.
"""

from collections.abc import Sequence

from toolcrib.clients.base import Family, Place, Surroundings
from toolcrib.clients.servers import read_server


def nearest_files(around: Surroundings) -> Sequence[Place]:
    """`.mcp.json` here and in every directory above."""
    return tuple(
        Place(path=directory / ".mcp.json", section=("mcpServers",), scope="project") for directory in around.tree
    )


FAMILY = Family(
    name="mcp-json",
    title=".mcp.json",
    format="jsonc",
    places=nearest_files,
    read=read_server,
    note="Start the client anew.",
)
