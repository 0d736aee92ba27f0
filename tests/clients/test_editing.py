"""Edits of all formats: what goes, what stays, and that nothing else changes, for files written in any manner."""

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolcrib.clients.editing import load_data, put_back, replace_servers
from toolcrib.definitions import JsonObject
from toolcrib.jsonc import TextError, read_jsonc

ENTRY: JsonObject = {"command": "/bin/toolcrib", "args": ["serve", "--config", '/tmp/a "b".json']}

blanks = st.lists(st.sampled_from([" ", "\n", "\t", "\r\n", "/* c, } */", "// { ,\n", "/**/"]), max_size=3).map("".join)
names = st.text(alphabet='abcdefgh-_. é"', min_size=1, max_size=6).filter(lambda name: name != "toolcrib")


@st.composite
def jsonc_files(draw: st.DrawFn) -> tuple[str, list[str]]:
    servers = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    parts: list[str] = []
    for name in servers:
        value = draw(st.sampled_from(['{"command": "x"}', '{ /* } */ "url": "http://y" }', '{"a": [1, {"b": 2},]}']))
        parts.append(f"{json.dumps(name)}{draw(blanks)}:{draw(blanks)}{value}")
    body = draw(blanks)
    for index, part in enumerate(parts):
        body += part + draw(blanks)
        if index < len(parts) - 1 or draw(st.booleans()):
            body += "," + draw(blanks)
    tail = draw(st.sampled_from(["", ",", ', "z": [1]', ', "z": {"mcpServers": {"no": 1}},']))
    head = f'{draw(blanks)}{{{draw(blanks)}"theme": "d",{draw(blanks)}"mcpServers":{draw(blanks)}'
    text = f"{head}{{{body}}}{tail}{draw(blanks)}}}"
    return text, servers


def as_written(text: str, data: st.DataObject) -> str:
    """With the line breaks of another system, or without the last one."""
    text = text.replace("\n", "\r\n") if data.draw(st.booleans()) else text
    # A text block at the very end means something else with a line break than without: that is refused, not tried.
    bare = data.draw(st.booleans()) and not text.rstrip().endswith("lines")
    return text.rstrip("\r\n") if bare else text


def comments(text: str) -> int:
    return text.count("/* c") + text.count("// {") + text.count("/**/")


@pytest.mark.requirement("X24")
@settings(max_examples=150, deadline=None)
@given(jsonc_files(), st.data())
def test_json_with_comments_keeps_everything_but_the_servers(file: tuple[str, list[str]], data: st.DataObject) -> None:
    text, servers = file
    going = data.draw(st.lists(st.sampled_from(servers), min_size=1, unique=True))
    before: Any = load_data(text, "jsonc")
    new, pieces = replace_servers(text, "jsonc", ("mcpServers",), going, ENTRY)
    after = load_data(new, "jsonc")
    kept = {name: value for name, value in before["mcpServers"].items() if name not in going}
    assert after == {**before, "mcpServers": {**kept, "toolcrib": ENTRY}}
    assert comments(new) + sum(map(comments, pieces)) == comments(text)
    back = put_back(new, "jsonc", ("mcpServers",), pieces, {name: before["mcpServers"][name] for name in going})
    assert load_data(back, "jsonc") == before


@pytest.mark.requirement("X24")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True), min_size=1, max_size=5, unique=True),
    st.data(),
)
def test_toml_keeps_everything_but_the_servers(servers: list[str], data: st.DataObject) -> None:
    assume("toolcrib" not in servers)
    style = data.draw(st.sampled_from(["tables", "inline", "dotted"]))
    between = st.sampled_from(["", "\n", "# [mcp_servers.no]\n", "\n\n"])
    lines = ["top = 1 # [not]\n", data.draw(between)]
    if style == "inline":
        lines.append("[mcp_servers]\n")
    for name in servers:
        key = data.draw(st.sampled_from([name, f'"{name}"', f"'{name}'"]))
        args = data.draw(st.sampled_from(['["a"]', '[\n  "]", # [\n  "b",\n]', "['''x\n[y]''']"]))
        if style == "tables":
            lines.append(f'[mcp_servers.{key}]\ncommand = "c" # x\n{data.draw(between)}args = {args}\n')
            if data.draw(st.booleans()):
                lines.append(f'{data.draw(between)}[mcp_servers.{key}.env]\nA = "b"\n')
        elif style == "inline":
            lines.append(f'{key} = {{ command = "c", args = ["]", "}}"] }}\n')
        else:
            lines.append(f'mcp_servers.{key}.command = "c"\nmcp_servers.{key}.args = {args}\n')
        lines.append(data.draw(between))
    lines.append('[other]\nx = """\n[mcp_servers.no]\n"""\n')
    if data.draw(st.booleans()):
        lines.pop()
    text = as_written("".join(lines), data)
    before = tomllib.loads(text)
    going = data.draw(st.lists(st.sampled_from(servers), min_size=1, unique=True))
    new, pieces = replace_servers(text, "toml", ("mcp_servers",), going, ENTRY)
    kept = {name: value for name, value in before["mcp_servers"].items() if name not in going}
    assert tomllib.loads(new) == {**before, "mcp_servers": {**kept, "toolcrib": ENTRY}}
    originals = {name: before["mcp_servers"][name] for name in going}
    back = put_back(new, "toml", ("mcp_servers",), pieces, originals)
    assert tomllib.loads(back) == before


