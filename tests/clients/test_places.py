"""Where clients keep their servers on each platform, and what their entries mean."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.clients.samples import SAMPLES

from toolcrib.clients import FAMILIES, require_family
from toolcrib.clients.base import ClientServer, Surroundings
from toolcrib.clients.discovery import discover
from toolcrib.clients.servers import gateway_entry, gateway_names, gateway_obstacle, variables_of
from toolcrib.definitions import JsonObject
from toolcrib.errors import ConfigError


def around(home: Path, platform: str = "linux", **environ: str) -> Surroundings:
    return Surroundings(home=home, platform=platform, cwd=home / "project", environ=environ)


def read(client: str, entry: JsonObject) -> ClientServer:
    return require_family(client).read("x", entry)


@pytest.mark.requirement("X23")
def test_every_sample_is_found_in_a_clean_home(tmp_path: Path) -> None:
    for sample in SAMPLES:
        path = tmp_path / sample.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample.text.encode())
    found = discover(FAMILIES, around(tmp_path))
    assert not found.problems
    names = {(config.path, server.name) for config in found.configs for server in config.servers}
    for sample in SAMPLES:
        for name in (*sample.moved, *sample.staying):
            assert (tmp_path / sample.path, name) in names
    # `.mcp.json` is Claude Code's and everybody's: it is counted once.
    assert [config.client for config in found.configs if config.path.name == ".mcp.json"] == ["claude-code"]


@pytest.mark.requirement("X23")
def test_a_broken_file_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    for name, text in ((".cursor/mcp.json", "{"), (".gemini/settings.json", SAMPLES[6].text)):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    found = discover(FAMILIES, around(tmp_path))
    assert [config.client for config in found.configs] == ["gemini"]
    assert len(found.problems) == 1 and "mcp.json:1: is no valid JSON" in found.problems[0]


@pytest.mark.parametrize(
    ("client", "platform", "expected"),
    [
        ("claude-code", "win32", ".claude.json"),
        ("claude-desktop", "darwin", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", ".config/Claude/claude_desktop_config.json"),
        ("cursor", "darwin", ".cursor/mcp.json"),
        ("vscode", "darwin", "Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", "AppData/Roaming/Code/User/mcp.json"),
        ("vscode", "linux", ".config/Code/User/mcp.json"),
        ("windsurf", "win32", ".codeium/windsurf/mcp_config.json"),
        ("codex", "darwin", ".codex/config.toml"),
        ("gemini", "linux", ".gemini/settings.json"),
        ("zed", "darwin", ".config/zed/settings.json"),
        ("zed", "win32", "AppData/Roaming/Zed/settings.json"),
        ("hermes", "linux", ".hermes/config.yaml"),
    ],
)
@pytest.mark.requirement("X23")
def test_the_first_place_is_the_one_of_the_platform(client: str, platform: str, expected: str) -> None:
    home = Path("/home/me")
    assert require_family(client).places(around(home, platform))[0].path == home / expected


@pytest.mark.parametrize(
    ("client", "variable", "expected"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("hermes", "HERMES_HOME", "config.yaml"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
    ],
)
def test_variables_move_the_places(client: str, variable: str, expected: str) -> None:
    place = require_family(client).places(around(Path("/home/me"), **{variable: "/else"}))[0]
    assert place.path == Path("/else") / expected


@pytest.mark.requirement("X23")
def test_project_files_are_looked_for_up_the_tree(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "repo" / ".mcp.json").write_text('{"mcpServers": {"up": {"command": "x"}}}', encoding="utf-8")
    here = Surroundings(home=tmp_path / "home", platform="linux", cwd=deep)
    found = discover([require_family("mcp-json")], here)
    assert [server.name for config in found.configs for server in config.servers] == ["up"]
    assert found.configs[0].scope == "project"


def test_entries_become_what_the_gateway_reads() -> None:
    cases: list[tuple[str, JsonObject, JsonObject]] = [
        ("cursor", {"url": "https://h/sse"}, {"type": "sse", "url": "https://h/sse"}),
        (
            "cursor",
            {"command": "x", "env": {"A": "${env:B}"}},
            {"command": "x", "args": [], "env": {"A": "${B}"}},
        ),
        ("windsurf", {"serverUrl": "https://h/mcp"}, {"type": "http", "url": "https://h/mcp"}),
        ("gemini", {"url": "https://h/x"}, {"type": "sse", "url": "https://h/x"}),
        ("gemini", {"url": "https://h/x", "type": "http"}, {"type": "http", "url": "https://h/x"}),
        (
            "gemini",
            {"httpUrl": "https://h", "headers": {"K": "$KEY"}},
            {"type": "http", "url": "https://h", "headers": {"K": "${KEY}"}},
        ),
        (
            "codex",
            {"url": "https://h", "bearer_token_env_var": "T", "env_http_headers": {"X": "Y"}},
            {"type": "http", "url": "https://h", "headers": {"X": "${Y}", "Authorization": "Bearer ${T}"}},
        ),
        (
            "codex",
            {"command": "x", "env_vars": ["P"], "cwd": "/w"},
            {"command": "x", "args": [], "env": {"P": "${P}"}, "cwd": "/w"},
        ),
        (
            "zed",
            {"command": {"path": "/p", "args": ["a"], "env": None}},
            {"command": "/p", "args": ["a"]},
        ),
        (
            "hermes",
            {"command": "x", "args": ["-p", 80], "env": {"N": 1, "B": True}},
            {"command": "x", "args": ["-p", "80"], "env": {"N": "1", "B": "true"}},
        ),
    ]
    for client, entry, expected in cases:
        server = read(client, entry)
        assert server.obstacle is None, server
        assert gateway_entry(server) == expected
        assert server.raw == entry


def test_servers_that_only_the_client_can_start_say_why() -> None:
    cases: list[tuple[str, JsonObject, str]] = [
        ("vscode", {"command": "x", "env": {"K": "${input:k}"}}, "${input:k}"),
        ("vscode", {"command": "x", "envFile": ".env"}, "envFile"),
        ("cursor", {"command": "x", "args": ["${workspaceFolder}"]}, "${workspaceFolder}"),
        ("zed", {"settings": {}}, "extension"),
        ("cursor", {}, "neither"),
        ("cursor", {"command": "x", "env": ["A=b"]}, "`env`"),
    ]
    for client, entry, said in cases:
        assert said in str(read(client, entry).obstacle)


@pytest.mark.requirement("X24")
def test_a_choice_of_tools_moves_along_and_means_the_same_names() -> None:
    cases: list[tuple[str, JsonObject, JsonObject]] = [
        ("gemini", {"includeTools": ["a", "b(x)"], "excludeTools": ["c"]}, {"include": ["a", "b"], "exclude": ["c"]}),
        ("codex", {"enabled_tools": ["a[1]"], "disabled_tools": ["*"]}, {"include": ["a[[]1]"], "exclude": ["[*]"]}),
        ("hermes", {"tools": {"include": "one"}}, {"include": ["one"]}),
        ("windsurf", {"disabledTools": ["drop"]}, {"exclude": ["drop"]}),
        ("mcp-json", {"include": ["read_*"]}, {"include": ["read_*"]}),
    ]
    for client, choice, expected in cases:
        server = read(client, {"command": "x", **choice})
        assert gateway_obstacle(server) is None
        assert gateway_entry(server) == {"command": "x", "args": [], **expected}
        assert server.raw == {"command": "x", **choice}


@pytest.mark.requirement("X24")
def test_servers_that_the_gateway_cannot_express_say_why() -> None:
    cases: list[tuple[str, JsonObject, str]] = [
        ("codex", {"command": "x", "enabled_tools": []}, "lets no tool through"),
        ("claude-code", {"command": "x", "args": ["${HOME}/y"]}, "in its command"),
        ("claude-code", {"command": "x", "env": {"A": "${B:-c}"}}, "part of a value"),
        ("cursor", {"url": "https://h/${env:TENANT}"}, "part of a value"),
    ]
    for client, entry, said in cases:
        assert said in str(gateway_obstacle(read(client, entry)))
    for client, entry in (
        ("cursor", {"url": "${env:URL}", "headers": {"A": "Bearer ${env:T}"}}),
        ("zed", {"url": "u"}),
    ):
        assert gateway_obstacle(read(client, entry)) is None


def test_names_that_no_toolset_may_bear_are_changed_and_never_meet() -> None:
    server = read("cursor", {"command": "x"})
    given = [replace(server, name=name) for name in ("My Server", "My/Server", "日本")]
    named = gateway_names(given)
    assert list(named) == ["My-Server", "My-Server-2", "server"]


def test_switched_off_servers_are_known_as_such() -> None:
    assert read("windsurf", {"command": "x", "disabled": True}).disabled
    assert read("codex", {"command": "x", "enabled": False}).disabled
    assert not read("codex", {"command": "x", "enabled": True}).disabled


def test_an_unknown_client_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean `vscode`"):
        require_family("vs-code")
    with pytest.raises(ConfigError, match="use one of claude-code"):
        require_family("qqqqqqq")


def test_every_client_has_its_line_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    for family in FAMILIES:
        assert f"\n| `{family.name}` | " in page
        assert f"`{family.places(around(Path('/home/me')))[0].section[0]}`" in page


@pytest.mark.requirement("X24")
def test_variables_of_moved_servers_are_asked_for_in_the_words_of_the_client() -> None:
    server = read("codex", {"url": "https://h/mcp", "bearer_token_env_var": "TOKEN", "env_http_headers": {"X": "Y"}})
    assert variables_of([server, server]) == ("Y", "TOKEN")
    written = {family.name: family.write("t", ("serve",), ("A",)) for family in FAMILIES}
    plain: JsonObject = {"command": "t", "args": ["serve"]}
    assert written == {
        "claude-code": {"type": "stdio", **plain, "env": {"A": "${A}"}},
        "claude-desktop": plain,
        "cursor": {**plain, "env": {"A": "${env:A}"}},
        "vscode": {"type": "stdio", **plain, "env": {"A": "${env:A}"}},
        "windsurf": {**plain, "env": {"A": "${env:A}"}},
        "codex": {**plain, "env_vars": ["A"]},
        "gemini": {**plain, "env": {"A": "${A}"}},
        "zed": plain,
        "hermes": {**plain, "env": {"A": "${A}"}},
        "mcp-json": {**plain, "env": {"A": "${A}"}},
    }
    assert all(not {"env", "env_vars"} & set(family.write("t", (), ())) for family in FAMILIES)
