"""Replacing servers in YAML, line by line.

PyYAML tells where every node begins; where a block ends is taken from its last leaf, because the parser's own mark
stands after the comments that follow. What an edit means is always checked by reading the result.
"""

import json
from collections.abc import Collection, Sequence
from typing import cast

import yaml

from toolcrib.clients.base import ENTRY, Section
from toolcrib.clients.spans import Change, apply_changes, join_lines, line_end, line_start, newline_of
from toolcrib.definitions import Json, JsonObject
from toolcrib.jsonc import TextError
from toolcrib.yaml_text import read_yaml


def load(text: str) -> Json:
    """The data of a text. Raises `TextError`."""
    return cast("Json", read_yaml(text, twice=True) or {})


def replace_servers(text: str, section: Section, names: Collection[str], entry: JsonObject) -> tuple[str, list[str]]:
    """The text with `names` replaced by the gateway's entry, and the source text of what went."""
    node = _require_section(text, section)
    pairs = [(str(key.value), key, value) for key, value in node.value]
    going = [(key, value) for name, key, value in pairs if name in names]
    if not going:
        raise TextError("there is nothing to replace", node.start_mark.index)
    if node.flow_style:
        return _replace_in_flow(text, node, names, entry)
    spans = [(line_start(text, key.start_mark.index), line_end(text, _end(text, value))) for key, value in going]
    column = going[0][0].start_mark.column
    ours = _lines(entry, " " * column).replace("\n", newline_of(text))
    changes = [Change(start, end, "") for start, end in spans]
    changes[0] = Change(spans[0][0], spans[0][1], ours)
    return apply_changes(text, changes), [text[start:end] for start, end in spans]


def put_back(text: str, section: Section, pieces: Sequence[str]) -> str:
    """The text with the gateway's entry replaced by servers that had gone."""
    node = _require_section(text, section)
    found = [(key, value) for key, value in node.value if str(key.value) == ENTRY]
    if not found:
        raise TextError(f"there is no `{ENTRY}` any more", node.start_mark.index)
    key, value = found[0]
    if node.flow_style:
        return apply_changes(text, [Change(key.start_mark.index, _end(text, value), ", ".join(pieces))])
    start, end = line_start(text, key.start_mark.index), line_end(text, _end(text, value))
    return apply_changes(text, [Change(start, end, join_lines(pieces, text, end))])


def _replace_in_flow(
    text: str, node: yaml.MappingNode, names: Collection[str], entry: JsonObject
) -> tuple[str, list[str]]:
    kept: list[str] = []
    gone: list[str] = []
    for key, value in node.value:
        (gone if str(key.value) in names else kept).append(text[key.start_mark.index : _end(text, value)])
    ours = f"{ENTRY}: {json.dumps(entry, ensure_ascii=False)}"
    inner = ", ".join([ours, *kept])
    return apply_changes(text, [Change(node.start_mark.index, node.end_mark.index, "{" + inner + "}")]), gone


def _lines(entry: JsonObject, indent: str) -> str:
    """The gateway's entry as a block. JSON texts are YAML texts, whatever they hold."""
    body = "".join(f"{indent}  {key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items())
    return f"{indent}{ENTRY}:\n{body}"


def _require_section(text: str, section: Section) -> yaml.MappingNode:
    load(text)
    loader = yaml.SafeLoader(text)
    node: yaml.Node | None = loader.get_single_node()
    for key in section:
        if not isinstance(node, yaml.MappingNode):
            break
        node = next((value for name, value in node.value if str(name.value) == key), None)
    if not isinstance(node, yaml.MappingNode):
        raise TextError(f"there is no `{'.'.join(section)}`", 0)
    return node


def _end(text: str, node: yaml.Node) -> int:
    """Where the last leaf of a node ends."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(text, node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(text, node.value[-1])
    end = node.end_mark.index
    while end > node.start_mark.index and text[end - 1] in " \t\r\n":
        end -= 1
    return end
