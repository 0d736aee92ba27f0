"""From entries of `mcpServers` to sources.

A variable that an entry refers to is looked up when the server is started: one that is missing makes that server
unavailable, with the reason, and no other. Nothing that a server says ever becomes part of how it is started (H8).
"""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolcrib.errors import ConfigError, SourceUnavailable
from toolcrib.execution.dispatch import Era
from toolcrib.intake.pins import Launch
from toolcrib.settings import ServerSettings, Settings
from toolcrib.sources.base import require_toolset_name
from toolcrib.sources.choosing import Choice
from toolcrib.sources.link import Link, Listener
from toolcrib.sources.mcp_source import McpOptions, McpSource
from toolcrib.sources.patience import Patience
from toolcrib.sources.processes import Guard
from toolcrib.sources.supervisor import Pace

if TYPE_CHECKING:
    from toolcrib.sources.oauth import SignIn

_REFERENCE = re.compile(r"(?P<scheme>(?:Bearer|Basic) )?\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def open_servers(settings: Settings) -> Sequence[McpSource]:
    """The sources of all servers that are not disabled. Raises `ConfigError`."""
    guard = Guard()
    pace = Pace(clock=time.monotonic)
    return [
        open_server(name, entry, guard=guard, pace=pace)
        for name, entry in settings.mcpServers.items()
        if not entry.disabled
    ]


def open_server(name: str, entry: ServerSettings, *, guard: Guard, pace: Pace) -> McpSource:
    """The source of one server. Raises `ConfigError`."""
    require_toolset_name(f"mcp-{name}")
    if (entry.command is None) == (entry.url is None):
        raise ConfigError(f"mcpServers.{name}: give `command` for a program or `url` for a web address, one of them.")
    is_http = entry.url is not None
    if entry.type is not None and (entry.type == "stdio") == is_http:
        other = "url" if is_http else "command"
        raise ConfigError(f"mcpServers.{name}: `type: {entry.type}` does not go with `{other}`.")

    patience = Patience()
    sign_ins: dict[str, SignIn] = {}

    def sign_in(url: str) -> "SignIn | None":
        """One for all connections, so that they share the token and its renewal."""
        if entry.oauth and url not in sign_ins:
            # Here and not above: nobody pays for the SDK who does not sign in.
            from toolcrib.sources.oauth import open_oauth

            sign_ins[url] = open_oauth(name, url, patience, trust=entry.trust)
        return sign_ins.get(url)

    async def connect(listener: Listener, era: Era | None) -> Link:
        return await _connect(name, entry, guard, sign_in, listener)

    options = McpOptions(
        start=entry.start,
        era=entry.era,
        prefix=entry.prefix,
        timeout_s=entry.timeout,
        idle_stop_s=entry.idle_stop,
        is_http=is_http and entry.type != "sse",
        trust=entry.trust,
        choice=Choice(include=entry.include, exclude=entry.exclude),
    )
    return McpSource(name, connect, options=options, launch=launch_of(entry), pace=pace, patience=patience)


def launch_of(entry: ServerSettings) -> Launch:
    """What an entry says about how its server is started or reached, without its secrets."""
    return Launch(
        command=entry.command,
        args=entry.args,
        env=tuple(entry.env),
        cwd=entry.cwd,
        url=entry.url,
        headers=tuple(entry.headers),
    )


async def _connect(
    name: str, entry: ServerSettings, guard: Guard, sign_in: Callable[[str], "SignIn | None"], listener: Listener
) -> Link:
    if entry.command is not None:
        from toolcrib.sources.mcp_stdio import Command, StdioLink

        command = Command(argv=(entry.command, *entry.args), env=resolve_all(entry.env), cwd=entry.cwd)
        return await StdioLink.start(name, command, listener=listener, guard=guard)
    from toolcrib.sources.mcp_http import open_link

    url = resolve(entry.url or "").strip()
    for key, value in {"url": entry.url or "", **entry.headers}.items():
        require_whole(key, value)
    headers = {key: require_header(key, value) for key, value in resolve_all(entry.headers).items()}
    return await open_link(name, entry, url, headers, listener, sign_in=sign_in(url))


def require_whole(key: str, value: str) -> None:
    """Refuses a reference inside a longer value, which would be sent as it stands. Raises `SourceUnavailable`."""
    inner = None if _REFERENCE.fullmatch(value) else _REFERENCE.search(value)
    if inner is not None:
        raise SourceUnavailable(
            f"`{key}` has the variable {inner['name']} inside a longer value, where it is not looked up: "
            "put the whole value into one variable"
        )


def require_header(key: str, value: str) -> str:
    """The value without the line end that a variable may bring along. Raises `SourceUnavailable`, without the value."""
    if not _HEADER_NAME.fullmatch(key):
        raise SourceUnavailable(f"`{key}` is no name of a header")
    plain = value.strip()
    if not _HEADER_VALUE.fullmatch(plain):
        raise SourceUnavailable(f"the header `{key}` has a line break or a character that no header can hold")
    return plain


def resolve_all(values: Mapping[str, str]) -> dict[str, str]:
    """The values with their references resolved. Raises `SourceUnavailable`."""
    return {key: resolve(value) for key, value in values.items()}


def resolve(value: str) -> str:
    """The value, or that of the variable that it refers to. Raises `SourceUnavailable`."""
    match = _REFERENCE.fullmatch(value)
    if match is None:
        return value
    found = os.environ.get(match["name"])
    # A client that was asked to pass on a variable which it does not have may pass on the words themselves.
    if found in {None, f"${{{match['name']}}}", f"${{env:{match['name']}}}"}:
        raise SourceUnavailable(f"the variable {match['name']} is not set")
    return f"{match['scheme'] or ''}{found}"
