"""VS Code, and its Insiders edition.

| platform | the user's file |
| --- | --- |
| macOS | `~/Library/Application Support/Code/User/mcp.json` |
| Windows | `%APPDATA%/Code/User/mcp.json` |
| Linux | `~/.config/Code/User/mcp.json` (`XDG_CONFIG_HOME`) |

Project: `.vscode/mcp.json`. JSON with comments, key `servers`; `inputs` beside it are questions that VS Code asks.
Local: `type: stdio`, `command`, `args`, `env`, `envFile`, `cwd`. Remote: `type: http|sse`, `url`, `headers`.
`${env:NAME}` refers to the environment; `${input:…}` and `${workspaceFolder}` are the client's own.
"""

from collections.abc import Sequence

from toolcrib.clients.base import Family, Place, Surroundings, entry_writer
from toolcrib.clients.servers import read_server

_SECTION = ("servers",)


def places(around: Surroundings) -> Sequence[Place]:
    """The user's files, and one in every directory from here upwards."""
    return (
        *(
            Place(path=around.config_home / edition / "User" / "mcp.json", section=_SECTION)
            for edition in ("Code", "Code - Insiders")
        ),
        *(
            Place(path=directory / ".vscode" / "mcp.json", section=_SECTION, scope="project")
            for directory in around.tree
        ),
    )


FAMILY = Family(
    name="vscode",
    title="VS Code",
    format="jsonc",
    places=places,
    read=read_server,
    write=entry_writer(typed=True, reference="${{env:{}}}"),
    note="Start the server with the command MCP: List Servers.",
)
