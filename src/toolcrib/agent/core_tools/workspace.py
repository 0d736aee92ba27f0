"""The working directory and its fence: no path leads out of it, by `..`, by an absolute name or by a link.

A path is resolved first and then opened step by step from the root without following links, so that a link which
appears in between is refused instead of followed.
"""

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.errors import ConfigError, ToolFailed
from toolcrib.limits import FILE_MAX_BYTES


class Workspace:
    """A directory that tools may work in."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(os.path.realpath(root))
        if not self.root.is_dir():
            raise ConfigError(f"The working directory {root} does not exist.")

    def inside(self, path: str) -> Path:
        """The real path, if it lies inside. Raises `ToolFailed`."""
        if "\0" in path:
            raise ToolFailed("A path cannot hold a NUL character.")
        real = Path(os.path.realpath(self.root / path))
        if real != self.root and self.root not in real.parents:
            raise ToolFailed("The path leads out of the working directory. Use a path inside of it.")
        return real

    def shown(self, path: Path) -> str:
        """A path as the model knows it: relative to the root."""
        return str(path.relative_to(self.root)) or "."

    def read(self, path: str) -> bytes:
        """The whole content of a regular file. Raises `ToolFailed`."""
        real = self.inside(path)
        try:
            with self._directory(real.parent) as directory:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(real.name, flags, dir_fd=directory), "rb") as file:
                    status = os.fstat(file.fileno())
                    if not stat.S_ISREG(status.st_mode):
                        raise ToolFailed(f"{self.shown(real)} is no regular file.")
                    if status.st_size > FILE_MAX_BYTES:
                        raise ToolFailed(f"{self.shown(real)} has {status.st_size} bytes; at most {FILE_MAX_BYTES}.")
                    return file.read(FILE_MAX_BYTES)
        except OSError as error:
            raise ToolFailed(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from None

    def write(self, path: str, content: bytes) -> Path:
        """Replaces a file in one step, or makes it, its directories included. Raises `ToolFailed`."""
        if len(content) > FILE_MAX_BYTES:
            raise ToolFailed(f"The content has {len(content)} bytes; at most {FILE_MAX_BYTES} are written.")
        real = self.inside(path)
        if real == self.root or real.is_dir():
            raise ToolFailed(f"{path} is a directory.")
        temporary = f".{real.name[:100]}.{secrets.token_hex(4)}"
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
            with self._directory(real.parent) as directory:
                mode = self._mode(real.name, directory)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(temporary, flags, mode, dir_fd=directory), "wb") as file:
                    file.write(content)
                os.replace(temporary, real.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            raise ToolFailed(f"{path} cannot be written: {error.strerror or type(error).__name__}.") from None
        return real

    @contextmanager
    def _directory(self, path: Path) -> Generator[int]:
        """A directory inside, opened step by step without following links."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.root, flags)
        try:
            for part in path.relative_to(self.root).parts:
                inner = os.open(part, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    @staticmethod
    def _mode(name: str, directory: int) -> int:
        try:
            return stat.S_IMODE(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return 0o644