@pytest.mark.requirement("X24")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True), min_size=1, max_size=5, unique=True), st.data())
def test_yaml_keeps_everything_but_the_servers(servers: list[str], data: st.DataObject) -> None:
    assume(not {"toolcrib", "y", "n", "no", "yes", "on", "off", "null", "true", "false"} & set(servers))
    between = st.sampled_from(["", "\n", "  # a: comment\n", "# at the edge\n"])
    shapes = [
        "  {0}:\n    command: c   # x\n    args:\n      - a\n      - 'b: c'\n",
        "  {0}: {{command: c, args: [a, 'b']}}  # flow\n",
        "  {0}:\n    command: c\n    env:\n      A: |\n        two\n        lines\n",
        "  '{0}':\n      url: http://x\n",
    ]
    text = "a: 1 # one\nmcp_servers:\n" + "".join(
        data.draw(between) + data.draw(st.sampled_from(shapes)).format(name) for name in servers
    )
    text += data.draw(between) + data.draw(st.sampled_from(["", "z:\n  - 1\n"]))
    text = as_written(text, data)
    before = yaml.safe_load(text)
    going = data.draw(st.lists(st.sampled_from(servers), min_size=1, unique=True))
    new, pieces = replace_servers(text, "yaml", ("mcp_servers",), going, ENTRY)
    kept = {name: value for name, value in before["mcp_servers"].items() if name not in going}
    assert yaml.safe_load(new) == {**before, "mcp_servers": {**kept, "toolcrib": ENTRY}}
    originals = {name: before["mcp_servers"][name] for name in going}
    assert yaml.safe_load(put_back(new, "yaml", ("mcp_servers",), pieces, originals)) == before


def test_flow_yaml_and_windows_line_breaks_are_edited_too() -> None:
    new, _ = replace_servers("mcp_servers: {a: {command: x}, b: {url: y}}\n", "yaml", ("mcp_servers",), ["a"], ENTRY)
    assert yaml.safe_load(new) == {"mcp_servers": {"toolcrib": ENTRY, "b": {"url": "y"}}}
    text = '{\r\n  "mcpServers": {\r\n    "a": {"command": "x"}\r\n  }\r\n}\r\n'
    new, _ = replace_servers(text, "jsonc", ("mcpServers",), ["a"], ENTRY)
    assert new.count("\n") == new.count("\r\n")


def test_what_cannot_be_edited_safely_is_refused() -> None:
    with pytest.raises(TextError, match="inline table"):
        replace_servers('mcp_servers = { a = { command = "x" } }\n', "toml", ("mcp_servers",), ["a"], ENTRY)
    anchored = "mcp_servers:\n  a: &a\n    command: x\n  b: *a\n"
    with pytest.raises(TextError, match="cannot be edited safely"):
        replace_servers(anchored, "yaml", ("mcp_servers",), ["a"], ENTRY)


def test_an_old_name_that_is_taken_again_is_not_overwritten() -> None:
    text = '{"mcpServers": {"toolcrib": {"command": "t"}, "a": {"command": "new"}}}'
    with pytest.raises(TextError, match="`a`"):
        put_back(text, "jsonc", ("mcpServers",), ['"a": {"command": "old"}'], {"a": {"command": "old"}})
    assert read_jsonc(text).get("mcpServers") is not None
