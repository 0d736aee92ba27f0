"""Reads the invented servers of `servers.txt.gz`, which were written for this project.

Each begins with `# name`. A line for each of its tools follows, `name: description`, or the name alone; then requests:
`+ 2,3 | text` is met by the second and the third tool, `- text` by none of them. `- text => name: description` names a
tool that would meet it, had the server one. An empty line ends a server.
"""

import gzip
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parent / "servers.txt.gz"

Tool = tuple[str, str]
"""A name and a description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Some tools, and what is asked of them."""

    name: str
    tools: list[Tool]
    """What it has, and then what it lacks: a tool for each request that is not met, where one was written."""
    requests: list[tuple[str, list[int]]]
    """Texts, and the places of the tools that meet each; none, if nobody wrote one."""


def invented_servers(path: Path = _FILE) -> list[Server]:
    """All of them, in the order of the file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [_server(block.split("\n")) for block in file.read().strip().split("\n\n")]


def _server(lines: list[str]) -> Server:
    first, *others = lines
    tools: list[Tool] = [_tool(line) for line in others if not line.startswith(("+ ", "- "))]
    requests: list[tuple[str, list[int]]] = []
    for line in others:
        if line.startswith("+ "):
            places, text = line.removeprefix("+ ").split(" | ", 1)
            requests.append((text, [int(place) - 1 for place in places.split(",")]))
        elif line.startswith("- "):
            text, _, lacked = line.removeprefix("- ").partition(" => ")
            requests.append((text, [len(tools)] if lacked else []))
            tools += [_tool(lacked)] if lacked else []
    return Server(name=first.removeprefix("# "), tools=tools, requests=requests)


def _tool(line: str) -> Tool:
    name, _, description = line.partition(": ")
    return name, description
