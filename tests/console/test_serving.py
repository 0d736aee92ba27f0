"""The console as its users start it: beside a gateway over HTTP, and beside one on pipes."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.in_front.gateways import command

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip


def post(address: str, body: dict[str, Any], **headers: str) -> tuple[Any, str]:
    """The answer to a page's request, and its cookie."""
    origin = "/".join(address.split("/")[:3])
    fields = {"content-type": "application/json", "origin": origin, **headers}
    request = urllib.request.Request(address, json.dumps(body).encode(), fields)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer), str(answer.headers.get("set-cookie", "")).partition(";")[0]


@contextmanager
def started(directory: Path, *options: str, stderr: int = subprocess.PIPE) -> Generator["subprocess.Popen[bytes]"]:
    """A gateway, ended as a person ends it."""
    home = {**os.environ, "XDG_CONFIG_HOME": str(directory), "XDG_STATE_HOME": str(directory)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
    process = subprocess.Popen([*command(directory), *options], env=home, **pipes)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.mark.requirement("X27")
def test_somebody_at_a_terminal_gets_a_link_that_signs_in(tmp_path: Path):
    ours, theirs = os.openpty()
    try:
        options = ("--http", "127.0.0.1:0", "--allow-unauthenticated", "--console")
        with started(tmp_path, *options, stderr=theirs), os.fdopen(os.dup(ours), "rb") as terminal:
            text = b""
            while (found := re.search(rb"(http://127\.0\.0\.1:\d+/console/)#(\S+)\r\n", text)) is None:
                text += terminal.readline()
            address, code = found[1].decode(), found[2].decode()
            signed, cookie = post(f"{address}api/sign-in", {"secret": code})
            found, _ = post(
                f"{address}api/search", {"query": "echo"}, cookie=cookie, **{"x-toolcrib-console": signed["token"]}
            )
            assert signed["name"] == "local" and "total_available" in found
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.requirement("X27")
def test_a_gateway_on_pipes_has_its_console_on_a_port_beside_them_and_a_log_gets_no_link(tmp_path: Path):
    with started(tmp_path, "--console") as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        told = b""
        while b"token create NAME --console" not in told:
            told += process.stderr.readline()
        assert b"#" not in told
        address = re.search(rb"http://127\.0\.0\.1:\d+/console/", told)
        assert address is not None
        with urllib.request.urlopen(address[0].decode(), timeout=30) as answer:
            assert b"Toolcrib console" in answer.read()
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "toolcrib"


@pytest.mark.requirement("X27", "F5")
def test_a_port_that_is_taken_costs_the_console_and_not_the_tools(tmp_path: Path):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        started(tmp_path, "--console-at", f"127.0.0.1:{taken.getsockname()[1]}") as process,
    ):
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        told = b""
        while b"the console is not served" not in told:
            told += process.stderr.readline()
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
    wide = subprocess.run([*command(tmp_path), "--console-at", "0.0.0.0:0"], capture_output=True, text=True, timeout=60)
    assert (wide.returncode, "--public" in wide.stderr) == (2, True)
