"""The gateway as a process: what is left when it is killed, and how it ends when it is asked to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.sources.test_mcp_stdio import BAD, _is_zombie

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"),
]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Running:
    """A gateway on standard input and output."""

    def __init__(self, tmp_path: Path, **modes: str) -> None:
        servers = {
            name: {"command": sys.executable, "args": [str(BAD), "--mode", mode], "env": {"CHAOS_RUN": str(tmp_path)}}
            for name, mode in modes.items()
        }
        config = tmp_path / "servers.json"
        # The first list waits for all of them however busy the machine is.
        config.write_bytes(orjson.dumps({"mcpServers": servers, "gateway": {"startup_wait": 120}}))
        self.mark = f"CHAOS_RUN={tmp_path}".encode()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "toolcrib", "serve", "--config", str(config)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.ask("initialize", **INITIALIZE)["result"]["serverInfo"]["name"] == "toolcrib"

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")
        self.process.stdin.flush()

    def read(self, identifier: object) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = orjson.loads(line)
            if message.get("id") == identifier:
                return message
        raise AssertionError("the gateway ended")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.send(id=method, method=method, params=params)
        return self.read(method)

    def survivors(self) -> list[int]:
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark in (entry / "environ").read_bytes().split(b"\0") and not _is_zombie(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        return code


@pytest.mark.requirement("H4")
def test_killing_the_gateway_leaves_no_server_behind(tmp_path: Path):
    gateway = Running(tmp_path, plain="ok", child="fork_child", stubborn="ignore_sigterm")
    assert len(gateway.ask("tools/list")["result"]["tools"]) == 3
    gateway.ask("tools/call", name="child__echo", arguments={"message": "x"})
    # Who has only just begun has no variables to be known by yet.
    while len(gateway.survivors()) < 4:
        time.sleep(0.01)
    os.kill(gateway.process.pid, signal.SIGKILL)
    gateway.end()
    deadline = time.monotonic() + 60
    while gateway.survivors() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not gateway.survivors()


@pytest.mark.requirement("K12")
def test_a_polite_signal_lets_calls_end_and_reaps_the_servers(tmp_path: Path):
    gateway = Running(tmp_path, slow="slow")
    gateway.ask("tools/list")
    gateway.send(id="call", method="tools/call", params={"name": "slow__echo", "arguments": {"message": "still here"}})
    gateway.ask("ping")
    gateway.process.send_signal(signal.SIGTERM)
    assert "still here" in str(gateway.read("call"))
    assert gateway.end() == 0
    assert not gateway.survivors()


@pytest.mark.requirement("K1", "K3", "H6", "H7")
def test_bad_neighbours_do_not_disturb_a_good_server(tmp_path: Path):
    modes = {"good": "ok", "hangs": "hang_call", "dies": "exit_on_call", "floods": "stderr_flood",
             "garbles": "garbage_stdout", "endless": "endless_line", "mutates": "mutate_tools"}  # fmt: skip
    gateway = Running(tmp_path, **modes)
    gateway.ask("tools/list")
    for name in modes:
        params = {"name": f"{name}__echo", "arguments": {"message": name}}
        gateway.send(id=name, method="tools/call", params=params)
    for number in range(100):
        params = {"name": "good__echo", "arguments": {"message": f"nonce {number}"}}
        gateway.send(id=number, method="tools/call", params=params)
        assert gateway.read(number)["result"]["content"][0]["text"] == f"nonce {number}"
    assert gateway.end() == 0
    assert not gateway.survivors()
