"""Configuration: every wrong key and value is named, and every value has an origin."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolcrib.config import _WITHOUT_SECTION, build_settings, load_settings, lock_file
from toolcrib.errors import ConfigError
from toolcrib.settings import Settings
from toolcrib.wrong_settings import known_keys


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "toolcrib.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def search(value: Any) -> Any:
    return build_settings({"tools": {"tool_search": value}}).tools.tool_search


@pytest.mark.requirement("S12")
@pytest.mark.parametrize(
    ("value", "enabled"),
    [
        (True, "auto"),
        (False, "off"),
        ({}, "auto"),
        ({"enabled": "auto"}, "auto"),
        ({"enabled": True}, "on"),
        ({"enabled": "on"}, "on"),
        ({"enabled": False}, "off"),
        ({"enabled": "yes"}, "on"),
        ({"enabled": "0"}, "off"),
    ],
)
def test_the_shorthands_mean_what_they_always_meant(value: Any, enabled: str) -> None:
    assert search(value).enabled == enabled


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tools": {"tool_serch": {}}}, "`tools.tool_serch` is no setting: did you mean `tool_search`?"),
        (
            {"tools": {"tool_search": {"treshold_pct": 5}}},
            "`tools.tool_search.treshold_pct` is no setting: did you mean `threshold_pct`?",
        ),
        ({"tols": {}}, "`tols` is no setting: did you mean `tools`?"),
        ({"mcpServers": {False: {}}}, "`mcpServers`: a name in it is read as `bool`, not as text: put it in quotes."),
        (
            {"tools": {"tool_search": {"threshold_pct": 101}}},
            "`tools.tool_search.threshold_pct`: Expected `float` <= 100",
        ),
        (
            {"tools": {"tool_search": {"max_search_limit": 0}}},
            "`tools.tool_search.max_search_limit`: Expected `int` >= 1",
        ),
        ({"tools": {"tool_search": {"enabled": "sometimes"}}}, "Invalid enum value 'sometimes'"),
        (
            {"tools": {"tool_search": {"semantic": "onnx"}}},
            "`tools.tool_search.semantic`: `onnx` is no longer there: use `static`.",
        ),
        ({"tools": {"tool_search": {"enabled": 7}}}, "`tools.tool_search.enabled`"),
        ({"tools": {"tool_search": {"search_default_limit": 9, "max_search_limit": 5}}}, "`max_search_limit` (5)"),
        ({"tools": {"tool_search": {"reranker": {"mode": "best"}}}}, "`tools.tool_search.reranker.mode`"),
        ({"approvals": {"rules": {"delete_*": "maybe"}}}, "`approvals.rules.delete_*`"),
        ({"tools": 7}, "`tools`: Expected `object`, got `int`"),
        ({"pins": "on"}, "`pins`: Invalid enum value 'on'"),
        ({"screening": True}, "`screening`: Expected `str`, got `bool`"),
        ({"python": {"m": {"modul": "math"}}}, "`python.m.modul` is no setting"),
        (
            {"mcpServers": {"good": {"command": "x"}, "bad": {"comand": "x"}}},
            "`mcpServers.bad.comand` is no setting: did you mean `command`?",
        ),
        ({"mcpServers": {"good": {"command": "x"}, "bad": "npx y"}}, "`mcpServers.bad`: Expected `object`, got `str`"),
        (
            {"mcpServers": {"a": {"command": "x", "env": {"HOST": "h", "PORT": 8080}}}},
            "`mcpServers.a.env.PORT`: Expected `str`, got `int`: put it in quotes.",
        ),
        (
            {"mcpServers": {"a": {"command": "x", "args": ["--port", 8080]}}},
            "`mcpServers.a.args[1]`: Expected `str`, got `int`: put it in quotes.",
        ),
        ({"tools": {"aliases": {"a": ["x"], "b": ["y", 7]}}}, "`tools.aliases.b[1]`: Expected `str`, got `int`."),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(data: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_settings(data, where="toolcrib.yaml")
    assert str(caught.value).startswith("toolcrib.yaml: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tools: [", ":1: is no valid YAML"),
        ("- a\n- b", "must hold keys and values"),
        ("7", "must hold keys and values"),
        ("tools:\n\t- x", ":2: is no valid YAML"),
        (
            "approvals: {ttl_s: 60}\npins: off\napprovals: {}\n",
            ":3: is no valid YAML: the key `approvals` occurs twice",
        ),
        ("a: &a {b: *a}", ":1: is no valid YAML: a part contains itself"),
        ("a: 1\npins: !!bool maybe", ":2: is no valid YAML: this cannot be read as `!!bool`"),
        ('a: 1\nb: !!float ""', ":2: is no valid YAML: this cannot be read as `!!float`"),
        ('a: 1\nb: !!int ""', ":2: is no valid YAML: this cannot be read as `!!int`"),
        ("a: 1\nb: {c: [!!timestamp x]}", ":2: is no valid YAML: this cannot be read as `!!timestamp`"),
        (r'a: "\Uffffffff"', ":1: is no valid YAML: a character or a number in it is out of range"),
        (r'a: "\U00110000"', ":1: is no valid YAML: a character or a number in it is out of range"),
        (f"a: 1{':00' * 200}.0", ":1: is no valid YAML: this cannot be read as `!!float`"),
        ("a: 1\nb: 2026-02-31", ":2: is no valid YAML: day is out of range"),
        (f"a: {'[' * 250}{']' * 250}", ":1: is no valid YAML: it is nested too deeply"),
        (f"a: {'[' * 5_000}{']' * 5_000}", ":1: is no valid YAML: it is nested too deeply"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ={})
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_part_may_be_used_twice_and_what_it_merges_be_overridden(tmp_path: Path) -> None:
    path = write(tmp_path, "mcpServers:\n  a: &a {command: x, args: [b]}\n  c: *a\n  d: {<<: *a, command: y}\n")
    servers = load_settings(path, environ={}).settings.mcpServers
    assert [(each.command, each.args) for each in servers.values()] == [("x", ("b",)), ("x", ("b",)), ("y", ("b",))]


def test_a_missing_directory_or_undecodable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_settings(tmp_path / "no.yaml", environ={})
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_settings(tmp_path, environ={})
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_settings(path, environ={})


def test_later_layers_win_and_every_value_says_where_it_came_from(tmp_path: Path) -> None:
    path = write(
        tmp_path, "tools:\n  tool_search:\n    enabled: on\n    threshold_pct: 5\n    search_default_limit: 3\n"
    )
    loaded = load_settings(
        path,
        environ={"TOOLCRIB_TOOLS__TOOL_SEARCH__THRESHOLD_PCT": "7.5", "TOOLCRIB_DEBUG": "1", "HOME": "/x"},
        flags={"tools.tool_search.search_default_limit": 4},
    )
    found = loaded.settings.tools.tool_search
    assert (found.enabled, found.threshold_pct, found.search_default_limit) == ("on", 7.5, 4)
    assert loaded.origins == {
        "tools.tool_search.enabled": f"file:{path}",
        "tools.tool_search.threshold_pct": "env:TOOLCRIB_TOOLS__TOOL_SEARCH__THRESHOLD_PCT",
        "tools.tool_search.search_default_limit": "flag",
    }


def test_a_variable_that_is_wrong_is_named_and_not_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "pins: off\n")
    environ = {"TOOLCRIB_LIMITS__CALL_DEADLINE_S": "3", "TOOLCRIB_TOOLS__TOOL_SERCH__ENABLED": "on"}
    with pytest.raises(ConfigError, match=r"^TOOLCRIB_TOOLS__TOOL_SERCH__ENABLED: `tools.tool_serch` is no setting"):
        load_settings(path, environ=environ)
    wrong_file = write(tmp_path, "pinns: off\n")
    with pytest.raises(ConfigError, match=r"toolcrib.yaml: `pinns` is no setting"):
        load_settings(wrong_file, environ={"TOOLCRIB_LIMITS__CALL_DEADLINE_S": "3"})


def test_a_setting_that_is_in_no_section_can_be_set_by_the_environment() -> None:
    loaded = load_settings(
        environ={"TOOLCRIB_PINS": "enforce", "TOOLCRIB_SCREENING": "off", "TOOLCRIB_PYTHON": "/usr/bin/python"}
    )
    assert (loaded.settings.pins, loaded.settings.screening) == ("enforce", "off")
    assert loaded.origins["pins"] == "env:TOOLCRIB_PINS"


def test_a_json_file_may_have_tabs_comments_and_trailing_commas(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        '{\n\t// mine\n\t"mcpServers": {\n\t\t"a": {"command": "x", "args": ["// no comment"],},\n\t},\n}\n'
    )
    assert load_settings(path, environ={}).settings.mcpServers["a"].args == ("// no comment",)


@pytest.mark.requirement("X17")
def test_the_words_of_other_clients_for_the_same_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "a": {"type": "streamableHttp", "url": "https://a.example/mcp", "headers": None, "alwaysAllow": []},
                    "b": {"type": "local", "command": "x", "args": None, "env": None},
                    "c": {"type": "remote", "serverUrl": "https://c.example/mcp"},
                    "d": {"httpUrl": "https://d.example/mcp", "includeTools": ["a"], "excludeTools": ["b"]},
                }
            }
        )
    )
    servers = load_settings(path, environ={}).settings.mcpServers
    assert {name: (entry.type, entry.command, entry.url) for name, entry in servers.items()} == {
        "a": ("streamable-http", None, "https://a.example/mcp"),
        "b": ("stdio", "x", None),
        "c": (None, None, "https://c.example/mcp"),
        "d": (None, None, "https://d.example/mcp"),
    }
    assert (servers["d"].include, servers["d"].exclude) == (("a",), ("b",))


@pytest.mark.parametrize("text", ['{\n  "mcpServers": {\n    "a": {"command": }\n  }\n}\n', '{\n\n"mcpServers" 7}'])
def test_a_broken_json_file_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"mcp\.json:3: is no valid JSON"):
        load_settings(path, environ={})


def test_the_environment_can_complete_a_shorthand(tmp_path: Path) -> None:
    path = write(tmp_path, "tools: {tool_search: false}\n")
    loaded = load_settings(path, environ={"TOOLCRIB_TOOLS__TOOL_SEARCH__LISTING": "off"})
    assert (loaded.settings.tools.tool_search.enabled, loaded.settings.tools.tool_search.listing) == ("off", "off")


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, ""), environ={}).settings == build_settings({})


def test_the_known_keys_of_every_section_can_be_asked_for() -> None:
    assert "tool_search" in known_keys("tools")
    assert "endpoint" in known_keys("tools.tool_search.reranker")
    assert "module" in known_keys("python[...]")
    assert known_keys("nowhere") == ()


def test_off_without_quotes_switches_pins_and_screening_off(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("pins: off\nscreening: off\n")
    settings = load_settings(path, environ={}).settings
    assert (settings.pins, settings.screening) == ("off", "off")


def test_every_setting_of_a_single_word_can_be_set_by_the_environment() -> None:
    plain = {name for name, value in msgspec.structs.asdict(Settings()).items() if isinstance(value, str | bool)}
    assert {*plain, "lock"} == set(_WITHOUT_SECTION)


def test_files_that_a_configuration_names_are_beside_it_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    text = "activity: {file: logs/feed.jsonl}\ngateway: {tokens: t.json}\nlock: approved.lock\n"
    path = write(tmp_path / "conf", text)
    monkeypatch.chdir(tmp_path)
    for named in (path, Path("conf/toolcrib.yaml")):
        settings = load_settings(named, environ={}).settings
        assert Path(settings.activity.file or "").resolve() == tmp_path / "conf/logs/feed.jsonl"
        assert Path(settings.gateway.tokens or "").resolve() == tmp_path / "conf/t.json"
        assert lock_file(named, settings).resolve() == tmp_path / "conf/approved.lock"


@pytest.mark.parametrize(
    ("name", "lock"),
    [
        ("toolcrib.yaml", "toolcrib.lock"),
        ("cursor.json", "cursor.lock"),
        ("claude-code-1f0c2d9a.json", "claude-code-1f0c2d9a.lock"),
        ("settings.local.yaml", "settings.local.lock"),
        ("plain", "plain.lock"),
        ("odd.lock", "odd.lock.lock"),
    ],
)
@pytest.mark.requirement("X21")
def test_a_lock_that_nobody_names_is_the_configurations_own(name: str, lock: str) -> None:
    settings = load_settings(environ={}).settings
    assert lock_file(Path("conf", name), settings) == Path("conf", lock)
    assert lock_file(Path(name), settings) == Path(lock)


def test_a_file_by_its_whole_name_or_in_ones_home_is_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    variables = {"TOOLCRIB_ACTIVITY__FILE": "/var/feed.jsonl", "TOOLCRIB_GATEWAY__TOKENS": "~/t.json"}
    settings = load_settings(write(tmp_path, ""), environ=variables).settings
    assert settings.activity.file == "/var/feed.jsonl"
    assert settings.gateway.tokens == str(tmp_path / "me/t.json")


def test_a_file_in_the_home_of_nobody_is_said_in_words(tmp_path: Path) -> None:
    said = r"`~nobody-of-this-name/x` names the home of nobody here: write the whole path\."
    for text in ("activity: {file: ~nobody-of-this-name/x}", "gateway: {tokens: ~nobody-of-this-name/x}"):
        with pytest.raises(ConfigError, match=said):
            load_settings(write(tmp_path, text), environ={})
    path = write(tmp_path, "lock: ~nobody-of-this-name/x")
    with pytest.raises(ConfigError, match=said):
        lock_file(path, load_settings(path, environ={}).settings)


def test_without_a_configuration_file_a_feed_is_where_one_stands() -> None:
    settings = load_settings(environ={"TOOLCRIB_ACTIVITY__FILE": "feed.jsonl"}).settings
    assert settings.activity.file == "feed.jsonl"


@pytest.mark.parametrize("key", ["semantic", "abstention"])
def test_off_without_quotes_switches_meaning_and_abstention_off(tmp_path: Path, key: str) -> None:
    path = write(tmp_path, f"tools: {{tool_search: {{{key}: off}}}}\n")
    assert getattr(load_settings(path, environ={}).settings.tools.tool_search, key) == "off"
    with pytest.raises(ConfigError, match=f"tools.tool_search.{key}"):
        load_settings(write(tmp_path, f"tools: {{tool_search: {{{key}: on}}}}\n"), environ={})
