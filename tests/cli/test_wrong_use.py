"""Wrong use of every command: exit code 2, one sentence with what is wrong, no traceback, no file changed."""

import io
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main
from tests.cli.terminal import Terminal

from toolcrib.cli.app import build_app

TOOL = '{"name": "open_door", "description": "Open the door.", "server": "house"}\n'
FILES = {
    "tools.jsonl": TOOL,
    "tools.json": f"[{TOOL}]",
    "broken.json": '{"mcpServers": {',
    "broken.jsonl": '{"name": "a"}\n{broken\n',
    "broken.toml": "[mcp_servers.x\n",
    "broken.yaml": "tools: [\n",
    "control.yaml": "pins: off\n# \x01\n",
    "empty.yaml": "",
    "empty.jsonl": "",
    "nobody.json": '{"mcpServers": {}}',
    "text.yaml": "just words\n",
    "twice.yaml": "pins: off\npins: enforce\n",
    "typo.yaml": "tolls: {}\n",
    "typo_within.yaml": "mcpServers: {x: {comand: y}}\n",
    "value.yaml": "tools: {tool_search: {threshold_pct: 200}}\n",
    "bytes.yaml": "\udcff",
    "file": "a file, and no directory",
    "house.yaml": "python: {maths: {module: math, include: [sqrt]}}\n",
    "no_answers.jsonl": '{"query": "open", "relavant": ["open_door"]}\n',
    "queries.jsonl": '{"id": "1", "query": "open", "relevant": ["nothing_like_it"]}\n',
    "task.md": "Say hello.\n",
    "events.jsonl": "no json\n",
    "lock.json": "{",
    "tokens.json": "{",
}
CONFIG = (
    ("no.yaml", "no.yaml: cannot be read: No such file or directory."),
    ("file/x.yaml", "file/x.yaml: cannot be read: Not a directory."),
    (".", ".: cannot be read: Is a directory."),
    ("broken.yaml", "broken.yaml:2: is no valid YAML"),
    ("bytes.yaml", "bytes.yaml: is not UTF-8 text."),
    ("control.yaml", "control.yaml:2: is no valid YAML: the character #x0001 may not stand here."),
    ("twice.yaml", "twice.yaml:2: is no valid YAML: the key `pins` occurs twice."),
    ("text.yaml", "text.yaml: must hold keys and values"),
    ("typo.yaml", "`tolls` is no setting: did you mean `tools`?"),
    ("typo_within.yaml", "comand` is no setting: did you mean `command`?"),
    ("value.yaml", "`tools.tool_search.threshold_pct`"),
)
"""What can be wrong with a configuration, wherever one is read."""
DEFINITIONS = (
    ("no.jsonl", "no.jsonl: cannot be read: No such file or directory."),
    ("file/x.jsonl", "file/x.jsonl: cannot be read: Not a directory."),
    (".", ".: cannot be read: Is a directory."),
    ("broken.jsonl", "broken.jsonl:2: is no valid JSON"),
    ("broken.json", "is no valid JSON"),
)
"""What can be wrong with a file of definitions."""
NOWHERE = "There is no toolcrib.yaml here"

CONFIGURED = (".codex", ".gemini", ".hermes", ".config/zed")
"""Where clients of the messy home keep what they know."""

Case = tuple[tuple[str, ...], str]


def with_config(*args: str) -> list[Case]:
    return [((*args, "--config", file), said) for file, said in CONFIG]


def with_tools(*args: str) -> list[Case]:
    return [((*args, "--tools", file), said) for file, said in DEFINITIONS]


