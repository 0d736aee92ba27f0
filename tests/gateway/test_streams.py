"""What stands on the gateway's standard input and output, seen from outside."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.gateway.clients import META

BAD = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
CALL = {"name": "one__echo", "arguments": {"message": "hi"}}


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    config = tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": [str(BAD), "--mode", "ok"]}
    config.write_bytes(orjson.dumps({"mcpServers": {"one": entry}}))
    return [sys.executable, "-m", "toolcrib", "serve", "--config", str(config)]


def lines(*requests: tuple[str, object]) -> bytes:
    """The requests as a client writes them, numbered from 1."""
    return b"".join(
        orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"
        for number, (method, params) in enumerate(requests, 1)
    )


def results(output: bytes) -> dict[int, Any]:
    answers = [orjson.loads(line) for line in output.splitlines()]
    return {answer["id"]: answer["result"] for answer in answers if "id" in answer}


def test_requests_in_a_file_are_answered_in_a_file(command: list[str], tmp_path: Path):
    (tmp_path / "requests").write_bytes(lines(("initialize", HELLO), ("tools/list", {}), ("tools/call", CALL)))
    with (tmp_path / "requests").open("rb") as given, (tmp_path / "answers").open("wb") as taken:
        ended = subprocess.run(command, stdin=given, stdout=taken, stderr=subprocess.PIPE, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    answers = results((tmp_path / "answers").read_bytes())
    assert answers[1]["protocolVersion"] == "2025-11-25"
    assert "one__echo" in {tool["name"] for tool in answers[2]["tools"]}
    assert answers[3]["content"][0]["text"] == "hi"


def test_without_any_input_the_gateway_ends_well(command: list[str]):
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"")


def test_a_client_that_closes_its_end_still_gets_its_answers(command: list[str]):
    asked = lines(("initialize", HELLO), ("tools/list", {}), ("tools/call", CALL))
    ended = subprocess.run(command, input=asked, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    assert results(ended.stdout)[3]["content"][0]["text"] == "hi"


def test_a_subscription_is_answered_when_its_client_closes_its_end(command: list[str]):
    listening = {"notifications": {"toolsListChanged": True}, "_meta": META}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as gateway:
        assert gateway.stdin is not None
        assert gateway.stdout is not None
        gateway.stdin.write(lines(("subscriptions/listen", listening)))
        gateway.stdin.flush()
        assert b"subscriptions/acknowledged" in gateway.stdout.readline()
        gateway.stdin.close()
        rest = gateway.stdout.read()
    assert results(rest)[1]["resultType"] == "complete"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_somebody_at_a_terminal_is_told_what_is_waited_for(command: list[str]):
    import pty

    theirs, ours = pty.openpty()
    try:
        with subprocess.Popen(command, stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as gateway:
            assert gateway.stderr is not None
            told = next(line for line in gateway.stderr if b"waiting for an MCP client" in line)
            gateway.send_signal(signal.SIGINT)
            rest = gateway.stderr.read()
        assert b"--http HOST:PORT" in told
        assert (gateway.returncode, b"Traceback" in rest) == (0, False)
    finally:
        os.close(theirs)
        os.close(ours)
