"""What an installation left behind, so that it can be taken back to the byte.

Beside the client's file lie a backup of it and a manifest: digests of what was there and of what was written, and
the servers that moved. Both are readable by their owner only, because servers carry secrets.
"""

from pathlib import Path

import msgspec

from toolcrib.clients.base import Format
from toolcrib.clients.files import load_bytes
from toolcrib.definitions import JsonObject
from toolcrib.errors import ConfigError

VERSION = 1
PRIVATE = 0o600


class MovedSection(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that left one mapping."""

    section: tuple[str, ...]
    servers: dict[str, object]
    """Name → entry, as the file had them."""
    pieces: tuple[str, ...]
    """The same as text, for a file that has changed since."""


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the gateway."""

    path: str
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one installation into one file."""

    version: int = VERSION
    client: str
    format: Format
    path: str
    original_sha256: str
    written_sha256: str
    mode: int | None
    sections: tuple[MovedSection, ...]
    gateway_files: tuple[WrittenFile, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All servers that moved."""
        return tuple(name for section in self.sections for name in section.servers)


def backup_path(path: Path) -> Path:
    """Where the backup of a client's file lies."""
    return path.with_name(path.name + ".toolcrib-backup")


def manifest_path(path: Path) -> Path:
    """Where the manifest of a client's file lies."""
    return path.with_name(path.name + ".toolcrib-manifest")


def load_manifest(path: Path) -> Manifest | None:
    """The manifest of a client's file, if there is one. Raises `ConfigError`."""
    where = manifest_path(path)
    if not where.exists():
        return None
    try:
        manifest = msgspec.json.decode(load_bytes(where), type=Manifest)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{where}: is no manifest of Toolcrib: {error}.") from None
    if manifest.version != VERSION:
        raise ConfigError(f"{where}: was written by another version of Toolcrib: use that one to uninstall.")
    return manifest


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def gateway_content(servers: JsonObject, window: int) -> bytes:
    """The gateway's file for these servers and the window of the client's model: JSON, which is YAML too."""
    content: JsonObject = {"mcpServers": servers, "profiles": {"default": {"context": window}}}
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
