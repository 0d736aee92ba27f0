"""The commands as a user meets them: figures, JSON, exit codes, one sentence per error."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main
from tests.cli.terminal import toolcrib
from tests.factories import definition

from toolcrib.cli.app import build_app

KEYS = {
    "n_tools",
    "direct_tokens",
    "bridge_tokens",
    "listing_tokens",
    "visible_tokens",
    "saved_pct",
    "activated",
    "threshold_tokens",
    "reason",
    "names_listed",
}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.jsonl"
    rows = [
        {**definition(f"open_{word}_{n}", f"Open the {word}. " * 8, path={"type": "string"}), "server": word}
        for word in ("door", "window", "gate")
        for n in range(40)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_tokens_prints_the_figures_that_scripts_rely_on(tools: Path) -> None:
    run = toolcrib("tokens", "--tools", tools, "--context", "32000", "--json")
    report = json.loads(run.stdout)
    assert run.returncode == 0
    assert set(report) == KEYS
    assert report["activated"] is True
    assert report["n_tools"] == report["names_listed"] == 120
    assert report["bridge_tokens"] <= 300
    assert report["visible_tokens"] == report["bridge_tokens"] + report["listing_tokens"]
    assert report["saved_pct"] == round(100 * (1 - report["visible_tokens"] / report["direct_tokens"]), 2)
    below = json.loads(toolcrib("tokens", "--tools", tools, "--context", "1000000", "--json").stdout)
    assert below["activated"] is False
    assert below["saved_pct"] == 0


def test_tokens_draws_a_picture_for_people(tools: Path) -> None:
    run = toolcrib("tokens", "--tools", tools, "--context", "32000")
    assert "all attached" in run.stdout
    assert "█" in run.stdout
    assert "\x1b[" not in run.stdout


@pytest.mark.parametrize("shape", ["array", "object", "openai"])
def test_definitions_are_read_in_every_shape(tmp_path: Path, shape: str) -> None:
    rows: Any = [definition("a"), definition("b")]
    if shape == "openai":
        rows = [
            {"type": "function", "function": {"name": row["name"], "parameters": row["inputSchema"]}} for row in rows
        ]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": rows} if shape == "object" else rows, indent=2))
    assert json.loads(toolcrib("tokens", "--tools", path, "--json").stdout)["n_tools"] == 2


def test_search_finds_and_explains(tools: Path) -> None:
    run = toolcrib(
        "search", "open the window", "--tools", tools, "--limit", "3", "--retrieval", "lexical", "--explain", "--json"
    )
    body = json.loads(run.stdout)
    assert {"query", "total_available", "matches", "abstained", "tokens"} <= set(body)
    first = body["matches"][0]
    assert first["toolset"] == "mcp-window"
    assert {"name", "toolset", "score", "description", "signature", "complete"} <= set(first)
    assert first["evidence"]
    assert "mcp-window" in toolcrib("search", "open the window", "--tools", tools, "--retrieval", "lexical").stdout


@pytest.mark.requirement("X3")
def test_search_names_the_other_servers_that_have_the_same_tool(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(json.dumps({**definition("open_door"), "server": server}) for server in "ab"))
    shown = toolcrib("search", "open the door", "--tools", path, "--retrieval", "lexical").stdout
    assert "The same: b__open_door" in shown


@pytest.mark.requirement("X26")
def test_search_explains_what_it_read_where_that_is_not_what_was_typed(tools: Path) -> None:
    slip = "Could you please open the windwo"
    assert "Read as: open the window" in toolcrib("search", slip, "--tools", tools, "--explain").stdout
    assert json.loads(toolcrib("search", slip, "--tools", tools, "--json").stdout)["read_as"] == "open the window"
    plain = toolcrib("search", "open the window", "--tools", tools, "--explain")
    assert "Read as" not in plain.stdout


@pytest.mark.requirement("X2")
def test_search_says_when_perhaps_nothing_of_what_it_shows_fits(tools: Path) -> None:
    query = "wash the windows"
    assert "Perhaps none of these fits" in toolcrib("search", query, "--tools", tools).stdout
    assert json.loads(toolcrib("search", query, "--tools", tools, "--json").stdout)["doubtful"] is True
    clear = toolcrib("search", "open the window", "--tools", tools, "--json")
    assert json.loads(clear.stdout)["doubtful"] is False


def test_describe_prints_the_schema_and_an_unknown_name_a_sentence(tools: Path) -> None:
    run = toolcrib("describe", "door__open_door_1", "--tools", tools)
    assert json.loads(run.stdout)["parameters"]["required"] == ["path"]
    unknown = toolcrib("describe", "door__open_dor_1", "--tools", tools)
    assert unknown.returncode == 2
    assert "did you mean" in unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokens", "--tools", "no.jsonl"], "no.jsonl: cannot be read: No such file or directory."),
        (["tokens", "--tools", "broken.jsonl"], "broken.jsonl:2: is no valid JSON"),
        (["tokens", "--tools", "numbers.json"], "a tool definition must be a JSON object"),
        (["tokens", "--tools", "."], "cannot be read: Is a directory"),
        (["search", "x"], "There is no toolcrib.yaml here: give --tools FILE or --config FILE."),
        (["search", "x", "--tools", "a", "--config", "b"], "not both"),
        (["search", "x", "--config", "bad.yaml"], "did you mean `tools`?"),
    ],
)
def test_wrong_use_ends_with_two_and_one_clear_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "broken.jsonl").write_text('{"name": "a"}\n{broken\n')
    (tmp_path / "numbers.json").write_text("[1, 2]")
    (tmp_path / "bad.yaml").write_text("tolls: {}\n")
    run = toolcrib(*arguments, cwd=tmp_path)
    assert run.returncode == 2
    assert message in run.stderr
    assert run.stderr.startswith("toolcrib: ")
    assert len(run.stderr.splitlines()) == 1
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "arguments", [["tokens"], ["nonsense"], ["tokens", "--tools", "x", "--context", "many"], ["search"]]
)
def test_a_wrong_command_line_ends_with_two(arguments: list[str]) -> None:
    run = toolcrib(*arguments)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr


def test_a_definition_that_cannot_be_used_is_reported_and_the_rest_counted(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in [definition("a"), definition("tool_call"), {"name": 7}]))
    run = toolcrib("tokens", "--tools", path)
    assert "1 tool stays attached: it is below the threshold" in " ".join(run.stdout.split())
    assert "left out: tools/tool_call: the name `tool_call` is reserved" in " ".join(run.stdout.split())


def commands_of(app: Any, *names: str) -> list[tuple[tuple[str, ...], str]]:
    """Every command, those of groups too, with its help."""
    if isinstance(app, typer.core.TyperGroup):
        return [found for name, inner in app.commands.items() for found in commands_of(inner, *names, name)]
    return [(names, app.help or "")]


def test_every_command_has_help_with_an_example() -> None:
    found = commands_of(typer.main.get_command(build_app()))
    assert {"tokens", "search", "describe", "doctor", "pins approve"} <= {" ".join(names) for names, _ in found}
    for names, text in found:
        assert f"toolcrib {' '.join(names)}" in text.split("Example")[-1], names


def test_an_example_is_shown_on_one_line_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for names, text in commands_of(typer.main.get_command(build_app())):
        example = text.rpartition("Example:\n")[2].strip()
        assert example and "\n" not in example
        shown = toolcrib(*names, "--help").stdout
        assert f"  Example:\n    {example}\n" in shown, names
        assert "\\b" not in shown and "list[" not in shown.partition("Options:")[2], names


def test_every_command_is_on_the_page_of_commands_and_no_summary_is_cut() -> None:
    app = typer.main.get_command(build_app())
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `toolcrib ([a-z ]+)` \|", page, re.MULTILINE)
    assert sorted(documented) == sorted(" ".join(names) for names, _ in commands_of(app))
    for group in ((), *{names[:-1] for names, _ in commands_of(app)}):
        assert "..." not in toolcrib(*group, "--help").stdout.partition("Commands:")[2], group


def test_asking_for_help_loads_nothing_but_the_command_line() -> None:
    """What takes long to load waits for the command that needs it: a person who asks for help is not kept waiting."""
    code = (
        "import contextlib, sys\n"
        "from toolcrib.cli import main\n"
        "sys.argv = ['toolcrib', '--help']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "heavy = {'asyncio', 'importlib.metadata', 'msgspec', 'numpy', 'orjson', 'rich.table', 'yaml'}\n"
        "own = [name for name in sys.modules if name.startswith('toolcrib.') and '.cli' not in name]\n"
        "print(sorted(heavy & set(sys.modules)), sorted(own))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30).stdout
    assert shown.splitlines()[-1] == "[] ['toolcrib.errors', 'toolcrib.limits']"


def test_version_prints_the_version() -> None:
    assert toolcrib("version").stdout.startswith("toolcrib 0.")
    asked = toolcrib("--version")
    assert (asked.returncode, asked.stdout) == (0, toolcrib("version").stdout)
    told = json.loads(toolcrib("version", "--json").stdout)
    assert told["version"].startswith("0.") and isinstance(told["kernel"], bool)


def test_a_reader_that_goes_away_is_no_error(tools: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "toolcrib", "search", "open", "--tools", str(tools), "--retrieval", "lexical"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == ""
        assert run.wait() == 0


def test_ctrl_c_ends_a_command_and_its_servers_without_a_traceback(tmp_path: Path) -> None:
    upstream = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
    entry = {"command": sys.executable, "args": [str(upstream), "--mode", "hang_init"]}
    # It says that it is ready by starting its server, which a file shows.
    marker = tmp_path / "started"
    wrapper = f"import pathlib, runpy, sys; pathlib.Path({str(marker)!r}).touch(); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    entry["args"] = ["-c", wrapper, *entry["args"]]
    (tmp_path / "toolcrib.yaml").write_text(json.dumps({"mcpServers": {"slow": entry}}))
    with subprocess.Popen(
        [sys.executable, "-m", "toolcrib", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        # Whoever started the tests in the background has it ignored, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as run:
        while not marker.exists() and run.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(timeout=0.05)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate()
    assert (run.returncode, out, err) == (130, "", "")


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = subprocess.run(
            [sys.executable, "-m", "toolcrib", "serve", "--http", address, "--allow-unauthenticated"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=30,
        )
    assert run.returncode == 2
    assert run.stderr.startswith(f"toolcrib: {address} cannot be listened on")
    assert len(run.stderr.splitlines()) == 1


def test_search_and_describe_ask_the_servers_of_a_configuration(tmp_path: Path) -> None:
    upstream = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
    good = {"command": sys.executable, "args": [str(upstream), "--mode", "ok"]}
    servers = {"good": good, "dead": {"command": str(tmp_path / "not-there")}}
    (tmp_path / "toolcrib.yaml").write_text(json.dumps({"mcpServers": servers}))
    found = toolcrib("search", "echo", "--retrieval", "lexical", "--json", cwd=tmp_path)
    assert [match["name"] for match in json.loads(found.stdout)["matches"]] == ["good__echo"]
    assert found.stderr.startswith("toolcrib: mcp-dead could not be asked: ") and len(found.stderr.splitlines()) == 1
    assert json.loads(toolcrib("describe", "good__echo", cwd=tmp_path).stdout)["name"] == "good__echo"


def test_a_server_that_stays_silent_is_named_and_the_others_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.cli.cribs.AUDIT_START_S", 6)
    upstream = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
    servers = {
        name: {"command": sys.executable, "args": [str(upstream), "--mode", mode]}
        for name, mode in {"good": "ok", "mute": "hang_init"}.items()
    }
    (tmp_path / "toolcrib.yaml").write_text(json.dumps({"mcpServers": servers}))
    found = toolcrib("search", "echo", "--retrieval", "lexical", "--json", cwd=tmp_path)
    assert [match["name"] for match in json.loads(found.stdout)["matches"]] == ["good__echo"]
    assert found.stderr == "toolcrib: mcp-mute could not be asked: it did not answer within 6 seconds\n"


def test_one_tool_by_its_full_name_starts_no_server_but_its_own(tmp_path: Path) -> None:
    upstream = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
    good = {"command": sys.executable, "args": [str(upstream), "--mode", "ok"]}
    servers = {"good": good, "dead": {"command": str(tmp_path / "not-there")}}
    (tmp_path / "toolcrib.yaml").write_text(json.dumps({"mcpServers": servers}))
    described = toolcrib("describe", "good__echo", cwd=tmp_path)
    assert (described.returncode, described.stderr) == (0, "")
    called = toolcrib("call", "good__echo", '{"message": "hi"}', cwd=tmp_path)
    assert (called.stdout, called.stderr) == ("hi\n", "")
    for command in ("describe", "call"):
        down = toolcrib(command, "dead__echo", cwd=tmp_path)
        assert down.returncode == 2
        assert down.stderr.splitlines()[0].startswith("toolcrib: mcp-dead could not be asked: the program")
        assert down.stderr.splitlines()[1].startswith("toolcrib: `dead__echo` cannot be had now: its server")
    short = toolcrib("describe", "echo", cwd=tmp_path)
    assert short.returncode == 0 and "mcp-dead could not be asked" in short.stderr
    servers["dead"] = {"command": str(tmp_path / "not-there"), "prefix": ""}
    (tmp_path / "toolcrib.yaml").write_text(json.dumps({"mcpServers": servers}))
    whose = toolcrib("describe", "good__echo", cwd=tmp_path)
    assert "mcp-dead could not be asked" in whose.stderr, "a server without a prefix may have any name"


@pytest.mark.parametrize("command", [["tokens"], ["search", "x"], ["describe", "x"], ["eval"], ["pins", "list"]])
@pytest.mark.parametrize("text", ["", "[]", '{"tools": []}'])
def test_a_file_without_tools_is_no_result_for_any_command(tmp_path: Path, command: list[str], text: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(text)
    run = toolcrib(*command, "--tools", path)
    assert (run.returncode, run.stderr) == (2, f"toolcrib: {path}: holds no tools.\n")


def test_a_file_of_which_nothing_can_be_used_says_why(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text('{"servers": {}}')
    run = toolcrib("tokens", "--tools", path)
    assert run.returncode == 2
    assert run.stderr.startswith(f"toolcrib: {path}: holds no tool that can be used: the definition has no `name`")


ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "ring", "description": "Ring the bell."}]}}


@pytest.mark.parametrize("indent", [None, 2])
def test_the_answer_of_a_server_is_a_file_of_definitions(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(ANSWER, indent=indent))
    assert json.loads(toolcrib("tokens", "--tools", path, "--json").stdout)["n_tools"] == 1
    assert json.loads(toolcrib("eval", "--tools", path, "--json").stdout)["n_tools"] == 1
    assert json.loads(toolcrib("describe", "ring", "--tools", path).stdout)["name"] == "ring"


@pytest.mark.requirement("X25")
def test_the_servers_of_a_configuration_are_evaluated_by_the_names_that_a_model_sees(tmp_path: Path) -> None:
    upstream = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
    good = {"command": sys.executable, "args": [str(upstream), "--mode", "ok"]}
    (tmp_path / "toolcrib.yaml").write_text(json.dumps({"mcpServers": {"one": good}}))
    lines = ({"query": "returns its message", "relevant": [name]} for name in ("one__echo", "echo"))
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = toolcrib("eval", "--queries", "queries.jsonl", "--retrieval", "lexical", "--json", cwd=tmp_path)
    found = json.loads(run.stdout)
    assert (found["n_tools"], found["n_queries"], found["recall@1"]) == (1, 2, 1.0)
    assert (found["break_even"]["n_tools"], found["break_even"]["searches_measured"]) == (1, 2)
    both = toolcrib("eval", "--tools", "x", "--config", "y", cwd=tmp_path)
    assert (both.returncode, both.stderr) == (2, "toolcrib: Give --tools or --config, not both.\n")


@pytest.mark.requirement("X25")
def test_an_evaluation_weighs_what_tokens_weighs_and_needs_schemas_for_it(tmp_path: Path) -> None:
    tools = [{"name": f"ring_{n}", "description": "Ring a bell. " * 9, "parameters": {}} for n in range(60)]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(tools))
    run = json.loads(toolcrib("eval", "--tools", path, "--retrieval", "lexical", "--json").stdout)
    weighed = json.loads(toolcrib("tokens", "--tools", path, "--json").stdout)
    assert run["break_even"]["direct_tokens"] == weighed["direct_tokens"]
    shown = toolcrib("eval", "--tools", path, "--retrieval", "lexical").stdout
    assert re.search(r"^break-even \d+ searches in 20 turns", shown, re.MULTILINE)
    path.write_text(json.dumps([{"name": "ring", "parameters": ["loudness"]}]))
    bare = toolcrib("eval", "--tools", path, "--retrieval", "lexical", "--json")
    assert "break_even" not in json.loads(bare.stdout)
    assert bare.stderr.startswith("toolcrib: No token break-even: ")


def test_two_ways_of_searching_are_compared_under_their_names(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(ANSWER))
    shown = toolcrib("eval", "--tools", path, "--compare", "lexical").stdout
    assert re.search(r"^ +hybrid +lexical +change", shown, re.MULTILINE)
    same = toolcrib("eval", "--tools", path, "--compare", "hybrid")
    assert same.returncode == 2 and "compares the run with itself" in same.stderr


@pytest.mark.requirement("X21")
def test_definitions_that_cannot_be_used_are_told_by_every_command_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    rows = [{"name": "ring", "description": "Ring the bell."}, {"name": "boil", "parameters": ["water"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    for command in (("search", "ring"), ("describe", "ring"), ("tokens",)):
        run = toolcrib(*command, "--tools", path)
        assert run.returncode == 0
        assert "left out: tools/boil: " in run.stdout + run.stderr
    refused = toolcrib("describe", "boil", "--tools", path)
    assert refused.returncode == 2
    assert "`boil` is left out: " in refused.stderr.splitlines()[-1]


@pytest.mark.requirement("S4")
def test_tools_with_names_of_core_tools_are_searched_and_described_as_a_gateway_serves_them(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    rows = [{"name": "read_file", "description": "Read a file."}, {"name": "click", "server": "browser"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = json.loads(toolcrib("search", "read a file", "--tools", path, "--json").stdout)
    assert (found["total_available"], found["matches"][0]["name"]) == (2, "read_file")
    assert json.loads(toolcrib("describe", "browser__click", "--tools", path).stdout)["name"] == "browser__click"
