"""From a person's own configuration through audit, install and the gateway, and back to the byte."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import Terminal

SERVER = """
import json, sys

TOOLS = [
    {"name": f"do_{n}", "description": f"Does thing number {n}.", "inputSchema": {"type": "object", "properties": {}}}
    for n in range(int(sys.argv[1]))
]
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "sample", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in RESULTS:
        answer["result"] = RESULTS[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"""


class Client:
    """Speaks to the gateway as an MCP client does, over its entry in the client's own file."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [entry["command"], *entry["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.heard: list[str] = []

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        self.heard.append(message.get("method", ""))
        return message

    def ask(self, id: int, method: str, **params: Any) -> dict[str, Any]:
        self.send(id=id, method=method, params=params)
        while (answer := self.read()).get("id") != id:
            pass
        return answer["result"]

    def tools(self) -> list[str]:
        """All tools, once both servers have come up."""
        self.ask(
            1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
        )
        self.send(method="notifications/initialized")
        number = 2
        while len(names := [tool["name"] for tool in self.ask(number, "tools/list")["tools"]]) < 5:
            number += 1
            while "notifications/tools/list_changed" not in self.heard:
                self.read()
            self.heard.clear()
        return names

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=8)


@pytest.mark.requirement("X23", "X24")
def test_audit_install_serve_and_uninstall_with_real_servers(home: Path, terminal: Terminal) -> None:
    script = home / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    servers = {
        "three": {"command": sys.executable, "args": [str(script), "3"]},
        "two": {"command": sys.executable, "args": [str(script), "2"]},
    }
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    original = json.dumps({"mcpServers": servers}, indent=1).encode()
    path.write_bytes(original)

    audit = terminal.run("audit", "--yes", "--json")
    assert audit.code == 0, audit.err
    assert {row["name"]: (row["status"], row["tools"]) for row in audit.json["servers"]} == {
        "three": ("ok", 3),
        "two": ("ok", 2),
    }

    assert terminal.run("install", "cursor").code == 0
    entries = json.loads(path.read_bytes())["mcpServers"]
    client = Client(entries["toolcrib"])
    try:
        assert sorted(client.tools()) == ["three__do_0", "three__do_1", "three__do_2", "two__do_0", "two__do_1"]
    finally:
        client.close()
    assert terminal.run("audit", "--yes", "--json").json["total_tokens"] == audit.json["total_tokens"]

    assert terminal.run("uninstall", "cursor").code == 0
    assert path.read_bytes() == original


@pytest.mark.requirement("X23")
def test_a_server_that_does_not_start_says_why_and_hides_no_other(home: Path, terminal: Terminal) -> None:
    script = home / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    config = home / "mine.json"
    servers = {
        "good": {"command": sys.executable, "args": [str(script), "1"]},
        "missing": {"command": "no-such-program-here"},
        "unset": {"command": sys.executable, "env": {"KEY": "${A_VARIABLE_THAT_IS_NOT_SET}"}},
    }
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    done = terminal.run("audit", "--config", str(config), "--json")
    assert done.code == 0, done.err
    rows = {row["name"]: row for row in done.json["servers"]}
    assert rows["good"]["status"] == "ok"
    assert "no-such-program-here" in rows["missing"]["error"]
    assert "A_VARIABLE_THAT_IS_NOT_SET" in rows["unset"]["error"]
