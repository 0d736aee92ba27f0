"""What a client's configuration is: where it lies, which servers it names, and how it writes them.

A family is data: places, a format and two small functions. Home directory, platform and environment come in with
`Surroundings`, so nothing here reads the machine it runs on, and a test can stand in any of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolcrib.definitions import Json, JsonObject

Format = Literal["jsonc", "toml", "yaml"]
Scope = Literal["user", "project"]
"""Whose servers they are: the person's everywhere, or those of one project."""

Section = tuple[str, ...]
"""Keys that lead to the mapping of servers."""

ENTRY = "toolcrib"
"""The name under which a client knows the gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The machine as the families see it."""

    home: Path
    platform: str
    """As `sys.platform` has it: `linux`, `darwin` or `win32`."""
    cwd: Path
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def config_home(self) -> Path:
        """Where applications keep their settings here."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self._directory("APPDATA", self.home / "AppData" / "Roaming")
        return self.xdg_home

    @property
    def xdg_home(self) -> Path:
        """Where programs that follow the XDG convention keep them, whatever the platform."""
        return self._directory("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def tree(self) -> tuple[Path, ...]:
        """The working directory and every directory above it, nearest first."""
        return (self.cwd, *self.cwd.parents)

    def directory(self, variable: str, default: Path) -> Path:
        """A directory that a variable may move."""
        return self._directory(variable, default)

    def _directory(self, variable: str, default: Path) -> Path:
        value = self.environ.get(variable, "")
        return Path(value) if value else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One mapping of servers in one file."""

    path: Path
    section: Section
    scope: Scope = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientServer:
    """One server as a client's file describes it, in words that all clients share."""

    name: str
    raw: JsonObject
    """The entry as the file has it."""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    type: Literal["stdio", "http", "sse"] = "stdio"
    disabled: bool = False
    include: tuple[str, ...] = ()
    """Patterns of tools that the client lets through; all if empty."""
    exclude: tuple[str, ...] = ()
    obstacle: str | None = None
    """Why only the client itself can start it, if so: it then stays where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The servers of one place."""

    client: str
    path: Path
    section: Section
    scope: Scope
    format: Format
    servers: tuple[ClientServer, ...]

    @property
    def installed(self) -> bool:
        """Whether the gateway is among them already."""
        return any(server.name == ENTRY for server in self.servers)


ReadServer = Callable[[str, JsonObject], ClientServer]
WriteEntry = Callable[[str, Sequence[str], Sequence[str]], JsonObject]
"""The client's own way to write a local server: from its program, arguments and the variables that it needs."""


def entry_writer(*, typed: bool = False, reference: str | None = "${{{}}}") -> WriteEntry:
    """A writer of entries with `command`, `args` and `env`.

    Many clients hand only a few variables to what they start, so those that servers behind the gateway refer to are
    asked for by name.

    Args:
        typed: Whether the client wants `type: stdio`.
        reference: How the client refers to a variable; nothing if it cannot, and then passes on what it has itself.
    """

    def write(command: str, args: Sequence[str], variables: Sequence[str]) -> JsonObject:
        entry: JsonObject = {"type": "stdio"} if typed else {}
        entry |= {"command": command, "args": list(args)}
        if variables and reference is not None:
            entry["env"] = {name: reference.format(name) for name in variables}
        return entry

    return write


STANDARD_ENTRY = entry_writer()
"""A local server as most clients write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One client: everything that Toolcrib knows of it."""

    name: str
    """What a person types."""
    title: str
    format: Format
    places: Callable[[Surroundings], Sequence[Place]]
    read: ReadServer
    write: WriteEntry = STANDARD_ENTRY
    window_key: Section = ()
    """Where its file says how large the model's context window is, if it can."""
    note: str = ""
    """What a person must do for a change to take effect."""


def as_object(value: Json) -> JsonObject | None:
    """The value, if it is a JSON object."""
    return dict(value) if isinstance(value, Mapping) else None
