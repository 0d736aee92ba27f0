"""Taking the gateway out again: every byte as it was.

The backup is restored only into a file that nobody has touched since, because restoring would throw their change
away. For a file that has changed there is another way, which the person must ask for: the servers are put back where
the gateway's entry stands, and everything else stays as it is now.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from toolcrib.clients.base import Family, Surroundings
from toolcrib.clients.editing import put_back
from toolcrib.clients.files import decode, digest_of, encode_like, load_bytes, place_of, remove, resolved, write_whole
from toolcrib.clients.manifest import Manifest, backup_path, load_manifest, manifest_path
from toolcrib.definitions import JsonObject
from toolcrib.errors import ConfigError
from toolcrib.intake.pins import lock_beside
from toolcrib.jsonc import TextError

Way = Literal["restored", "put back", "already as before"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallPlan:
    """What an uninstallation from one file would do."""

    family: Family
    path: Path
    manifest: Manifest
    current: bytes
    restored: bytes
    way: Way
    kept_files: tuple[Path, ...]
    """Files of the gateway that somebody has changed: they stay."""
    kept_locks: tuple[Path, ...] = ()
    """What somebody has approved for the gateway: it stays for the next installation, which is often the next step."""


def find_installed(family: Family, around: Surroundings) -> tuple[tuple[Path, Manifest], ...]:
    """The files of a family that an installation has changed. Raises `ConfigError`."""
    found: dict[Path, Manifest] = {}
    for place in family.places(around):
        path = resolved(place.path)
        manifest = load_manifest(path) if path not in found else None
        if manifest is not None and manifest.client == family.name:
            found[path] = manifest
    return tuple(found.items())


def plan_uninstall(family: Family, path: Path, manifest: Manifest, *, keep_changes: bool = False) -> UninstallPlan:
    """The plan for one file. Raises `ConfigError`; nothing is changed."""
    current = load_bytes(path)
    digest = digest_of(current)
    way: Way
    if digest == manifest.written_sha256:
        restored, way = _require_backup(path, manifest), "restored"
    elif digest == manifest.original_sha256:
        restored, way = current, "already as before"
    elif keep_changes:
        restored, way = _put_back(path, current, manifest), "put back"
    else:
        raise ConfigError(
            f"{path}: has changed since the installation: `toolcrib uninstall {family.name} --keep-changes` puts the "
            "servers back and keeps the changes."
        )
    kept = tuple(
        Path(file.path)
        for file in manifest.gateway_files
        if Path(file.path).exists() and digest_of(load_bytes(Path(file.path))) != file.sha256
    )
    locks = (lock_beside(Path(file.path)) for file in manifest.gateway_files)
    return UninstallPlan(
        family=family,
        path=path,
        manifest=manifest,
        current=current,
        restored=restored,
        way=way,
        kept_files=kept,
        kept_locks=tuple(lock for lock in locks if lock.is_file()),
    )


def apply_uninstall(plan: UninstallPlan) -> None:
    """Writes the client's file first; what the way back needed goes last. Raises `ConfigError`."""
    if load_bytes(plan.path) != plan.current:
        raise ConfigError(f"{plan.path}: has just been changed by somebody else: uninstall again.")
    if plan.restored != plan.current:
        write_whole(plan.path, plan.restored, mode=plan.manifest.mode)
    for file in plan.manifest.gateway_files:
        if Path(file.path) not in plan.kept_files:
            remove(Path(file.path))
    remove(manifest_path(plan.path))
    remove(backup_path(plan.path))


def report_of(plan: UninstallPlan) -> JsonObject:
    """The plan for machines."""
    return {
        "client": plan.family.name,
        "path": str(plan.path),
        "way": plan.way,
        "servers": list(plan.manifest.names),
        "kept_files": [str(file) for file in (*plan.kept_files, *plan.kept_locks)],
    }


def _require_backup(path: Path, manifest: Manifest) -> bytes:
    content = load_bytes(backup_path(path))
    if digest_of(content) != manifest.original_sha256:
        raise ConfigError(f"{backup_path(path)}: is not the backup that was made: nothing was changed.")
    return content


def _put_back(path: Path, current: bytes, manifest: Manifest) -> bytes:
    text = decode(current, path)
    for moved in manifest.sections:
        originals = cast("JsonObject", moved.servers)
        try:
            text = put_back(text, manifest.format, moved.section, moved.pieces, originals)
        except TextError as error:
            raise ConfigError(f"{path}:{place_of(text, error.offset)}: {error.message}; nothing was changed.") from None
    return encode_like(text, current)
