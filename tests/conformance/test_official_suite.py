"""The official conformance suite against the gateway, with our conformance upstream behind it.

The suite is installed once into an untracked directory, at one exact version. Every scored scenario passes, in both
eras of the protocol, with the gate on and off, over a server that is a process and one that is a web address; what does
not pass is listed in `expected_failures.yaml`, and nothing else.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import yaml
from tests.node_programs import installed, node

VERSION = "0.2.0-alpha.12"
ROOT = Path(__file__).parents[2]
UPSTREAM = ROOT / "tests" / "fakes" / "conformance_server.py"
EXPECTED = yaml.safe_load((Path(__file__).parent / "expected_failures.yaml").read_text())

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


@pytest.fixture(scope="module")
def suite() -> Path:
    """The suite's program."""
    package = "@modelcontextprotocol/conformance"
    return installed("conformance", package, VERSION, f"{package}/dist/index.js", called="CONFORMANCE")


@contextmanager
def running(command: list[str], pattern: str) -> Generator[str]:
    """A program that serves; gives what it prints about its address, and ends it afterwards."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    seen: list[str] = []
    try:
        for line in process.stdout:
            seen.append(line)
            found = re.search(pattern, line)
            if found:
                drain = threading.Thread(target=_drain, args=(process.stdout,), daemon=True)
                drain.start()
                yield found.group()
                process.send_signal(signal.SIGTERM)
                assert process.wait() in (0, -signal.SIGTERM)
                drain.join()
                return
        raise AssertionError(f"it never served: {''.join(seen)}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def _drain(stream: IO[str]) -> None:
    for _ in stream:
        pass


@contextmanager
def gateway(tmp_path: Path, *, gate: str, over: str) -> Generator[str]:
    """The gateway in front of the conformance upstream."""
    config = tmp_path / "toolcrib.yaml"

    def settings(entry: dict[str, object]) -> None:
        # One tool must be listed for its schema to be seen; with the gate on that is what `always_visible` is for.
        profile = {"always_visible": ["json_schema_2020_12_tool"]} if gate == "on" else {}
        servers = {"upstream": {**entry, "prefix": ""}}
        content = {"tools": {"tool_search": {"enabled": gate}}, "mcpServers": servers, "profiles": {"default": profile}}
        config.write_text(yaml.safe_dump(content))

    serve = [sys.executable, "-m", "toolcrib", "serve", "--config", str(config)]
    serve += ["--http", "127.0.0.1:0", "--allow-unauthenticated"]
    address = r"http://127\.0\.0\.1:\d+/mcp"
    if over == "stdio":
        settings({"command": sys.executable, "args": [str(UPSTREAM), "--stdio"], "era": "mirror"})
        with running(serve, address) as url:
            yield url
        return
    with running([sys.executable, str(UPSTREAM), "--http", "127.0.0.1:0"], address) as upstream:
        settings({"url": upstream})
        with running(serve, address) as url:
            yield url


def scored(suite: Path, era: str) -> set[str]:
    requirements = yaml.safe_load((suite.parents[1] / "requirements" / f"{era}.yaml").read_text())
    return set(requirements["server"])


@pytest.mark.requirement("X16", "X18")
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(("gate", "over"), [("off", "stdio"), ("on", "stdio"), ("off", "http"), ("on", "http")])
def test_every_scored_scenario_passes_through_the_gateway(suite: Path, tmp_path: Path, era: str, gate: str, over: str):
    with gateway(tmp_path, gate=gate, over=over) as url:
        command = [str(node()), str(suite), "server", "--url", url, "--requirements", era]
        done = subprocess.run(
            [*command, "-o", str(tmp_path / "out")],
            capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    verdicts = {name: mark == "✓" for mark, name in re.findall(r"^([✓✗]) ([\w-]+):", summary, re.MULTILINE)}
    required = scored(suite, era)
    assert len(required) == (30 if era == "2025-11-25" else 37)
    assert required <= set(verdicts), done.stdout[-2_000:] + done.stderr[-2_000:]
    failed = {name for name, passed in verdicts.items() if not passed}
    assert failed & required == set(EXPECTED["scored"])
    assert failed - required == {name for name in EXPECTED["not_scored"] if name in verdicts}
