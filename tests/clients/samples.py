"""Files as the clients' own documentation shows them, with the comments and oddities that people add."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    client: str
    path: str
    """Below the home directory, on Linux."""
    text: str
    moved: tuple[str, ...]
    staying: tuple[str, ...] = ()


CLAUDE_CODE = """{
  "numStartups": 41,
  "tipsHistory": {"shift-enter": 27},
  "projects": {
    "/srv/site": {
      "allowedTools": [],
      "mcpServers": {
        "local-only": {"type": "stdio", "command": "node", "args": ["here.js"], "env": {}}
      },
      "history": [{"display": "say \\"mcpServers\\": {}"}]
    }
  },
  "mcpServers": {
    "playwright": {
      "type": "stdio",
      "command": "npx",
      "args": ["@playwright/mcp@latest"],
      "env": {}
    },
    "api": {
      "type": "http",
      "url": "https://api.example.com/mcp",
      "headers": {"Authorization": "Bearer ${API_TOKEN}"}
    }
  },
  "userID": "0f"
}
"""

CLAUDE_DESKTOP = (
    '{\r\n\t"globalShortcut": "",\r\n\t"mcpServers": {\r\n\t\t"files": {\r\n\t\t\t"command": "npx",\r\n'
    '\t\t\t"args": ["-y", "@modelcontextprotocol/server-filesystem", "C:\\\\Users\\\\me"]\r\n\t\t},\r\n'
    '\t\t"notes": { "command": "uvx", "args": ["notes-mcp"], "env": { "NOTES_KEY": "sk-very-secret" } }\r\n\t}\r\n}'
)

CURSOR = """{"mcpServers":{"linear":{"url":"https://mcp.linear.app/sse"},"db":{"command":"uvx",\
"args":["db-mcp"],"env":{"DSN":"${env:DATABASE_URL}"}},"here":{"command":"${workspaceFolder}/run.sh"}}}"""

VSCODE = """{
    // asked once, kept by the editor
    "inputs": [{"type": "promptString", "id": "key", "description": "API key", "password": true}],
    "servers": {
        /* the two below
           are everybody's */
        "github": {
            "type": "http",
            "url": "https://api.githubcopilot.com/mcp/", // trailing words
        },
        // asks for a key, so it stays
        "keyed": {"type": "stdio", "command": "npx", "args": ["keyed"], "env": {"KEY": "${input:key}"}},
        "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}, // last, with a comma
    },
}
"""

WINDSURF = """{
  "mcpServers": {
    "remote": {
      "serverUrl": "https://mcp.example.com/mcp",
      "headers": {"Authorization": "Bearer ${env:TOKEN}"}
    },
    "choosy": {"command": "npx", "args": ["choosy"], "disabledTools": ["drop_all"]},
    "sleeping": {"command": "npx", "args": ["sleeping"], "disabled": true}
  }
}
"""

CODEX = """# my settings
model = "o4"            # the good one
notify = ["a", # inside
  "b"]

[mcp_servers.context7]  # documentation
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
startup_timeout_sec = 20

# figma has its own key
[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "eu" }

[mcp_servers.figma.tools]
note = '''
[mcp_servers.not_a_table]
'''

[profiles.fast]
model = "o4-mini"

[mcp_servers."my.tools"]
command = "/opt/my tools/run"
env = { "TOKEN" = "abc\\"def" }
enabled_tools = ["read"]   # no more

[tui]
theme = "dark"
"""

GEMINI = """{
  "theme": "Dracula",
  "mcpServers": {
    "git": { "command": "uvx", "args": ["mcp-server-git"], "cwd": "./src", "trust": false },
    "github": {
      "httpUrl": "https://api.githubcopilot.com/mcp/",
      "headers": { "Authorization": "Bearer $GITHUB_TOKEN" },
      "timeout": 5000,
      "includeTools": ["list_issues"]
    }
  }
}
"""

ZED = """// Zed settings
//
// For information on how to configure Zed, see the manual
{
  "theme": {"mode": "system"},
  "context_servers": {
    "flat": {"command": "some-command", "args": ["arg-1"], "env": {}},
    // written long ago
    "older": {
      "source": "custom",
      "command": {"path": "/usr/bin/old", "args": ["--stdio"], "env": {"A": "b"}}
    },
    "postgres-context-server": {"settings": {"database_url": "postgresql://localhost"}}, // an extension
    "remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer secret-token"}}
  },
  "vim_mode": true
}
"""

HERMES = """# Hermes
model:
  provider: custom   # mine

mcp_servers:
  # files of the project
  project_fs:
    command: "npx"
    args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/project"]

  github:
    command: npx
    args:
      - -y
      - "@modelcontextprotocol/server-github"
    env:
      GITHUB_PERSONAL_ACCESS_TOKEN: ${GITHUB_TOKEN}
    tools:
      include: [list_issues, create_issue]   # no more than these
  idle: {command: idle, enabled: false}
  # after everything
  remote_api:
    url: "https://mcp.example.com/mcp"
    headers:
      Authorization: "Bearer abc123"

terminal:
  backend: local
"""

MCP_JSON = """{
  "mcpServers": {
    "shared": {"type": "http", "url": "https://example.com/mcp"},
    "tool": {"command": "./tool", "args": []}
  }
}
"""

SAMPLES = (
    Sample(client="claude-code", path=".claude.json", text=CLAUDE_CODE, moved=("playwright", "api")),
    Sample(
        client="claude-desktop",
        path=".config/Claude/claude_desktop_config.json",
        text=CLAUDE_DESKTOP,
        moved=("files", "notes"),
    ),
    Sample(client="cursor", path=".cursor/mcp.json", text=CURSOR, moved=("linear", "db"), staying=("here",)),
    Sample(
        client="vscode", path=".config/Code/User/mcp.json", text=VSCODE, moved=("github", "memory"), staying=("keyed",)
    ),
    Sample(
        client="windsurf",
        path=".codeium/windsurf/mcp_config.json",
        text=WINDSURF,
        moved=("remote", "choosy"),
        staying=("sleeping",),
    ),
    Sample(client="codex", path=".codex/config.toml", text=CODEX, moved=("context7", "figma", "my.tools")),
    Sample(client="gemini", path=".gemini/settings.json", text=GEMINI, moved=("git", "github")),
    Sample(
        client="zed",
        path=".config/zed/settings.json",
        text=ZED,
        moved=("flat", "older", "remote"),
        staying=("postgres-context-server",),
    ),
    Sample(
        client="hermes",
        path=".hermes/config.yaml",
        text=HERMES,
        moved=("project_fs", "github", "remote_api"),
        staying=("idle",),
    ),
    Sample(client="mcp-json", path="project/.mcp.json", text=MCP_JSON, moved=("shared", "tool")),
)
