"""The official Inspector's command line in front of the gateway: lists and calls, over pipes and over HTTP.

    python -m tests.in_front.inspector NODE PROGRAM DIRECTORY

Prints one JSON object per step. Run it where there is nothing but loopback: what comes from a registry may call home.
"""

import subprocess
import sys
from pathlib import Path

import orjson
from tests.in_front.gateways import command, over_http

CALL = ["--method", "tools/call", "--tool-name", "one__echo", "--tool-arg", "message=hello"]
LIST = ["--method", "tools/list"]


def inspect(node: str, program: str, *arguments: str) -> object:
    """What the Inspector prints."""
    done = subprocess.run(
        [node, program, "--cli", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        return {"failed": done.returncode, "said": (done.stderr or done.stdout)[-500:]}
    return orjson.loads(done.stdout)


def main(node: str, program: str, directory: Path) -> None:
    """Both transports, both eras, both steps."""
    # The Inspector would take our options for its own: the command goes into a file.
    script = directory / "serve.py"
    argv = command(directory, gate="off")
    script.write_text(f"import os\nos.execv({argv[0]!r}, {argv!r})\n")
    for era in ("legacy", "modern"):
        chosen = ["--protocol-era", era]
        for step in (LIST, CALL):
            piped = inspect(node, program, sys.executable, str(script), *chosen, *step)
            print(orjson.dumps({"over": "stdio", "era": era, "step": step[1], "answer": piped}).decode())
        with over_http(directory, gate="off") as url:
            for step in (LIST, CALL):
                answer = inspect(node, program, url, "--transport", "http", *chosen, *step)
                print(orjson.dumps({"over": "http", "era": era, "step": step[1], "answer": answer}).decode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
