"""Reading one server's entry: the keys that clients share, and the references that only some of them resolve.

References to the environment become `${NAME}`, which the gateway resolves where it is a whole value. What only the
client knows (`${input:…}`, `${workspaceFolder}`, an `envFile`) and what the gateway cannot say (a reference inside a
longer text) makes a server that stays with its client: moving it would break it in silence. A choice of tools moves
along, as patterns that mean exactly the names that the client lists.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from toolcrib.clients.base import ClientServer, as_object
from toolcrib.definitions import Json, JsonObject

_ENV_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_BARE_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_WHOLE_REFERENCE = re.compile(r"(?:(?:Bearer|Basic) )?\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_ANY_REFERENCE = re.compile(r"\$\{[^}]*\}")
_SPECIAL = re.compile(r"([*?[])")
"""What a pattern reads as more than itself."""
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._-]+")
_CLIENT_REFERENCE = re.compile(
    r"\$\{(input:[^}]*|command:[^}]*|config:[^}]*|workspaceFolder[^}]*|userHome|pathSeparator|/|file[A-Z][^}]*"
    r"|CLAUDE_PLUGIN_ROOT)\}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """How one client names things."""

    url: Mapping[str, Literal["http", "sse"] | None] = field(
        default_factory=lambda: dict[str, Literal["http", "sse"] | None]({"url": None})
    )
    """Keys of the address, each with the transport that it stands for, if it stands for one."""
    headers: str = "headers"
    include: str | None = None
    exclude: str | None = None
    patterns: bool = False
    """Whether the tools that they choose are patterns, as in the gateway's own file, and not names."""
    bare_references: bool = False
    """Whether `$NAME` refers to the environment."""


def read_server(name: str, raw: JsonObject, keys: Keys | None = None) -> ClientServer:
    """The server of one entry. An entry that cannot be understood becomes a server with an obstacle."""
    known = keys or Keys()
    command = raw.get("command")
    address, transport = _address(raw, known)
    try:
        server = ClientServer(
            name=name,
            raw=raw,
            command=command if isinstance(command, str) else None,
            args=_texts(raw.get("args"), "args"),
            env=_mapping(raw.get("env"), "env"),
            cwd=_text(raw.get("cwd"), "cwd"),
            url=address,
            headers=_mapping(raw.get(known.headers), known.headers),
            type=_transport(raw.get("type"), address, transport),
            disabled=raw.get("disabled") is True or raw.get("enabled") is False,
            include=_chosen(raw, known.include, known),
            exclude=_chosen(raw, known.exclude, known),
        )
    except ValueError as error:
        return ClientServer(name=name, raw=raw, obstacle=str(error))
    return translate(server, bare=known.bare_references)


def translate(server: ClientServer, *, bare: bool = False) -> ClientServer:
    """The server with its references in the gateway's form, or with the obstacle that it has."""
    if server.obstacle is None and not server.command and not server.url:
        return replace(server, obstacle="it has neither `command` nor `url`")
    if server.obstacle is None and "envFile" in server.raw:
        return replace(server, obstacle="its `envFile` is read by the client")

    def fix(text: str) -> str:
        fixed = _ENV_REFERENCE.sub(r"${\1}", text)
        return _BARE_REFERENCE.sub(r"${\1}", fixed) if bare else fixed

    values = (server.command or "", server.url or "", server.cwd or "", *server.args)
    for text in (*values, *server.env.values(), *server.headers.values()):
        found = _CLIENT_REFERENCE.search(text)
        if found and server.obstacle is None:
            return replace(server, obstacle=f"`{found[0]}` is known to the client only")
    return replace(
        server,
        command=fix(server.command) if server.command else None,
        args=tuple(fix(arg) for arg in server.args),
        env={key: fix(value) for key, value in server.env.items()},
        cwd=fix(server.cwd) if server.cwd else None,
        url=fix(server.url) if server.url else None,
        headers={key: fix(value) for key, value in server.headers.items()},
    )


