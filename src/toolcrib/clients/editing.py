"""One way to edit all formats: read, replace, and prove that the result means what it should.

An edit is taken only if reading the new text gives exactly the old data with the servers swapped for the gateway's
entry. Whatever a scanner may have misread, a file is never changed in any other way.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from toolcrib.clients import json_editing, toml_editing, yaml_editing
from toolcrib.clients.base import ENTRY, Format, Section, as_object
from toolcrib.definitions import Json, JsonObject
from toolcrib.jsonc import TextError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Editor:
    load: Callable[[str], Json]
    replace: Callable[[str, Section, Collection[str], JsonObject], tuple[str, list[str]]]
    put_back: Callable[[str, Section, Sequence[str]], str]


_EDITORS: Mapping[Format, _Editor] = {
    "jsonc": _Editor(
        load=json_editing.load, replace=json_editing.replace_servers, put_back=json_editing.put_back
    ),
    "toml": _Editor(load=toml_editing.load, replace=toml_editing.replace_servers, put_back=toml_editing.put_back),
    "yaml": _Editor(load=yaml_editing.load, replace=yaml_editing.replace_servers, put_back=yaml_editing.put_back),
}  # fmt: skip


def load_data(text: str, format: Format) -> JsonObject:
    """The data of a text. Raises `TextError`."""
    data = as_object(_EDITORS[format].load(text))
    if data is None:
        raise TextError("it should hold keys and values", 0)
    return data


def servers_at(data: JsonObject, section: Section) -> JsonObject | None:
    """The mapping of servers, if the data has one."""
    node: JsonObject | None = data
    for key in section:
        node = as_object(node.get(key)) if node is not None else None
    return node


def replace_servers(
    text: str, format: Format, section: Section, names: Collection[str], entry: JsonObject
) -> tuple[str, list[str]]:
    """The text with `names` replaced by the gateway's entry, and the source text of what went. Raises `TextError`."""
    before = load_data(text, format)
    servers = servers_at(before, section) or {}
    wanted: JsonObject = {name: value for name, value in servers.items() if name not in names}
    new, pieces = _EDITORS[format].replace(text, section, names, entry)
    _require_meaning(before, new, format, section, {**wanted, ENTRY: entry})
    return new, pieces


def put_back(text: str, format: Format, section: Section, pieces: Sequence[str], originals: JsonObject) -> str:
    """The text with the gateway's entry replaced by the servers that had gone. Raises `TextError`."""
    before = load_data(text, format)
    servers = servers_at(before, section) or {}
    taken = sorted(set(servers) & set(originals))
    if taken:
        raise TextError(f"there is a new server `{taken[0]}` with an old one's name", 0)
    wanted: JsonObject = {name: value for name, value in servers.items() if name != ENTRY}
    new = _EDITORS[format].put_back(text, section, pieces)
    _require_meaning(before, new, format, section, {**wanted, **originals})
    return new


def _require_meaning(before: JsonObject, new: str, format: Format, section: Section, servers: JsonObject) -> None:
    expected = _with_servers(before, section, servers)
    try:
        found = load_data(new, format)
    except TextError as error:
        raise TextError(f"it is written in a way that cannot be edited safely ({error.message})", 0) from None
    if found != expected:
        raise TextError("it is written in a way that cannot be edited safely", 0)


def _with_servers(data: JsonObject, section: Section, servers: JsonObject) -> JsonObject:
    key, *rest = section
    if not rest:
        return {**data, key: servers}
    return {**data, key: _with_servers(as_object(data.get(key)) or {}, tuple(rest), servers)}
