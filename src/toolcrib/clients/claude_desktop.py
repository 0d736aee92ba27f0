"""Claude Desktop.

| platform | file |
| --- | --- |
| macOS | `~/Library/Application Support/Claude/claude_desktop_config.json` |
| Windows | `%APPDATA%/Claude/claude_desktop_config.json` |
| Linux | `~/.config/Claude/claude_desktop_config.json` (`XDG_CONFIG_HOME`) |

Strict JSON, key `mcpServers`. Local servers only: `command`, `args`, `env`.
"""

from collections.abc import Sequence

from toolcrib.clients.base import Family, Place, Surroundings, entry_writer
from toolcrib.clients.servers import read_server


def places(around: Surroundings) -> Sequence[Place]:
    """The one file of this platform."""
    return (Place(path=around.config_home / "Claude" / "claude_desktop_config.json", section=("mcpServers",)),)


FAMILY = Family(
    name="claude-desktop",
    title="Claude Desktop",
    format="jsonc",
    places=places,
    read=read_server,
    write=entry_writer(reference=None),
    note="Quit Claude Desktop and start it anew.",
)
