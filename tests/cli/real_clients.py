"""Ten clients with a file in their own format that names one real server, and how each of them starts what it names."""

import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from toolcrib.jsonc import read_jsonc

SERVER_NAME = "clock"
BRACES = r"\$\{(\w+)\}"
ENV_BRACES = r"\$\{env:(\w+)\}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealClient:
    name: str
    path: str
    """Below the home directory, on Linux."""
    text: str
    """`PYTHON` stands for the interpreter that the server runs in."""
    keys: tuple[str, ...]
    env: str
    """How its file gives the server the time zone: `reference`, or the `value` itself."""
    reference: str = BRACES
    """How it refers to a variable."""
    sanitises: bool = True
    """Whether it passes on a few harmless variables only."""

    def write(self, home: Path) -> Path:
        path = home / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        # JSON, TOML and YAML agree on how to write a path in quotes.
        path.write_bytes(self.text.replace('"PYTHON"', json.dumps(sys.executable)).encode())
        return path

    def entry(self, home: Path) -> dict[str, Any]:
        """What the file now says about the gateway, read as the client reads it."""
        path = home / self.path
        text = path.read_text(encoding="utf-8")
        data: Any
        if path.suffix == ".toml":
            data = tomllib.loads(text)
        else:
            data = yaml.safe_load(text) if path.suffix == ".yaml" else read_jsonc(text).data()
        for key in self.keys:
            data = data[key]
        assert list(data) == ["toolcrib"]
        return data["toolcrib"]


CLIENTS = (
    RealClient(
        name="claude-code",
        path=".claude.json",
        text="""{
  "numStartups": 7,
  "mcpServers": {
    "clock": {
      "type": "stdio",
      "command": "PYTHON",
      "args": ["-m", "mcp_server_time"],
      "env": {"TZ": "${MY_ZONE}"}
    }
  },
  "projects": {}
}
""",
        keys=("mcpServers",),
        env="reference",
    ),
    RealClient(
        name="claude-desktop",
        path=".config/Claude/claude_desktop_config.json",
        text='{\r\n\t"mcpServers": {\r\n\t\t"clock": {\r\n\t\t\t"command": "PYTHON",\r\n\t\t\t"args": ["-m", '
        '"mcp_server_time"],\r\n\t\t\t"env": {"TZ": "Asia/Tokyo"}\r\n\t\t}\r\n\t}\r\n}',
        keys=("mcpServers",),
        env="value",
    ),
    RealClient(
        name="cursor",
        path=".cursor/mcp.json",
        text='{"mcpServers":{"clock":{"command":"PYTHON","args":["-m","mcp_server_time"],"env":{"TZ":"${env:MY_ZONE}"}}}}',
        keys=("mcpServers",),
        env="reference",
        reference=ENV_BRACES,
    ),
    RealClient(
        name="vscode",
        path=".config/Code/User/mcp.json",
        text="""{
    // what the editor asks for
    "inputs": [],
    "servers": {
        "clock": {
            "type": "stdio",
            "command": "PYTHON",
            "args": ["-m", "mcp_server_time"],
            "env": {"TZ": "${env:MY_ZONE}"}, // of this machine
        },
    },
}
""",
        keys=("servers",),
        env="reference",
        reference=ENV_BRACES,
    ),
    RealClient(
        name="windsurf",
        path=".codeium/windsurf/mcp_config.json",
        text="""{
  "mcpServers": {
    "clock": {
      "command": "PYTHON",
      "args": ["-m", "mcp_server_time"],
      "env": {"TZ": "${env:MY_ZONE}"}
    }
  }
}
""",
        keys=("mcpServers",),
        env="reference",
        reference=ENV_BRACES,
    ),
    RealClient(
        name="codex",
        path=".codex/config.toml",
        text="""model = "gpt-5" # for now

[mcp_servers.clock]
command = "PYTHON"
args = ["-m", "mcp_server_time", "--local-timezone", "Asia/Tokyo"]
env_vars = ["MY_ZONE"] # passed on by name
startup_timeout_sec = 20

[tui]
theme = "dark"
""",
        keys=("mcp_servers",),
        env="name",
    ),
    RealClient(
        name="gemini",
        path=".gemini/settings.json",
        text="""{
  "theme": "Dracula", // and no other
  "mcpServers": {
    "clock": { "command": "PYTHON", "args": ["-m", "mcp_server_time"], "env": { "TZ": "$MY_ZONE" }, "trust": false }
  }
}
""",
        keys=("mcpServers",),
        env="reference",
    ),
    RealClient(
        name="zed",
        path=".config/zed/settings.json",
        text="""// Zed settings
{
  "vim_mode": true,
  "context_servers": {
    "clock": {
      "source": "custom",
      "command": {"path": "PYTHON", "args": ["-m", "mcp_server_time"], "env": {"TZ": "Asia/Tokyo"}}
    }
  }
}
""",
        keys=("context_servers",),
        env="value",
        sanitises=False,
    ),
    RealClient(
        name="hermes",
        path=".hermes/config.yaml",
        text="""model:
  provider: custom   # mine

mcp_servers:
  # the time, anywhere
  clock:
    command: "PYTHON"
    args:
      - -m
      - mcp_server_time
    env:
      TZ: ${MY_ZONE}

terminal:
  backend: local
""",
        keys=("mcp_servers",),
        env="reference",
    ),
    RealClient(
        name="mcp-json",
        path="project/.mcp.json",
        text="""{
  "mcpServers": {
    "clock": {"command": "PYTHON", "args": ["-m", "mcp_server_time"], "env": {"TZ": "${MY_ZONE}"}}
  }
}
""",
        keys=("mcpServers",),
        env="reference",
    ),
)
