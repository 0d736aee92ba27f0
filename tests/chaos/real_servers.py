"""Many real MCP servers behind one gateway, at once: started, searched, described, called, and one of them killed.

Not part of the default run: the servers come from public registries and must be installed first. Run it where there
is nothing but loopback, because several of them try to reach the outside:

    unshare -n sh -c 'ip link set lo up; exec "$@"' sh \\
        python -m tests.chaos.real_servers --servers servers.json --root DIR --bin DIR/v/bin --work DIR/work

`servers.json` is a list of `{"name", "run", "args", "example_call": {"tool", "arguments"}}`; `{work}` in it stands for
the working directory. A server whose program is not installed is left out, and said so.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from mcp import Client, MCPError, StdioServerParameters

from toolcrib.intake.naming import exposed_name, safe_prefix


def prepare(work: Path) -> None:
    """Files, a repository and a database for the servers to work on."""
    for name in ("fs", "repo", "vault", "cfg"):
        (work / name).mkdir(parents=True, exist_ok=True)
    (work / "fs" / "hello.txt").write_text("hello from a real file\n")
    (work / "vault" / "note.md").write_text("# A note\n")
    with sqlite3.connect(work / "s.db") as database:
        database.execute("create table if not exists t (x)")
        database.execute("insert into t values (1)")
    git = shutil.which("git") or "git"
    for command in (
        ["init", "-q"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run([git, "-C", str(work / "repo"), *command], check=False)


def entries(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration of every installed server, and its example call."""
    servers: dict[str, Any] = {}
    calls: dict[str, Any] = {}

    def fill(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{work}", str(options.work)))

    for item in json.loads(options.servers.read_text()):
        program, *rest = item["run"].split()
        if program == "node":
            script = options.root / rest[0]
            if not script.exists():
                continue
            command, args = options.node or program, [str(script), *rest[1:]]
        else:
            found = next((path / program for path in options.bin if (path / program).exists()), None)
            if found is None:
                continue
            command, args = str(found), rest
        name = item["name"].replace("__", "-").replace(".", "-")
        servers[name] = {"command": command, "args": args + fill(item["args"]), "cwd": str(options.work),
                         "env": {**fill(item.get("env") or {}), "REAL_SERVER": name}}  # fmt: skip
        if item.get("example_call"):
            calls[name] = fill(item["example_call"])
    return servers, calls


def pids_of(server: str) -> list[int]:
    mark = f"REAL_SERVER={server}".encode()
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def call(client: Client, server: str, example: dict[str, Any]) -> tuple[bool, str]:
    name = exposed_name(safe_prefix(server), example["tool"])
    try:
        result = await client.call_tool("tool_call", {"name": name, "arguments": example.get("arguments") or {}})
    except MCPError as error:
        return False, f"protocol error: {error}"[:90]
    text = " ".join(str(getattr(block, "text", block.type)) for block in result.content)
    return not result.is_error, " ".join(text.split())[:90]


async def run(options: argparse.Namespace) -> int:
    servers, calls = entries(options)
    config = options.work / "toolcrib.yaml"
    gateway = {"startup_wait": 60}
    search = {"tool_search": {"enabled": "on"}}
    config.write_text(yaml.safe_dump({"tools": search, "gateway": gateway, "mcpServers": servers}))
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "toolcrib", "serve", "--config", str(config)], env=dict(os.environ)
    )
    began = time.monotonic()
    failures = 0
    async with Client(parameters, mode=options.mode) as client:
        tools = (await client.list_tools()).tools
        print(f"{len(servers)} servers configured, first list after {time.monotonic() - began:.1f} s")
        answer = await client.call_tool("tool_search", {"query": "read a text file"})
        body = answer.structured_content or {}
        print(f"tools in the catalog: {body['total_available']}; in the list: {[tool.name for tool in tools]}")
        print(f"search 'read a text file': {[match['name'] for match in body['matches']]}")
        for server, example in calls.items():
            since = time.monotonic()
            good, text = await call(client, server, example)
            failures += not good
            took = time.monotonic() - since
            print(f"{'ok ' if good else 'NO '} {server:45} {example['tool']:30} {took:5.2f} s  {text}")
        if options.kill:
            failures += await kill_one(client, options.kill, calls)
    left = [server for server in servers if pids_of(server)]
    print(f"processes left behind: {left or 'none'}")
    return failures + len(left)


async def kill_one(client: Client, victim: str, calls: dict[str, Any]) -> int:
    """Kills one server in the middle of everybody's calls; the others' succeed."""
    others = {name: example for name, example in calls.items() if name != victim}
    tasks = {name: asyncio.create_task(call(client, name, example)) for name, example in others.items()}
    for pid in pids_of(victim):
        os.kill(pid, signal.SIGKILL)
    results = {name: await task for name, task in tasks.items()}
    failed = [name for name, (good, _) in results.items() if not good]
    print(f"killed {victim}; of {len(others)} calls to others failed: {failed or 'none'}")
    print(f"  a call to it now: {(await call(client, victim, calls[victim]))[1]}")
    await asyncio.sleep(8)
    print(f"  and after its restart: {(await call(client, victim, calls[victim]))[1]}")
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True, help="the directory that holds node_modules")
    parser.add_argument("--bin", type=Path, action="append", default=[], help="directories of installed programs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--node", help="the node program")
    parser.add_argument("--mode", default="auto", choices=["auto", "legacy"])
    parser.add_argument("--kill", help="a server to kill in the middle of calls")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    prepare(options.work)
    sys.exit(min(asyncio.run(run(options)), 1))


if __name__ == "__main__":
    main()