CASES: dict[str, list[Case]] = {
    "audit": [
        (("audit",), "No client with MCP servers was found here"),
        (("audit", "--config", "no.json"), "no.json: cannot be read: No such file or directory."),
        (("audit", "--config", "file/x.json"), "file/x.json: cannot be read: Not a directory."),
        (("audit", "--config", "."), ".: cannot be read: Is a directory."),
        (("audit", "--config", "broken.json"), "broken.json:1: is no valid JSON"),
        (("audit", "--config", "broken.toml"), "broken.toml:1: is no valid TOML"),
        (("audit", "--config", "broken.yaml"), "broken.yaml:2: is no valid YAML"),
        (("audit", "--config", "nobody.json"), "nobody.json: names no servers."),
        (("audit", "--config", "typo.yaml"), "names no servers"),
        (("audit", "--context", "0"), "--context"),
        (("audit", "--config", "one.json", "--svg", "file/x.svg"), "file/x.svg: cannot be written: Not a directory."),
    ],
    "tokens": [
        *with_tools("tokens"),
        (("tokens",), "Missing option '--tools'"),
        (("tokens", "--tools", "tools.jsonl", "--context", "many"), "'--context'"),
    ],
    "search": [
        *with_tools("search", "x"),
        *with_config("search", "x"),
        (("search", "x"), NOWHERE),
        (("search",), "Missing argument 'query'"),
        (("search", "  ", "--tools", "tools.jsonl"), "query"),
        (("search", "x", "--tools", "tools.jsonl", "--config", "house.yaml"), "not both"),
        (("search", "x", "--tools", "tools.jsonl", "--retrieval", "magic"), "'--retrieval'"),
        (("search", "x", "--config", "empty.yaml"), "empty.yaml: names no tools"),
    ],
    "describe": [
        *with_tools("describe", "x"),
        *with_config("describe", "x"),
        (("describe", "x"), NOWHERE),
        (("describe", "house__open_dor", "--tools", "tools.jsonl"), "house__open_door"),
        (("describe", "x", "--config", "empty.yaml"), "empty.yaml: names no tools"),
    ],
    "call": [
        *with_config("call", "x"),
        (("call", "x"), f"{NOWHERE}: give --config FILE"),
        (("call", "sqrtt", "{}", "--config", "house.yaml"), "sqrt"),
        (("call", "sqrt", "{broken", "--config", "house.yaml"), "JSON"),
        (("call", "sqrt", "[1]", "--config", "house.yaml"), "object"),
        (("call", "x", "--config", "empty.yaml"), "empty.yaml: names no tools"),
    ],
    "eval": [
        *with_tools("eval"),
        (("eval", "--tools", "tools.jsonl", "--queries", "no.jsonl"), "no.jsonl: cannot be read"),
        (("eval", "--tools", "tools.jsonl", "--queries", "no_answers.jsonl"), "no_answers.jsonl:1: has no `relevant`"),
        (("eval", "--tools", "tools.jsonl", "--queries", "file/x"), "file/x: cannot be read: Not a directory."),
        (("eval", "--tools", "tools.jsonl", "--queries", "broken.jsonl"), "broken.jsonl:"),
        (("eval", "--tools", "tools.jsonl", "--queries", "queries.jsonl"), "nothing_like_it"),
        (("eval", "--tools", "empty.jsonl"), "empty.jsonl: holds no tools"),
        (("eval", "--tools", "tools.jsonl", "--queries", "empty.jsonl"), "empty.jsonl: holds no queries"),
        (("eval", "--tools", "tools.jsonl", "--min-recall5", "high"), "'--min-recall5'"),
        # Before anything is read or measured.
        (("eval", "--tools", "no.jsonl", "--chart", "file/x.svg"), "file/x.svg: there is no directory file"),
    ],
    "serve": [
        *with_config("serve"),
        (("serve",), NOWHERE),
        (("serve", "--config", "house.yaml", "--profile", "defalt"), "did you mean `default`?"),
        (("serve", "--config", "house.yaml", "--http", "nowhere"), "HOST:PORT"),
        (("serve", "--config", "house.yaml", "--http", "127.0.0.1:99999"), "HOST:PORT"),
        (("serve", "--config", "house.yaml", "--http", "0.0.0.0:0"), "--public"),
        (("serve", "--config", "house.yaml", "--http", "127.0.0.1:PORT", "--allow-unauthenticated"), "in use"),
    ],
    "install": [
        (("install",), "Name one client, or give --all."),
        (("install", "curser"), "did you mean `cursor`?"),
        (("install", "cursor"), "is not there"),
        (("install", "codex"), "config.toml:1: is no valid TOML"),
        (("install", "gemini"), "settings.json:1: is no valid JSON"),
        (("install", "hermes"), "config.yaml:2: is no valid YAML"),
        (("install", "windsurf"), "has no servers"),
        (("install", "zed", "--only", "clok"), "did you mean `clock`?"),
        (("install", "zed", "--scope", "galaxy"), "'--scope'"),
        (("install", "zed", "--context", "0"), "'--context'"),
    ],
    "uninstall": [
        (("uninstall",), "Name one client"),
        (("uninstall", "curser"), "did you mean `cursor`?"),
        (("uninstall", "zed"), "Nothing is installed"),
        (("uninstall", "--all"), "Nothing is installed"),
    ],
    "doctor": [*with_config("doctor"), (("doctor", "--wait", "0"), "'--wait'")],
    "learn": [
        *with_config("learn"),
        (("learn",), "activity"),
        (("learn", "--activity", "no.jsonl"), "no.jsonl: cannot be read"),
        (("learn", "--activity", "file/x"), "file/x: cannot be read: Not a directory."),
    ],
    "chat": [
        *with_config("chat", "hello"),
        (("chat", "hello"), "model"),
        (("chat", "hello", "--api", "telepathy"), "'--api'"),
    ],
    "run": [
        *with_config("run", "--task", "task.md"),
        (("run",), "Missing option '--task'"),
        (("run", "--task", "no.md"), "no.md: cannot be read: No such file or directory."),
        (("run", "--task", "empty.yaml"), "empty.yaml: holds no task."),
        (("run", "--task", "task.md"), "model"),
    ],
    "version": [(("version", "--shiny"), "No such option: --shiny")],
    "pins list": [*with_tools("pins", "list"), *with_config("pins", "list"), (("pins", "list"), NOWHERE)],
    "pins diff": [
        *with_tools("pins", "diff"),
        *with_config("pins", "diff"),
        (("pins", "diff", "--tools", "tools.jsonl", "--lock", "lock.json"), "lock.json: is no valid JSON"),
        (("pins", "diff", "--tools", "tools.jsonl", "--lock", "file/x"), "file/x: cannot be read: Not a directory."),
    ],
    "pins approve": [
        *with_tools("pins", "approve", "--all"),
        *with_config("pins", "approve", "--all"),
        (("pins", "approve", "--tools", "tools.jsonl"), "or give --all"),
        (("pins", "approve", "house__open_dor", "--tools", "tools.jsonl"), "did you mean `house__open_door`?"),
        (("pins", "approve", "--all", "--tools", "tools.jsonl", "--lock", "no/dir/x"), "no/dir/x: cannot be written"),
    ],
    "token create": [
        (("token", "create"), "Missing argument 'name'"),
        (("token", "create", "me", "--days", "0"), "'--days'"),
        (("token", "create", "me", "--days", "99999999"), "'--days'"),
        (("token", "create", "me", "--file", "tokens.json"), "tokens.json: holds no tokens"),
        (("token", "create", "me", "--file", "file/x"), "file/x: cannot be"),
    ],
    "token list": [
        (("token", "list", "--file", "tokens.json"), "tokens.json: holds no tokens"),
        (("token", "list", "--file", "file/x"), "file/x: cannot be read"),
    ],
    "token revoke": [
        (("token", "revoke"), "Missing argument 'name'"),
        (("token", "revoke", "me", "--file", "tokens.json"), "tokens.json: holds no tokens"),
        (("token", "revoke", "me", "--file", "file/x"), "file/x: cannot be read"),
    ],
    "approvals list": [(("approvals", "list", "--shiny"), "No such option: --shiny")],
    "approvals grant": [
        (("approvals", "grant"), "Missing argument"),
        (("approvals", "grant", "1f0c2d9a"), "No call `1f0c2d9a` waits"),
    ],
    "approvals refuse": [
        (("approvals", "refuse"), "Missing argument"),
        (("approvals", "refuse", "1f0c2d9a"), "No call `1f0c2d9a` waits"),
    ],
    "config show": with_config("config", "show"),
}
"""Every command, with its wrong uses."""


