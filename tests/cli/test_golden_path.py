"""From a person's own configuration through audit, install and the gateway, and back to the byte.

Ten clients, each with a file in its own format that names a real server. After `install` the gateway is started as
that client would start it: with what its file says now, from another directory, with hardly any variables.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.real_clients import CLIENTS, SERVER_NAME, RealClient
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

    def __init__(self, entry: dict[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [entry["command"], *entry["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environ,
            cwd="/",
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

    def tools(self, count: int) -> list[dict[str, Any]]:
        """All tools, once as many as these have come up."""
        self.ask(
            1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
        )
        self.send(method="notifications/initialized")
        number = 2
        while len(tools := self.ask(number, "tools/list")["tools"]) < count:
            number += 1
            while "notifications/tools/list_changed" not in self.heard:
                self.read()
            self.heard.clear()
        return tools

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.ask(99, "tools/call", name=tool, arguments=arguments)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


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
        assert sorted(tool["name"] for tool in client.tools(5)) == [
            "three__do_0",
            "three__do_1",
            "three__do_2",
            "two__do_0",
            "two__do_1",
        ]
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
        "good": {"command": sys.executable, "args": [str(script), "3"], "exclude": ["do_0"]},
        "missing": {"command": "no-such-program-here"},
        "unset": {"command": sys.executable, "env": {"KEY": "${A_VARIABLE_THAT_IS_NOT_SET}"}},
    }
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    done = terminal.run("audit", "--config", str(config), "--json")
    assert done.code == 0, done.err
    rows = {row["name"]: row for row in done.json["servers"]}
    assert (rows["good"]["status"], rows["good"]["tools"]) == ("ok", 2)
    assert "no-such-program-here" in rows["missing"]["error"]
    assert "A_VARIABLE_THAT_IS_NOT_SET" in rows["unset"]["error"]


ZONE = "Asia/Tokyo"
by_client = pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])


@contextmanager
def started(client: RealClient, home: Path) -> Generator[Client]:
    """The gateway as this client starts it."""
    entry = client.entry(home)
    passed = {"HOME": str(home), "PATH": os.environ["PATH"]}
    if not client.sanitises:
        passed["MY_ZONE"] = ZONE
    for name in entry.get("env_vars", ()):
        passed[name] = os.environ[name]
    for name, value in entry.get("env", {}).items():
        passed[name] = re.sub(client.reference, lambda match: os.environ[match[1]], value)
    speaker = Client(entry, passed)
    try:
        yield speaker
    finally:
        speaker.close()


@pytest.mark.requirement("X23")
def test_audit_finds_the_server_of_every_client_and_starts_it_once(
    home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_ZONE", ZONE)
    for client in CLIENTS:
        client.write(home)
    audit = terminal.run("audit", "--yes", "--json")
    assert audit.code == 0, audit.err
    # Two ways to name the time zone are two servers; ten clients are ten that pay for one.
    assert {row["status"] for row in audit.json["servers"]} == {"ok"}
    assert len(audit.json["servers"]) == len({client.env for client in CLIENTS})
    paying = {row["client"]: row["servers"] for row in audit.json["clients"]}
    # `.mcp.json` is one of Claude Code's files.
    assert set(paying) == {client.name for client in CLIENTS} - {"mcp-json"}


@by_client
@pytest.mark.requirement("X24")
def test_the_gateway_serves_through_the_file_of_every_client(
    home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, client: RealClient
) -> None:
    monkeypatch.setenv("MY_ZONE", ZONE)
    path = client.write(home)
    original = path.read_bytes()
    installed = terminal.run("install", client.name)
    assert installed.code == 0, installed.err
    with started(client, home) as gateway:
        tools = {tool["name"]: tool for tool in gateway.tools(2)}
        assert set(tools) == {f"{SERVER_NAME}__get_current_time", f"{SERVER_NAME}__convert_time"}
        # The server has its variable, through the client and the gateway.
        assert ZONE in json.dumps(tools[f"{SERVER_NAME}__get_current_time"])
        result = gateway.call(f"{SERVER_NAME}__convert_time", source_timezone="UTC", time="12:00", target_timezone=ZONE)
        assert not result.get("isError")
        assert result["structuredContent"]["time_difference"] == "+9.0h"
    removed = terminal.run("uninstall", client.name)
    assert removed.code == 0, removed.err
    assert path.read_bytes() == original
    assert sorted(item.name for item in path.parent.iterdir() if item.is_file()) == [path.name]


@pytest.mark.requirement("X24", "S14")
def test_a_model_with_a_small_window_gets_three_tools_and_reaches_all_others_through_them(
    home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_ZONE", ZONE)
    codex = next(client for client in CLIENTS if client.name == "codex")
    codex.write(home)
    assert terminal.run("install", "codex", "--context", "2000").code == 0
    with started(codex, home) as gateway:
        assert [tool["name"] for tool in gateway.tools(3)] == ["tool_search", "tool_describe", "tool_call"]
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": ZONE}
        result = gateway.call("tool_call", name=f"{SERVER_NAME}__convert_time", arguments=arguments)
        assert result["structuredContent"]["time_difference"] == "+9.0h"
