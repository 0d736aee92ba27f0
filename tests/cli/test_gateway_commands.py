import json
import re
import sys
from pathlib import Path

import orjson
import pytest
from tests.cli.terminal import Terminal
from typer.testing import CliRunner

from toolcrib.cli.app import build_app
from toolcrib.errors import ConfigError

BAD = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"
runner = CliRunner()


@pytest.mark.requirement("X19", "G4")
def test_a_token_is_created_listed_and_revoked(tmp_path: Path):
    file = ["--file", str(tmp_path / "tokens.json")]
    made = runner.invoke(build_app(), ["token", "create", "ann", "--profile", "reader", "--json", *file])
    secret = json.loads(made.stdout)["token"]
    listed = runner.invoke(build_app(), ["token", "list", "--json", *file])
    assert [(item["name"], item["profile"]) for item in json.loads(listed.stdout)] == [("ann", "reader")]
    assert secret not in listed.output
    revoked = runner.invoke(build_app(), ["token", "revoke", "ann", *file])
    assert revoked.exit_code == 0 and "The token `ann` is revoked" in revoked.stderr and not revoked.stdout
    assert runner.invoke(build_app(), ["token", "revoke", "ann", *file]).exit_code == 1


@pytest.mark.requirement("J12", "X27")
def test_a_token_is_for_the_console_or_has_a_profile(tmp_path: Path):
    both = ["token", "create", "olga", "--console", "--profile", "x", "--file", str(tmp_path / "tokens.json")]
    refused = runner.invoke(build_app(), both)
    assert isinstance(refused.exception, ConfigError)
    assert "not both" in str(refused.exception)


def test_a_token_for_the_console_says_so(tmp_path: Path):
    file = ["--file", str(tmp_path / "tokens.json")]
    made = runner.invoke(build_app(), ["token", "create", "olga", "--console", "--json", *file])
    assert json.loads(made.stdout)["role"] == "console"
    runner.invoke(build_app(), ["token", "create", "ann", *file])
    listed = json.loads(runner.invoke(build_app(), ["token", "list", "--json", *file]).stdout)
    assert [item["role"] for item in listed] == ["console", "client"]
    assert runner.invoke(build_app(), ["token", "list", *file]).stdout.startswith("olga  console  expires")
    config = tmp_path / "toolcrib.yaml"
    config.write_text(f"gateway: {{tokens: {tmp_path}/only.json}}\n")
    runner.invoke(build_app(), ["token", "create", "olga", "--console", "--file", str(tmp_path / "only.json")])
    with pytest.raises(ConfigError, match="HTTP needs a token"):
        runner.invoke(build_app(), ["serve", "--config", str(config), "--http", "127.0.0.1:0"], catch_exceptions=False)


def test_a_new_token_says_when_it_ends_and_an_empty_list_how_to_make_one(tmp_path: Path):
    file = ["--file", str(tmp_path / "tokens.json")]
    assert "`toolcrib token create NAME` makes one" in runner.invoke(build_app(), ["token", "list", *file]).stderr
    made = runner.invoke(build_app(), ["token", "create", "ann", "--days", "1", *file])
    assert re.search(r"It expires \d{4}-\d\d-\d\d\.$", made.stderr.strip())
    assert made.stdout.strip().startswith("tcr_") and len(made.stdout.split()) == 1, "a pipe gets the token alone"


def test_what_to_do_without_a_token_names_the_file_that_is_read(tmp_path: Path):
    config = tmp_path / "toolcrib.yaml"
    config.write_text(f"gateway: {{tokens: {tmp_path}/ours.json}}\n")
    with pytest.raises(ConfigError, match=rf"`toolcrib token create NAME --file {tmp_path}/ours.json`"):
        runner.invoke(build_app(), ["serve", "--config", str(config), "--http", "127.0.0.1:0"], catch_exceptions=False)


@pytest.mark.requirement("X17")
def test_one_tool_is_called_from_the_command_line(tmp_path: Path):
    config = tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": [str(BAD), "--mode", "ok"], "alwaysAllow": ["x"]}
    config.write_bytes(orjson.dumps({"mcpServers": {"one": entry}, "theme": "dark"}))
    good = runner.invoke(build_app(), ["call", "one__echo", '{"message": "hi"}', "--config", str(config)])
    assert (good.exit_code, good.stdout.strip()) == (0, "hi")
    whole = runner.invoke(build_app(), ["call", "one__echo", '{"message": "hi"}', "--json", "--config", str(config)])
    assert json.loads(whole.stdout)["content"][0]["text"] == "hi"
    piped = runner.invoke(build_app(), ["call", "one__echo", "-", "--config", str(config)], input='{"message": "ho"}\n')
    assert (piped.exit_code, piped.stdout.strip()) == (0, "ho")
    bad = runner.invoke(build_app(), ["call", "one__nothing", "--config", str(config)])
    assert bad.exit_code == 1


def test_a_result_that_is_no_text_is_named(tmp_path: Path):
    config = tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": [str(BAD.with_name("conformance_server.py")), "--stdio"]}
    config.write_bytes(orjson.dumps({"mcpServers": {"one": entry}}))
    for tool, named in {
        "one__test_image_content": "[image, image/png: --json has it]",
        "one__test_embedded_resource": "[resource, test://embedded-resource, text/plain: --json has it]",
    }.items():
        called = runner.invoke(build_app(), ["call", tool, "--config", str(config)])
        assert (called.exit_code, called.stdout.strip()) == (0, named)


def test_a_terminal_does_not_obey_what_a_tool_answers(tmp_path: Path, terminal: Terminal):
    config = tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": [str(BAD), "--mode", "ok"]}
    config.write_bytes(orjson.dumps({"mcpServers": {"one": entry}}))
    command = ("call", "one__echo", '{"message": "\\u001b[31mred"}', "--config", str(config))
    assert terminal.run(*command).out == "\x1b[31mred\n", "a pipe gets every byte"
    terminal.monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert terminal.run(*command).out == "‹U+001B›[31mred\n"


@pytest.mark.requirement("F3")
def test_serving_without_a_configuration_or_a_token_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="--config"):
        runner.invoke(build_app(), ["serve"], catch_exceptions=False)
    (tmp_path / "toolcrib.yaml").write_text("mcpServers: {}\n")
    with pytest.raises(ConfigError, match="token create"):
        runner.invoke(build_app(), ["serve", "--http", "127.0.0.1:0"], catch_exceptions=False)
    with pytest.raises(ConfigError, match="no profile"):
        runner.invoke(build_app(), ["serve", "--profile", "nobody"], catch_exceptions=False)
