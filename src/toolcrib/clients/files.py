"""Files that belong to somebody else: read whole, written whole or not at all.

A file is replaced in one step by a neighbour that is complete and on the disk, with the permissions of the old one;
a link stays a link and its target is replaced. Whoever reads meanwhile sees the old text or the new one.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from toolcrib.errors import ConfigError
from toolcrib.limits import CLIENT_FILE_MAX_BYTES

_BOM = "\ufeff"


def resolved(path: Path) -> Path:
    """Where a path leads. Raises `ConfigError`."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise ConfigError(f"{path}: is a link that leads nowhere but to itself.") from None


def digest_of(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def load_bytes(path: Path) -> bytes:
    """The whole file. Raises `ConfigError`."""
    try:
        if path.stat().st_size > CLIENT_FILE_MAX_BYTES:
            raise ConfigError(f"{path}: has more than {CLIENT_FILE_MAX_BYTES:,} bytes, which is no settings file.")
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None


def decode(content: bytes, path: Path) -> str:
    """The text of a file, its byte order mark left out. Raises `ConfigError`."""
    try:
        return content.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8 text.") from None


def encode_like(text: str, original: bytes) -> bytes:
    """The bytes of a text, with a byte order mark if the original has one."""
    mark = _BOM if original.startswith(_BOM.encode()) else ""
    return (mark + text).encode("utf-8")


def place_of(text: str, offset: int) -> int:
    """The line of a position, from 1."""
    return text.count("\n", 0, offset) + 1


def mode_of(path: Path) -> int | None:
    """Permissions of a file, if it is there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def write_whole(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replaces a file in one step, or makes it. Raises `ConfigError`."""
    target = path.resolve()
    kept = mode if mode is not None else mode_of(target)
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o600 if kept is None else kept)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}.") from None


def remove(path: Path) -> None:
    """Removes a file, if it is there. Raises `ConfigError`."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be removed: {error.strerror or error}.") from None
