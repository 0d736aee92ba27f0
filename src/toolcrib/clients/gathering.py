"""One list of servers from many clients: what is the same is started once, and no two share a name.

A client that the gateway already stands in front of counts with the servers behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolcrib.clients.base import ENTRY, ClientConfig, ClientServer, Family
from toolcrib.clients.discovery import load_any
from toolcrib.clients.servers import clean_name, gateway_entry
from toolcrib.definitions import JsonObject, canonical_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Servers to start, and those that nobody should start."""

    entries: Mapping[str, JsonObject]
    """Name → entry as the gateway's file would have it."""
    skipped: Mapping[str, str]
    """Name → why it is not started."""
    clients: Mapping[str, tuple[str, ...]]
    """Client → names of its servers."""


def gather(configs: Iterable[ClientConfig], families: Sequence[Family]) -> Gathered:
    """The servers of all configurations. Raises `ConfigError` if the gateway's own file cannot be read."""
    entries: dict[str, JsonObject] = {}
    skipped: dict[str, str] = {}
    clients: dict[str, dict[str, None]] = {}
    known: dict[bytes, str] = {}
    for config in configs:
        for server in _behind(config, families):
            entry = gateway_entry(server)
            key = canonical_json([entry, server.obstacle, server.disabled])
            name = known.get(key)
            if name is None:
                name = known[key] = _free_name(server.name, config.client, {*entries, *skipped})
                reason = server.obstacle or ("it is switched off" if server.disabled else None)
                if reason is None:
                    entries[name] = entry
                else:
                    skipped[name] = reason
            clients.setdefault(config.client, {})[name] = None
    return Gathered(
        entries=entries,
        skipped=skipped,
        clients={client: tuple(names) for client, names in clients.items()},
    )


def _behind(config: ClientConfig, families: Sequence[Family]) -> Iterable[ClientServer]:
    for server in config.servers:
        if server.name == ENTRY and "serve" in server.args and "--config" in server.args[:-1]:
            file = Path(server.args[server.args.index("--config") + 1])
            yield from load_any(file, families).servers
        else:
            yield server


def _free_name(name: str, client: str, taken: set[str]) -> str:
    base = clean_name(name)
    candidates = (base, f"{base}-{client}", *(f"{base}-{client}-{number}" for number in range(2, len(taken) + 3)))
    return next(candidate for candidate in candidates if candidate not in taken)