def commands_of(app: Any, *names: str) -> list[str]:
    if isinstance(app, typer.core.TyperGroup):
        return [found for name, inner in app.commands.items() for found in commands_of(inner, *names, name)]
    return [" ".join(names)]


@pytest.fixture
def messy(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with files that somebody broke, and a project full of them."""
    for name in ("TOOLCRIB_AGENT__MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # What was read of tools is kept, whatever goes wrong afterwards.
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.parent / "cache"))
    for name, text in FILES.items():
        (home / "project" / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    (home / "project" / "tokens.json").chmod(0o600)
    one = '{"mcpServers": {"a": {"command": "/no/such/program"}}}'
    (home / "project" / "one.json").write_text(one, encoding="utf-8")
    clients = {
        ".codex/config.toml": FILES["broken.toml"],
        ".gemini/settings.json": "{",
        ".hermes/config.yaml": FILES["broken.yaml"],
        ".codeium/windsurf/mcp_config.json": FILES["nobody.json"],
        ".config/zed/settings.json": '{"context_servers": {"clock": {"command": "x"}}}',
    }
    for name, text in clients.items():
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return home


def everything(home: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None for path in sorted(home.rglob("*"))
    }


def test_every_command_has_its_wrong_uses_here() -> None:
    assert sorted(CASES) == sorted(commands_of(typer.main.get_command(build_app())))


@pytest.mark.parametrize(
    ("args", "said"), [pytest.param(*case, id=" ".join(case[0])) for cases in CASES.values() for case in cases]
)
def test_wrong_use_is_one_sentence_exit_code_2_and_changes_nothing(
    messy: Path, terminal: Terminal, args: tuple[str, ...], said: str
) -> None:
    if args == ("audit",):
        for name in CONFIGURED:
            (messy / name).rename(messy / f"{name}.away")
    before = everything(messy)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = terminal.run(*(arg.replace("PORT", str(taken.getsockname()[1])) for arg in args))
    found = (done.code, done.out, len(done.err.splitlines()), done.err.startswith("toolcrib: "))
    assert found == (2, "", 1, True), done
    assert said in done.err
    assert everything(messy) == before


def with_a_server(home: Path) -> None:
    """A client's own file, whose servers are not started unasked."""
    for path in home.rglob("mcp.json"):
        path.unlink()
    (home / ".cursor").mkdir(exist_ok=True)
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"x": {"command": "false"}}}')


