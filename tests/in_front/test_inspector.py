"""The official Inspector's command line, at one exact version, in a network namespace with nothing but loopback.

It is installed once into an untracked directory; where that or a namespace cannot be had, the test says so.
"""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from tests.node_programs import give_up, installed, node

VERSION = "2.12.0"
ROOT = Path(__file__).parents[2]
ALONE = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


@pytest.fixture
def inspector() -> Path:
    """Its program, where there is a network of its own to run it in."""
    try:
        alone = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False).returncode == 0
    except FileNotFoundError:
        alone = False
    if not alone:
        give_up("INSPECTOR", "a network namespace cannot be had here")
    package = "@modelcontextprotocol/inspector"
    return installed("inspector", package, VERSION, ".bin/mcp-inspector", called="INSPECTOR")


@pytest.mark.requirement("X16")
def test_the_official_inspector_lists_and_calls_over_pipes_and_http_in_both_eras(inspector: Path, tmp_path: Path):
    command = [sys.executable, "-m", "tests.in_front.inspector", str(node()), str(inspector), str(tmp_path)]
    done = subprocess.run([*ALONE, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    steps = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert len(steps) == 8
    for step in steps:
        answer = step["answer"]
        if step["step"] == "tools/list":
            assert [tool["name"] for tool in answer["tools"]] == ["one__echo"], step
        else:
            assert answer["content"] == [{"type": "text", "text": "hello"}], step
