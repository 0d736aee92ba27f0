"""Reading, writing, patching and searching files inside the working directory."""

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from toolcrib.agent.core_tools.workspace import Workspace
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ToolFailed
from toolcrib.limits import FILE_LINES, FILE_MAX_BYTES, SEARCH_FILES_HITS, SEARCH_FILES_VISITED

_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Directories that hold nothing a person wrote; a search names them if they are wanted."""


class Files:
    """The file tools of one working directory."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def read_file(self, path: str, offset: int = 1, limit: int = FILE_LINES) -> str:
        """Read a text file with line numbers.

        Args:
            path: Path inside the working directory.
            offset: First line, counted from 1.
            limit: Lines at most.
        """
        lines = self._text(path).splitlines()
        first = max(1, offset)
        last = min(len(lines), first - 1 + max(1, min(limit, FILE_LINES)))
        shown = [f"{number:>6}  {line}" for number, line in enumerate(lines[first - 1 : last], first)]
        if last < len(lines):
            shown.append(f"[lines {first}-{last} of {len(lines)}; go on with offset {last + 1}]")
        return "\n".join(shown) or "[empty file]"

    def write_file(self, path: str, content: str) -> str:
        """Write a text file, replacing what it held; missing directories are made.

        Args:
            path: Path inside the working directory.
            content: The whole new content.
        """
        real = self._workspace.write(path, content.encode(errors="surrogatepass"))
        return f"Wrote {len(content)} characters to {self._workspace.shown(real)}."

    def patch(self, path: str, old: str, new: str, every: bool = False) -> str:
        """Replace a piece of text in a file; the piece must occur exactly once unless `every` is set.

        Args:
            path: Path inside the working directory.
            old: The text as it is now, with enough around it to be unique.
            new: The text that takes its place.
            every: Replace every occurrence.
        """
        text = self._text(path)
        count = text.count(old) if old else 0
        if count == 0:
            raise ToolFailed("`old` does not occur in the file. Read it again and copy the text exactly.")
        if count > 1 and not every:
            raise ToolFailed(f"`old` occurs {count} times: give more of the text around it, or set `every`.")
        real = self._workspace.write(path, text.replace(old, new).encode())
        return f"Replaced {count} occurrence{'s' if count > 1 else ''} in {self._workspace.shown(real)}."

    def search_files(self, text: str = "", glob: str = "*", path: str = ".", ignore_case: bool = True) -> JsonObject:
        """Find files by name, and lines in them by their text.

        Args:
            text: Text that a line must hold, taken literally; leave it out to list files.
            glob: Pattern of file names, such as `*.py`.
            path: Directory to search, inside the working directory.
            ignore_case: Whether case counts for nothing.
        """
        start = self._workspace.inside(path)
        wanted = text.casefold() if ignore_case else text
        hits: list[Json] = []
        visited = 0
        for file in _walk(start):
            visited += 1
            if visited > SEARCH_FILES_VISITED or len(hits) >= SEARCH_FILES_HITS:
                break
            if not fnmatch(file.name, glob):
                continue
            if not text:
                hits.append(self._workspace.shown(file))
                continue
            hits.extend(self._lines(file, wanted, ignore_case=ignore_case))
        cut = len(hits) >= SEARCH_FILES_HITS or visited > SEARCH_FILES_VISITED
        return {"hits": hits[:SEARCH_FILES_HITS], "files": min(visited, SEARCH_FILES_VISITED), "complete": not cut}

    def _lines(self, file: Path, wanted: str, *, ignore_case: bool) -> Iterator[str]:
        try:
            if file.is_symlink() or not file.is_file() or file.stat().st_size > FILE_MAX_BYTES:
                return
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return
        for number, line in enumerate(lines, 1):
            if wanted in (line.casefold() if ignore_case else line):
                yield f"{self._workspace.shown(file)}:{number}: {line.strip()[:300]}"

    def _text(self, path: str) -> str:
        try:
            return self._workspace.read(path).decode()
        except UnicodeDecodeError:
            raise ToolFailed(f"{path} is no UTF-8 text.") from None


def _walk(start: Path) -> Iterator[Path]:
    """Files below a directory in a fixed order; links are not followed."""
    if start.is_file():
        yield start
        return
    for directory, inner, files in os.walk(start, followlinks=False):
        inner[:] = sorted(name for name in inner if name not in _SKIPPED)
        for name in sorted(files):
            yield Path(directory) / name
