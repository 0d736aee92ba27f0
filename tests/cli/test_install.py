"""From a person's own files to the gateway and back, on the command line."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.terminal import Terminal
from tests.clients.samples import SAMPLES, Sample

from toolcrib.clients import install as installing
from toolcrib.clients.files import write_whole
from toolcrib.errors import ConfigError
from toolcrib.intake.pins import Lock, write_lock
from toolcrib.jsonc import read_jsonc

by_client = pytest.mark.parametrize("sample", SAMPLES, ids=[sample.client for sample in SAMPLES])


def place(home: Path, sample: Sample) -> Path:
    path = home / sample.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sample.text.encode())
    path.chmod(0o640)
    return path


def tree(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def load(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return yaml.safe_load(text) if path.suffix == ".yaml" else read_jsonc(text).data()


def servers_in(data: Any) -> Any:
    key = next(key for key in ("mcpServers", "servers", "mcp_servers", "context_servers") if key in data)
    return data[key]


@by_client
@pytest.mark.requirement("X24")
def test_install_then_uninstall_restores_every_byte(home: Path, terminal: Terminal, sample: Sample) -> None:
    path = place(home, sample)
    before = tree(home)
    installed = terminal.run("install", sample.client, "--json")
    assert installed.code == 0, installed.err
    report = installed.json[0]
    assert tuple(report["moved"]) == sample.moved
    assert tuple(item["name"] for item in report["staying"]) == sample.staying
    entries = servers_in(load(path))
    assert set(entries) == {"toolcrib", *sample.staying}
    entry = entries["toolcrib"]
    assert entry["args"][-3:-1] == ["serve", "--config"]
    assert Path(entry["command"]).is_absolute()
    gateway = yaml.safe_load(Path(entry["args"][-1]).read_text(encoding="utf-8"))
    assert tuple(gateway["mcpServers"]) == sample.moved
    assert path.stat().st_mode & 0o777 == 0o640
    removed = terminal.run("uninstall", sample.client)
    assert removed.code == 0, removed.err
    assert tree(home) == before
    assert path.stat().st_mode & 0o777 == 0o640


@by_client
@pytest.mark.requirement("X24")
def test_a_dry_run_shows_a_diff_without_secrets_and_changes_nothing(
    home: Path, terminal: Terminal, sample: Sample
) -> None:
    place(home, sample)
    before = tree(home)
    shown = terminal.run("install", sample.client, "--dry-run")
    assert shown.code == 0, shown.err
    assert "+++" in shown.out and '"serve"' in shown.out
    for secret in ("sk-very-secret", "abc123", "secret-token"):
        assert secret not in shown.out
    assert tree(home) == before


@by_client
@pytest.mark.requirement("X24")
def test_comments_and_everything_else_in_the_file_survive(home: Path, terminal: Terminal, sample: Sample) -> None:
    path = place(home, sample)
    before = load(path)
    assert terminal.run("install", sample.client).code == 0
    after = load(path)
    kept = {"mcpServers", "servers", "mcp_servers", "context_servers"}
    assert {key: value for key, value in after.items() if key not in kept} == {
        key: value for key, value in before.items() if key not in kept
    }
    text = path.read_text(encoding="utf-8")
    for comment in ("// asked once", "are everybody's */", "# the good one", "# inside", "// Zed settings", "# mine"):
        assert (comment in sample.text) == (comment in text)


@pytest.mark.requirement("X24")
def test_a_file_that_changed_since_is_not_restored_unless_asked(home: Path, terminal: Terminal) -> None:
    sample = SAMPLES[0]
    path = place(home, sample)
    assert terminal.run("install", "claude-code").code == 0
    changed = path.read_text(encoding="utf-8").replace('"numStartups": 41', '"numStartups": 42')
    path.write_text(changed, encoding="utf-8")
    refused = terminal.run("uninstall", "claude-code")
    assert refused.code == 2
    assert "--keep-changes" in refused.err and len(refused.err.splitlines()) == 1
    assert path.read_text(encoding="utf-8") == changed
    kept = terminal.run("uninstall", "claude-code", "--keep-changes")
    assert kept.code == 0, kept.err
    data = load(path)
    assert data["numStartups"] == 42
    assert data["mcpServers"] == load_text(sample.text)["mcpServers"]


def load_text(text: str) -> Any:
    return read_jsonc(text).data()


@by_client
@pytest.mark.requirement("X24")
def test_servers_can_be_put_back_into_a_changed_file_of_any_format(
    home: Path, terminal: Terminal, sample: Sample
) -> None:
    path = place(home, sample)
    before = load(path)
    assert terminal.run("install", sample.client).code == 0
    comment = "\n# new\n" if sample.path.endswith(("toml", "yaml")) else "\n// new\n"
    path.write_bytes(path.read_bytes() + comment.encode())
    kept = terminal.run("uninstall", sample.client, "--keep-changes")
    assert kept.code == 0, kept.err
    assert load(path) == before
    assert comment.strip() in path.read_text(encoding="utf-8")


@pytest.mark.requirement("X24")
def test_only_moves_the_named_servers(home: Path, terminal: Terminal) -> None:
    path = place(home, SAMPLES[7])
    before = tree(home)
    done = terminal.run("install", "zed", "--only", "older")
    assert done.code == 0, done.err
    assert list(servers_in(load(path))) == ["flat", "toolcrib", "postgres-context-server", "remote"]
    assert terminal.run("uninstall", "zed").code == 0
    assert tree(home) == before


@pytest.mark.requirement("X24")
def test_all_moves_every_client_and_takes_every_one_back(home: Path, terminal: Terminal) -> None:
    for sample in SAMPLES:
        place(home, sample)
    before = tree(home)
    done = terminal.run("install", "--all", "--json")
    assert done.code == 0, done.err
    assert [item["client"] for item in done.json] == [
        sample.client for sample in SAMPLES if sample.client != "mcp-json"
    ]
    assert terminal.run("uninstall", "--all").code == 0
    assert tree(home) == before


@pytest.mark.requirement("X24")
def test_a_link_stays_a_link(home: Path, terminal: Terminal) -> None:
    target = home / "dotfiles" / "cursor.json"
    target.parent.mkdir()
    target.write_text(SAMPLES[2].text, encoding="utf-8")
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(target)
    assert terminal.run("install", "cursor").code == 0
    assert link.is_symlink() and "toolcrib" in target.read_text(encoding="utf-8")
    assert terminal.run("uninstall", "cursor").code == 0
    assert link.is_symlink() and target.read_text(encoding="utf-8") == SAMPLES[2].text


@pytest.mark.requirement("X24")
def test_the_private_servers_of_a_project_move_with_the_project_scope(home: Path, terminal: Terminal) -> None:
    project = home / "project"
    text = SAMPLES[0].text.replace("/srv/site", str(project))
    path = home / ".claude.json"
    path.write_text(text, encoding="utf-8")
    done = terminal.run("install", "claude-code", "--scope", "all", "--json")
    assert done.code == 0, done.err
    assert done.json[0]["moved"] == ["playwright", "api", "local-only"]
    assert len(set(done.json[0]["gateway_files"])) == 2
    data = load(path)
    assert list(data["projects"][str(project)]["mcpServers"]) == ["toolcrib"]
    assert terminal.run("uninstall", "claude-code").code == 0
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.requirement("X24")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{\n  "mcpServers": {\n    "a": {"command": "x"}\n    "b": 1\n  }\n}', "mcp.json:4: "),
        ("not json", "mcp.json:1: "),
        ('{"mcpServers": {}}', "has no servers"),
        ('{"mcpServers": {"toolcrib": {"command": "x"}}}', "has a server `toolcrib` already"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "occurs twice"),
        ('{"mcpServers": {"a": {"args": ["x"]}}}', "neither `command` nor `url`"),
        ('{"mcpServers": {"a": {"command": "x", "args": {"b": 1}}}}', "no list of texts"),
        ("[]", "keys and values"),
        ("\udcff", "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence_and_stays_as_it_is(
    home: Path, terminal: Terminal, content: str, said: str
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = tree(home)
    refused = terminal.run("install", "cursor")
    assert refused.code == 2
    assert said in refused.err and len(refused.err.splitlines()) == 1
    assert "Traceback" not in refused.err
    assert tree(home) == before


@pytest.mark.requirement("X24")
def test_broken_toml_and_yaml_name_their_line(home: Path, terminal: Terminal) -> None:
    for client, name, text, line in (
        ("codex", ".codex/config.toml", 'a = 1\n[mcp_servers.x\ncommand = "y"\n', 2),
        ("hermes", ".hermes/config.yaml", "a: 1\nmcp_servers:\n  x: [1\n", 4),
    ):
        path = home / name
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        refused = terminal.run("install", client)
        assert refused.code == 2 and f"{path}:{line}: " in refused.err, refused.err
        assert path.read_text(encoding="utf-8") == text


@pytest.mark.requirement("X24")
def test_wrong_use_is_one_sentence(home: Path, terminal: Terminal) -> None:
    place(home, SAMPLES[2])
    before = tree(home)
    for args, said in (
        (("install",), "Found here, with servers: cursor (3)"),
        (("install", "cursor", "--all"), "Name one client"),
        (("install", "curser"), "did you mean `cursor`?"),
        (("install", "windsurf"), "is not there"),
        (("install", "cursor", "--only", "linaer"), "did you mean `linear`?"),
        (("install", "cursor", "--only", "here"), "known to the client only"),
        (("uninstall", "cursor"), "Nothing is installed"),
        (("uninstall",), "Name one client"),
    ):
        refused = terminal.run(*args)
        assert refused.code == 2, args
        assert said in refused.err and len(refused.err.splitlines()) == 1, refused.err
        assert tree(home) == before


@pytest.mark.requirement("X24")
def test_installing_twice_is_refused_and_a_lost_backup_too(home: Path, terminal: Terminal) -> None:
    path = place(home, SAMPLES[2])
    assert terminal.run("install", "cursor").code == 0
    written = path.read_bytes()
    again = terminal.run("install", "cursor")
    assert again.code == 2 and "installed already" in again.err
    (home / ".cursor" / "mcp.json.toolcrib-backup").write_text("{}", encoding="utf-8")
    refused = terminal.run("uninstall", "cursor")
    assert refused.code == 2 and "not the backup" in refused.err
    assert path.read_bytes() == written


@pytest.mark.requirement("X24")
def test_a_gateway_file_that_somebody_changed_is_kept(home: Path, terminal: Terminal) -> None:
    place(home, SAMPLES[2])
    assert terminal.run("install", "cursor").code == 0
    gateway = home / ".config" / "toolcrib" / "cursor.json"
    gateway.write_text("{}", encoding="utf-8")
    done = terminal.run("uninstall", "cursor")
    assert done.code == 0 and "kept" in done.out
    assert gateway.read_text(encoding="utf-8") == "{}"
    blocked = terminal.run("install", "cursor")
    assert blocked.code == 2 and "is there already" in blocked.err


@pytest.mark.requirement("X24")
def test_what_somebody_approved_is_kept_for_the_next_installation_of_that_client(
    home: Path, terminal: Terminal
) -> None:
    place(home, SAMPLES[2])
    assert terminal.run("install", "cursor").code == 0
    lock = home / ".config" / "toolcrib" / "cursor.lock"
    write_lock(lock, Lock())
    write_lock(lock.with_name("zed.lock"), Lock())
    assert terminal.run("uninstall", "cursor", "--dry-run", "--json").json[0]["kept_files"] == [str(lock)]
    done = terminal.run("uninstall", "cursor")
    assert done.code == 0 and f"kept, because it has what you approved: {lock}" in done.out
    assert lock.is_file() and not lock.with_suffix(".json").exists()
    assert terminal.run("install", "cursor").code == 0


@pytest.mark.requirement("X24")
def test_secrets_are_readable_by_their_owner_only(home: Path, terminal: Terminal) -> None:
    place(home, SAMPLES[1])
    report = terminal.run("install", "claude-desktop", "--json").json[0]
    directory = (home / SAMPLES[1].path).parent
    for path in (*map(Path, report["gateway_files"]), Path(report["backup"]), *directory.glob("*.toolcrib-manifest")):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.requirement("X24")
def test_a_dry_run_of_uninstall_shows_the_way_back_without_secrets(home: Path, terminal: Terminal) -> None:
    path = place(home, SAMPLES[1])
    assert terminal.run("install", "claude-desktop").code == 0
    before = tree(home)
    shown = terminal.run("uninstall", "claude-desktop", "--dry-run")
    assert shown.code == 0 and "+++" in shown.out and "NOTES_KEY" in shown.out
    assert "sk-very-secret" not in shown.out
    assert tree(home) == before and "toolcrib" in path.read_text(encoding="utf-8")
    assert terminal.run("uninstall", "claude-desktop", "--dry-run", "--json").json[0]["changed"] is False


@pytest.mark.requirement("X24")
def test_a_place_that_cannot_be_written_leaves_the_client_as_it_is(home: Path, terminal: Terminal) -> None:
    place(home, SAMPLES[2])
    (home / ".config").write_text("a file where a directory should be", encoding="utf-8")
    before = tree(home)
    refused = terminal.run("install", "cursor")
    assert refused.code == 2 and "cannot be written" in refused.err and len(refused.err.splitlines()) == 1
    assert tree(home) == before


@pytest.mark.requirement("X24")
def test_all_is_all_or_nothing(home: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for sample in SAMPLES[:4]:
        place(home, sample)
    before = tree(home)
    written: list[Path] = []

    def write_or_fail(path: Path, content: bytes, *, mode: int | None = None) -> None:
        written.append(path)
        if path.name == "mcp.json" and path.parent.name == ".cursor":
            raise ConfigError(f"{path}: cannot be written: no space left.")
        write_whole(path, content, mode=mode)

    monkeypatch.setattr(installing, "write_whole", write_or_fail)
    refused = terminal.run("install", "--all")
    assert refused.code == 2 and "no space left" in refused.err and len(refused.err.splitlines()) == 1
    assert any(path.name == ".claude.json" for path in written)
    assert tree(home) == before


@pytest.mark.requirement("X24")
def test_secrets_in_arguments_and_addresses_are_not_shown(home: Path, terminal: Terminal) -> None:
    entry = {
        "command": "npx",
        "args": ["mcp-remote", "https://h/mcp", "--header", "Authorization: Bearer tok-12345", "--api-key=key-67890"],
    }
    servers = {"a": entry, "b": {"url": "https://me:pass-111@h/mcp?token=tok-222"}}
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    shown = terminal.run("install", "cursor", "--dry-run").out
    assert "mcp-remote" in shown and "Authorization: Bearer ***" in shown
    for secret in ("tok-12345", "key-67890", "pass-111", "tok-222"):
        assert secret not in shown


@pytest.mark.requirement("X24")
def test_what_else_stands_in_a_file_of_one_line_is_shown_on_neither_side(home: Path, terminal: Terminal) -> None:
    account = {"apiKey": "sk-of-others", "said": "'''x=y'''"}
    stays = {"command": "other", "env": {"KEY": "sk-that-stays"}}
    servers = {"a": {"command": "npx", "env": {"TOKEN": "${A_TOKEN}"}}, "b": stays}
    path = home / ".claude.json"
    for text in ({"apiKey": "sk-of-others"}, account):
        path.write_text(json.dumps({"oauthAccount": text, "mcpServers": servers}), encoding="utf-8")
        shown = terminal.run("install", "claude-code", "--only", "a", "--dry-run").out
        assert terminal.run("install", "claude-code", "--only", "a").code == 0
        back = terminal.run("uninstall", "claude-code", "--dry-run").out
        assert terminal.run("uninstall", "claude-code").code == 0
        for diff in (shown, back):
            assert "+++" in diff and "sk-" not in diff
            assert ('"serve"' in diff and '"${A_TOKEN}"' in diff) == (text is not account)


@pytest.mark.requirement("X24")
def test_a_file_of_a_project_is_said_to_be_shared(home: Path, terminal: Terminal) -> None:
    place(home, SAMPLES[9])
    done = terminal.run("install", "mcp-json")
    assert done.code == 0 and "whoever shares this project" in done.out


@pytest.mark.requirement("X24")
def test_a_new_server_with_an_old_name_is_not_overwritten(home: Path, terminal: Terminal) -> None:
    path = place(home, SAMPLES[9])
    assert terminal.run("install", "mcp-json").code == 0
    text = path.read_text(encoding="utf-8").replace('"toolcrib": {', '"tool": {"command": "new"}, "toolcrib": {')
    path.write_text(text, encoding="utf-8")
    refused = terminal.run("uninstall", "mcp-json", "--keep-changes")
    assert refused.code == 2 and "`tool`" in refused.err
    assert path.read_text(encoding="utf-8") == text
    gone = '{"mcpServers": {"tool": {"command": "new"}}}'
    path.write_text(gone, encoding="utf-8")
    lost = terminal.run("uninstall", "mcp-json", "--keep-changes")
    assert lost.code == 2 and path.read_text(encoding="utf-8") == gone


@pytest.mark.requirement("X24", "S14")
@pytest.mark.parametrize(
    ("number", "before", "after", "args", "window", "threshold"),
    [
        (2, "", "", (), 200_000, 20_000),
        (2, "", "", ("--context", "32000"), 32_000, 3_200),
        (5, "# my settings", "model_context_window = 96000", (), 96_000, 9_600),
        (8, "  provider: custom", "  context_length: 65536", (), 65_536, 6_553),
        (8, "  provider: custom", "  context_length: 65536", ("--context", "1000000"), 1_000_000, 20_000),
        (8, "  provider: custom", "  context_length: many", (), 200_000, 20_000),
    ],
)
def test_the_gate_goes_by_the_window_given_that_of_the_file_or_the_usual_one(
    home: Path,
    terminal: Terminal,
    number: int,
    before: str,
    after: str,
    args: tuple[str, ...],
    window: int,
    threshold: int,
) -> None:
    sample = SAMPLES[number]
    path = place(home, sample)
    if before:
        path.write_text(sample.text.replace(before, after), encoding="utf-8")
    report = terminal.run("install", sample.client, "--json", *args).json[0]
    assert (report["context"], report["threshold_tokens"]) == (window, threshold)
    gateway = json.loads(Path(report["gateway_files"][0]).read_bytes())
    assert gateway["profiles"] == {"default": {"context": window}}
    assert terminal.run("uninstall", sample.client).code == 0
    shown = terminal.run("install", sample.client, "--dry-run", *args).out
    assert f"gate: {threshold:,} tokens of definitions or more are deferred" in shown
