"""Whether the gateway stands in front of each client's servers, and whether the way back is open: for a check-up."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolcrib.clients.base import Family, Surroundings
from toolcrib.clients.discovery import discover
from toolcrib.clients.files import digest_of, load_bytes
from toolcrib.clients.manifest import backup_path
from toolcrib.clients.uninstall import find_installed
from toolcrib.errors import ConfigError

State = Literal["direct", "installed", "changed since", "backup lost", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientState:
    """One file of one client."""

    client: str
    path: Path
    state: State
    servers: int
    """Servers that it names itself, or that moved behind the gateway."""
    detail: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong. A client that rewrites its own file is not ill."""
        return self.state in {"direct", "installed", "changed since"}


def client_states(families: Iterable[Family], around: Surroundings) -> tuple[ClientState, ...]:
    """The state of every client's file that has servers here."""
    known = tuple(families)
    states: dict[Path, ClientState] = {}
    for family in known:
        try:
            for path, manifest in find_installed(family, around):
                state = _installed_state(path, manifest.original_sha256, manifest.written_sha256)
                states[path] = ClientState(client=family.name, path=path, state=state, servers=len(manifest.names))
        except ConfigError as error:
            first = family.places(around)[0].path
            states[first] = ClientState(
                client=family.name, path=first, state="unreadable", servers=0, detail=str(error)
            )
    found = discover(known, around)
    for config in found.configs:
        path = config.path.resolve()
        if path not in states and config.servers:
            states[path] = ClientState(client=config.client, path=path, state="direct", servers=len(config.servers))
    problems = tuple(
        ClientState(client="", path=Path(problem.partition(":")[0]), state="unreadable", servers=0, detail=problem)
        for problem in found.problems
    )
    return (*states.values(), *problems)


def gateway_files(families: Iterable[Family], around: Surroundings) -> tuple[Path, ...]:
    """The files that installations gave the gateway here, each once. Raises `ConfigError`."""
    found = (manifest for family in families for _, manifest in find_installed(family, around))
    files = (Path(file.path) for manifest in found for file in manifest.gateway_files)
    return tuple(dict.fromkeys(file for file in files if file.is_file()))


def _installed_state(path: Path, original: str, written: str) -> State:
    if not backup_path(path).is_file() or digest_of(load_bytes(backup_path(path))) != original:
        return "backup lost"
    return "installed" if digest_of(load_bytes(path)) == written else "changed since"
