"""Keeps vectors between two starts: one plain file of records of equal length, each with its own check sum.

A vector is kept under the digest of the text that it was made from, so it can never be stale; the file's name holds
what made it, so another model has another file. Losing the file costs time and nothing else: whatever cannot be read
is made again. The file is written whole and put in place in one step; two processes that write at once can lose each
other's newest vectors, never damage the file.
"""

import contextlib
import os
import tempfile
import zlib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from toolcrib.limits import FILL_FILE_VECTORS

DIGEST_BYTES = 16
_CHECK_BYTES = 4


def cache_directory(environ: Mapping[str, str]) -> Path | None:
    """Where files go that may be deleted at any time; nowhere for a user without a home."""
    base = environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "toolcrib"
    except RuntimeError:
        return None


class VectorFile:
    """The vectors of one model, in whole numbers, by the digest of their text."""

    __slots__ = ("_most", "_record", "_size", "path")

    def __init__(self, path: Path, *, size: int, most: int = FILL_FILE_VECTORS) -> None:
        self.path = path
        self._most = most
        self._size = DIGEST_BYTES + size
        self._record = self._size + _CHECK_BYTES

    def read(self) -> dict[bytes, bytes]:
        """Every record that is whole, oldest first; nothing if there is no file."""
        try:
            with self.path.open("rb") as file:
                content = file.read(self._record * self._most)
        except OSError:
            return {}
        found: dict[bytes, bytes] = {}
        for start in range(0, len(content) - self._record + 1, self._record):
            body = content[start : start + self._size]
            check = content[start + self._size : start + self._record]
            if zlib.crc32(body).to_bytes(_CHECK_BYTES, "big") == check:
                found[body[:DIGEST_BYTES]] = body[DIGEST_BYTES:]
        return found

    def write(self, vectors: Mapping[bytes, bytes]) -> None:
        """Adds these to what the file holds and lets the oldest go. Raises `OSError`."""
        kept = self.read()
        for digest in vectors:
            kept.pop(digest, None)
        kept.update(vectors)
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.", suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                for digest, vector in islice(kept.items(), max(0, len(kept) - self._most), None):
                    body = digest + vector
                    file.write(body + zlib.crc32(body).to_bytes(_CHECK_BYTES, "big"))
            Path(temporary).replace(self.path)
        except BaseException:  # Ctrl-C, too: nobody would ever look for what is left
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
