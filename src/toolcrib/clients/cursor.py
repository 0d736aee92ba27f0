"""Cursor.

User: `~/.cursor/mcp.json` on every platform. Project: `.cursor/mcp.json` in its root. JSON, key `mcpServers`. Local:
`command`, `args`, `env`, `envFile`. Remote: `url`, `headers`. `${env:NAME}` refers to the environment;
`${workspaceFolder}` and `${userHome}` are the client's own.
"""

from collections.abc import Sequence

from toolcrib.clients.base import Family, Place, Surroundings, entry_writer
from toolcrib.clients.servers import read_server


def places(around: Surroundings) -> Sequence[Place]:
    """The user's file, and one in every directory from here upwards."""
    user = around.home / ".cursor" / "mcp.json"
    return (
        Place(path=user, section=("mcpServers",)),
        *(
            Place(path=path, section=("mcpServers",), scope="project")
            for path in (directory / ".cursor" / "mcp.json" for directory in around.tree)
            if path != user
        ),
    )


FAMILY = Family(
    name="cursor",
    title="Cursor",
    format="jsonc",
    places=places,
    read=read_server,
    write=entry_writer(reference="${{env:{}}}"),
    note="Switch the server on under Settings → MCP, or start Cursor anew.",
)