STREAMS = (
    ("version >&-", 0),
    ("config show --json >&-", 0),
    ("describe open_door --tools tools.jsonl >&-", 0),
    ("tokens 2>&-", 2),
    ("search door --config no.yaml 2>&-", 2),
    ("audit <&-", 2),
    ("serve --config house.yaml <&-", 0),
)


@pytest.mark.parametrize(("line", "code"), STREAMS, ids=[line for line, _ in STREAMS])
def test_a_stream_that_is_closed_costs_neither_a_traceback_nor_the_exit_code(messy: Path, line: str, code: int) -> None:
    with_a_server(messy)
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m toolcrib {line}', sys.executable],
        cwd=messy / "project",
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("audit",), ("install", "cursor"), ("doctor",), ("token", "list")])
def test_a_user_without_a_home_is_told_what_to_set(
    messy: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(Path, "home", homeless)
    done = terminal.run(*command)
    assert (done.code, done.err) == (
        2,
        "toolcrib: This user has no home directory: set HOME to a directory for its files.\n",
    )


def homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (EOFError, 1)])
def test_a_question_that_is_broken_off_ends_as_whoever_broke_it_off_means(
    messy: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException], code: int
) -> None:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, size: int | None = -1, /) -> str:
            raise raised

    with_a_server(messy)
    monkeypatch.setattr(sys, "stdin", Keyboard())
    assert terminal.run("audit").code == code
