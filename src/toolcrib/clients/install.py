"""Putting the gateway in front of a client's servers (X24).

Planning reads and decides; nothing is written before the whole plan stands. The client's file is written last, after
the gateway's file, the backup and the manifest: whatever interrupts, either the client is as before or everything
that the way back needs is on the disk.
"""

import difflib
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolcrib.clients.base import ENTRY, ClientConfig, ClientServer, Family, as_object
from toolcrib.clients.editing import load_data, replace_servers, servers_at
from toolcrib.clients.files import decode, digest_of, encode_like, load_bytes, mode_of, place_of, remove, write_whole
from toolcrib.clients.manifest import (
    PRIVATE,
    Manifest,
    MovedSection,
    WrittenFile,
    backup_path,
    encode_manifest,
    gateway_content,
    load_manifest,
    manifest_path,
)
from toolcrib.clients.masking import masked, open_texts
from toolcrib.clients.servers import gateway_entry, gateway_names, gateway_obstacle, variables_of
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ConfigError
from toolcrib.gate import threshold_tokens
from toolcrib.intake.naming import nearest
from toolcrib.jsonc import TextError
from toolcrib.limits import CLIENT_WINDOW_TOKENS
from toolcrib.settings import ToolSearchSettings

_DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Staying:
    """A server that is left where it is, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The context window that the gate goes by, and who says so."""

    tokens: int
    origin: str

    @property
    def threshold(self) -> int:
        """Tokens of definitions from which the gateway defers, unless its file says otherwise."""
        return threshold_tokens(ToolSearchSettings(), self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """What an installation into one file would do."""

    family: Family
    path: Path
    """The client's file itself, links resolved."""
    original: bytes
    written: bytes
    manifest: Manifest
    gateway_files: tuple[tuple[Path, bytes], ...]
    moved: tuple[ClientServer, ...]
    staying: tuple[Staying, ...]
    window: Window
    shared: bool
    """Whether the file may belong to others too, as that of a project does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """How a client starts the gateway: a program and its first arguments, never a shell's line."""

    command: str
    args: tuple[str, ...] = ()
    directory: Path
    """Where the gateway's files lie."""


def plan_install(
    family: Family,
    configs: Sequence[ClientConfig],
    *,
    launcher: Launcher,
    only: Collection[str] = (),
    context: int | None = None,
) -> InstallPlan:
    """The plan for one client's file, given its mappings of servers. Raises `ConfigError`; nothing is changed."""
    path = configs[0].path.resolve()
    original = load_bytes(path)
    _require_fresh(family, path, original, configs)
    _require_known(configs, only)
    text = decode(original, path)
    window = find_window(family, text, context)
    new = text
    sections: list[MovedSection] = []
    files: list[tuple[Path, bytes]] = []
    moved: list[ClientServer] = []
    staying: list[Staying] = []
    for config in configs:
        movable, left = part_servers(config.servers, only)
        staying.extend(left)
        if not movable:
            continue
        file = launcher.directory / gateway_name(config, first=config is configs[0] and config.scope == "user")
        entry = family.write(launcher.command, (*launcher.args, "serve", "--config", str(file)), variables_of(movable))
        names = [server.name for server in movable]
        try:
            new, pieces = replace_servers(new, family.format, config.section, names, entry)
        except TextError as error:
            raise ConfigError(f"{path}:{place_of(new, error.offset)}: {error.message}; nothing was changed.") from None
        moved.extend(movable)
        named = gateway_names(movable)
        entries: JsonObject = {name: gateway_entry(server) for name, server in named.items()}
        files.append((file, gateway_content(entries, window.tokens)))
        raw: dict[str, object] = {server.name: server.raw for server in movable}
        sections.append(MovedSection(section=config.section, servers=raw, pieces=tuple(pieces)))
    if not moved:
        reasons = "; ".join(f"`{item.name}`: {item.reason}" for item in staying)
        raise ConfigError(f"{path}: has no server to move{f' ({reasons})' if reasons else ''}.")
    written = encode_like(new, original)
    manifest = Manifest(
        client=family.name,
        format=family.format,
        path=str(path),
        original_sha256=digest_of(original),
        written_sha256=digest_of(written),
        mode=mode_of(path),
        sections=tuple(sections),
        gateway_files=tuple(WrittenFile(path=str(file), sha256=digest_of(content)) for file, content in files),
    )
    return InstallPlan(
        family=family,
        path=path,
        original=original,
        written=written,
        manifest=manifest,
        gateway_files=tuple(files),
        moved=tuple(moved),
        staying=tuple(staying),
        window=window,
        shared=all(config.scope == "project" for config in configs) and len(configs[0].section) == 1,
    )


def find_window(family: Family, text: str, context: int | None) -> Window:
    """The window that the person gives, else that of the client's own file, else the usual one (S14)."""
    if context is not None:
        return Window(tokens=context, origin="as given")
    value: Json = load_data(text, family.format) if family.window_key else None
    for key in family.window_key:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return Window(tokens=value, origin=f"`{'.'.join(family.window_key)}`")
    return Window(tokens=CLIENT_WINDOW_TOKENS, origin="the usual one")


def part_servers(
    servers: Sequence[ClientServer], only: Collection[str] = ()
) -> tuple[tuple[ClientServer, ...], tuple[Staying, ...]]:
    """The servers that can move, and those that stay with the client."""
    movable: list[ClientServer] = []
    staying: list[Staying] = []
    for server in servers:
        reason = "not asked for" if only and server.name not in only else gateway_obstacle(server)
        if reason is None and server.disabled:
            reason = "it is switched off"
        if reason is None:
            movable.append(server)
        else:
            staying.append(Staying(name=server.name, reason=reason))
    return tuple(movable), tuple(staying)


def gateway_name(config: ClientConfig, *, first: bool) -> str:
    """The name of the gateway's file for one mapping of servers: readable, and never shared by two."""
    if first:
        return f"{config.client}.json"
    key = "\0".join((str(config.path.resolve()), *config.section)).encode()
    return f"{config.client}-{hashlib.sha256(key).hexdigest()[:_DIGEST_CHARS]}.json"


def apply_install(plan: InstallPlan) -> None:
    """Writes what the plan says, the client's file last. Raises `ConfigError`."""
    for file, content in plan.gateway_files:
        # The same content is what an interrupted installation left.
        if file.exists() and load_bytes(file) != content:
            raise ConfigError(f"{file}: is there already: move it away, then install again.")
    if load_bytes(plan.path) != plan.original:
        raise ConfigError(f"{plan.path}: has just been changed by somebody else: install again.")
    backup, manifest = backup_path(plan.path), manifest_path(plan.path)
    try:
        for file, content in plan.gateway_files:
            write_whole(file, content, mode=PRIVATE)
        write_whole(backup, plan.original, mode=(plan.manifest.mode or PRIVATE) & PRIVATE)
        write_whole(manifest, encode_manifest(plan.manifest), mode=PRIVATE)
        write_whole(plan.path, plan.written)
    except ConfigError:
        # The client's file comes last: if anything failed, it is as it was, and the rest is of no use.
        for file in (*(file for file, _ in plan.gateway_files), manifest, backup):
            with suppress(ConfigError):
                remove(file)
        raise


def diff_of(path: Path, before: bytes, after: bytes, shown: Mapping[str, str]) -> str:
    """The change as a unified diff, with only those values that are `shown`.

    Without the lines around it, and the same on both sides: a line may hold the whole file, with secrets of others.
    """
    name = str(path)
    old, new = (content.decode("utf-8-sig", "replace").splitlines() for content in (before, after))
    lines = list(difflib.unified_diff(old, new, fromfile=name, tofile=name, lineterm="", n=0))
    told = [line if line.startswith("@@ ") else f"{line[0]}{masked(line[1:], shown)}" for line in lines[2:]]
    return "".join(f"{line}\n" for line in (*lines[:2], *told))


def open_texts_of(
    family: Family, moved: Iterable[ClientServer], installed: bytes, manifest: Manifest
) -> Mapping[str, str]:
    """What a diff may show: texts of the servers that move, and of the gateway's entries in the `installed` file."""
    data = load_data(decode(installed, Path(manifest.path)), family.format)
    entries = [as_object((servers_at(data, part.section) or {}).get(ENTRY)) for part in manifest.sections]
    return open_texts((*moved, *(family.read(ENTRY, entry) for entry in entries if entry is not None)))


def _require_fresh(family: Family, path: Path, original: bytes, configs: Sequence[ClientConfig]) -> None:
    manifest = load_manifest(path)
    if manifest is not None and digest_of(original) != manifest.original_sha256:
        raise ConfigError(f"{path}: is installed already: run `toolcrib uninstall {family.name}` first.")
    if any(config.installed for config in configs):
        raise ConfigError(f"{path}: has a server `{ENTRY}` already: remove or rename it first.")


def _require_known(configs: Sequence[ClientConfig], only: Collection[str]) -> None:
    names = [server.name for config in configs for server in config.servers]
    for name in only:
        if name not in names:
            hint = nearest(name, names)
            suffix = f": did you mean `{hint}`?" if hint else "."
            raise ConfigError(f"{configs[0].path}: has no server `{name}`{suffix}")


def report_of(plan: InstallPlan) -> JsonObject:
    """The plan for machines."""
    return {
        "client": plan.family.name,
        "path": str(plan.path),
        "moved": [server.name for server in plan.moved],
        "staying": [{"name": item.name, "reason": item.reason} for item in plan.staying],
        "gateway_files": [str(file) for file, _ in plan.gateway_files],
        "context": plan.window.tokens,
        "threshold_tokens": plan.window.threshold,
        "backup": str(backup_path(plan.path)),
        "shared": plan.shared,
    }
