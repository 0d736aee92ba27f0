"""Where peers of the gateway are, if they are installed: `make bench` installs them at locked versions."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUPERGATEWAY = ROOT / ".make" / "supergateway" / "node_modules" / "supergateway"
MCP_PROXY = ROOT / ".venv-bench-proxy" / "bin" / "mcp-proxy"
_INSIDE = "TOOLCRIB_BENCH_ISOLATED"
_ENTER = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def has(package: str) -> bool:
    """Whether a package is installed here."""
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def supergateway() -> list[str] | None:
    """The npm package `supergateway`, if it and a Node are here."""
    program, node = SUPERGATEWAY / "dist" / "index.js", shutil.which("node")
    return [node, str(program)] if node and program.exists() else None


def mcp_proxy() -> list[str] | None:
    """The PyPI package `mcp-proxy`, which needs an older SDK and so an environment of its own."""
    return [str(MCP_PROXY)] if MCP_PROXY.exists() else None


def is_isolated() -> bool:
    """Whether this process sees nothing but loopback."""
    return os.environ.get(_INSIDE) == "1"


def run_isolated(module: str, *arguments: str) -> str:
    """What a module prints, run where there is no network but loopback; here, if that cannot be had."""
    command = [sys.executable, "-m", module, *arguments]
    can = shutil.which("unshare") and not subprocess.run([*_ENTER, "true"], capture_output=True, check=False).returncode
    isolated = {_INSIDE: "1"} if can else {}
    done = subprocess.run(
        [*(_ENTER if can else []), *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **isolated},
        cwd=ROOT,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {done.returncode}")
    return done.stdout