def gateway_obstacle(server: ClientServer) -> str | None:
    """Why the server cannot stand in the gateway's file as it is, if so."""
    if server.obstacle is not None:
        return server.obstacle
    for text in (server.command or "", server.cwd or "", *server.args):
        found = _ANY_REFERENCE.search(text)
        if found:
            return f"`{found[0]}` in its command is resolved by the client"
    for text in (server.url or "", *server.env.values(), *server.headers.values()):
        found = _ANY_REFERENCE.search(text)
        if found and not _WHOLE_REFERENCE.fullmatch(text):
            return f"`{found[0]}` is only a part of a value"
    return None


def variables_of(servers: Iterable[ClientServer]) -> tuple[str, ...]:
    """The variables that the gateway must have to start these servers."""
    texts = (text for server in servers for text in (server.url or "", *server.env.values(), *server.headers.values()))
    found = (_WHOLE_REFERENCE.fullmatch(text) for text in texts)
    return tuple(dict.fromkeys(match["name"] for match in found if match))


def clean_name(name: str) -> str:
    """A server's name with characters that a toolset may have."""
    return _UNNAMEABLE.sub("-", name).strip("-") or "server"


def gateway_names(servers: Sequence[ClientServer]) -> dict[str, ClientServer]:
    """The servers under names that a toolset may bear: other characters become `-`, and no two meet."""
    named: dict[str, ClientServer] = {}
    for server in servers:
        name = base = clean_name(server.name)
        number = 1
        while name in named:
            number += 1
            name = f"{base}-{number}"
        named[name] = server
    return named


def gateway_entry(server: ClientServer) -> JsonObject:
    """The server as the gateway's own file has it: the keys that everybody uses, and nothing else."""
    entry: JsonObject
    if server.command:
        entry = {"command": server.command, "args": list(server.args)}
        if server.env:
            entry["env"] = dict(server.env)
        if server.cwd:
            entry["cwd"] = server.cwd
    else:
        entry = {"type": server.type, "url": server.url}
        if server.headers:
            entry["headers"] = dict(server.headers)
    if server.include:
        entry["include"] = list(server.include)
    if server.exclude:
        entry["exclude"] = list(server.exclude)
    return entry


def _address(raw: JsonObject, keys: Keys) -> tuple[str | None, Literal["http", "sse"] | None]:
    for key, transport in keys.url.items():
        value = raw.get(key)
        if isinstance(value, str) and value:
            return value, transport
    return None, None


def _transport(
    named: Json, address: str | None, implied: Literal["http", "sse"] | None
) -> Literal["stdio", "http", "sse"]:
    if address is None:
        return "stdio"
    if named == "sse":
        return "sse"
    if named in {"http", "streamable-http", "streamable_http", "streamableHttp"}:
        return "http"
    return implied or ("sse" if address.rstrip("/").endswith("/sse") else "http")


def _chosen(raw: JsonObject, key: str | None, keys: Keys) -> tuple[str, ...]:
    """The tools under a key, as patterns."""
    names = _texts(raw.get(key), key) if key else ()
    if key == keys.include and raw.get(key or "") == []:
        raise ValueError(f"its `{key}` lets no tool through")
    return names if keys.patterns else tuple(_SPECIAL.sub(r"[\1]", name) for name in names)


def _text(value: Json, key: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"its `{key}` is no text")


def _texts(value: Json, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return tuple(str(item) for item in value)
    raise ValueError(f"its `{key}` is no list of texts")


def _mapping(value: Json, key: str) -> dict[str, str]:
    if value is None:
        return {}
    items = as_object(value)
    if items is None or not all(isinstance(item, str | int | float | bool) or item is None for item in items.values()):
        raise ValueError(f"its `{key}` is no mapping of texts")
    return {name: _plain(item) for name, item in items.items() if item is not None}


def _plain(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
