"""Claude Code.

| what | where |
| --- | --- |
| user | `~/.claude.json`, key `mcpServers`; with `CLAUDE_CONFIG_DIR` in that directory |
| one project, private | the same file, `projects.<directory>.mcpServers` |
| one project, shared | `.mcp.json` in the project's root, key `mcpServers` |

JSON. Local: `type: stdio`, `command`, `args`, `env`. Remote: `type: http|sse`, `url`, `headers`. References `${NAME}`
and `${NAME:-default}` are resolved in all of them. The program rewrites its own file often.
"""

from collections.abc import Sequence

from toolcrib.clients.base import Family, Place, Surroundings, entry_writer
from toolcrib.clients.mcp_json import nearest_files
from toolcrib.clients.servers import read_server


def places(around: Surroundings) -> Sequence[Place]:
    """The user's servers, the private ones of this project, and the shared ones."""
    directory = around.directory("CLAUDE_CONFIG_DIR", around.home)
    path = directory / ".claude.json"
    projects = dict.fromkeys(name for project in around.tree for name in (str(project), project.as_posix()))
    return (
        Place(path=path, section=("mcpServers",)),
        *(Place(path=path, section=("projects", name, "mcpServers"), scope="project") for name in projects),
        *nearest_files(around),
    )


FAMILY = Family(
    name="claude-code",
    title="Claude Code",
    format="jsonc",
    places=places,
    read=read_server,
    write=entry_writer(typed=True),
    note="Start Claude Code anew.",
)
