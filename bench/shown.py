"""Makes the answers and outputs that pages show anew.

    python -m bench.shown [PAGE ...]

A block of a page is made by running something if a comment above it says so. `<!-- answer: corpus CALL -->` stands above
what a model reads when it sends CALL, as JSON, over the tools of `corpus/`; with `examples` over the functions of
`examples/stdlib_toolsets.py`. `<!-- output -->` stands above a command and what it prints. Without a page all are made anew.
"""

import argparse
import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from examples.stdlib_toolsets import stdlib_toolsets

from toolcrib import Crib
from toolcrib.cli.cribs import open_crib
from toolcrib.cli.progress import wait_for_vectors
from toolcrib.config import build_settings
from toolcrib.definitions import Json, JsonObject

ROOT = Path(__file__).parents[1]
ANSWER = re.compile(r"(<!-- answer: (\w+) (\{[^\n]*\}) -->\n```json\n)(.*?)```", re.DOTALL)
OUTPUT = re.compile(r"(<!-- output -->\n```console\n\$ (toolcrib [^\n]*)\n)(.*?)```", re.DOTALL)
WIDTH = 115
"""Columns of a line of JSON, if it can be broken."""


def pages() -> list[Path]:
    """The pages with something to make anew."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in every}
    return [page for page, text in texts.items() if ANSWER.search(text) or OUTPUT.search(text)]


def renewed(text: str) -> str:
    """A page with what it shows made anew."""
    text = ANSWER.sub(lambda found: f"{found[1]}{laid_out(answer(found[2], json.loads(found[3])))}\n```", text)
    return OUTPUT.sub(lambda found: f"{found[1]}{output(found[2]).rstrip()}\n```", text)


@cache
def crib_of(tools: str) -> Crib:
    if tools == "corpus":
        return open_crib(tools=ROOT / "corpus" / "tools.jsonl", config=None, flags={"tools.tool_search.enabled": "on"})
    return Crib(*stdlib_toolsets(), settings=build_settings({"tools": {"tool_search": {"enabled": "on"}}}))


def answer(tools: str, call: JsonObject) -> str:
    """What a model reads of its call: of `tool_call`, if it names a tool, of `tool_search` otherwise."""
    crib = crib_of(tools)
    session = crib.session(model_context=200_000)
    wait_for_vectors(crib.discovery.prepare(session.catalog))
    name = "tool_call" if "name" in call else "tool_search"
    asked = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(call)}}
    (given,) = asyncio.run(session.execute([asked]))
    return given.result.text


def output(line: str) -> str:
    """What a command prints, in a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        around = {**os.environ, "HOME": home, "XDG_CACHE_HOME": f"{home}/.cache"}
        command = [sys.executable, "-m", *shlex.split(line)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=around, check=True).stdout


def laid_out(text: str) -> str:
    """JSON, a key a line; what is long below its key."""
    body = json.loads(text)
    if not isinstance(body, dict):
        return text
    return "{" + ",\n ".join("".join(_entry(key, value)) for key, value in body.items()) + "}"


def _entry(key: str, value: Json) -> Iterator[str]:
    whole = f'"{key}": {_plain(value)}'
    if len(whole) <= WIDTH:
        yield whole
    elif isinstance(value, list):
        yield f'"{key}": [\n   '
        hits = [item for item in value if isinstance(item, dict)]
        yield ",\n   ".join(map(_hit, hits)) if hits else ",\n   ".join(_lines(list(map(_plain, value))))
        yield "]"
    else:
        yield f'"{key}":\n   {_plain(value)}'


def _hit(item: JsonObject) -> str:
    return "{" + ",\n    ".join(f'"{key}": {_plain(value)}' for key, value in item.items()) + "}"


def _lines(items: list[str]) -> Iterator[str]:
    line = ""
    for item in items:
        if line and len(line) + len(item) + 5 > WIDTH:
            yield line
            line = item
        else:
            line = f"{line}, {item}" if line else item
    yield line


def _plain(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, nargs="*", help="pages to make anew; all if none is named")
    for page in parser.parse_args().page or pages():
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
