"""A gateway as its users start it: a process, over pipes or HTTP, in front of a real process."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import orjson

UPSTREAM = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"


def command(directory: Path, *, gate: str = "on") -> list[str]:
    """The command that starts a gateway on standard input and output."""
    entry = {"command": sys.executable, "args": [str(UPSTREAM), "--mode", "ok"]}
    # The first list waits for the server however busy the machine is.
    content = {
        "tools": {"tool_search": {"enabled": gate}},
        "mcpServers": {"one": entry},
        "gateway": {"startup_wait": 120},
    }
    config = directory / "servers.json"
    config.write_bytes(orjson.dumps(content))
    return [sys.executable, "-m", "toolcrib", "serve", "--config", str(config)]


@contextmanager
def over_http(directory: Path, *, gate: str = "on") -> Generator[str]:
    """A gateway over HTTP; gives its address."""
    process = subprocess.Popen(
        [*command(directory, gate=gate), "--http", "127.0.0.1:0", "--allow-unauthenticated"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
            if found:
                drain = threading.Thread(target=process.stderr.read, daemon=True)
                drain.start()
                yield found.group()
                process.send_signal(signal.SIGTERM)
                assert process.wait() == 0
                drain.join()
                return
        raise AssertionError("the gateway never served")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()
