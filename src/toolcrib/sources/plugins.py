"""Plugins: toolsets that other installed packages offer through the entry point group `toolcrib.plugins`.

An entry point is a source, or a function that returns one or several. A plugin that cannot be loaded is reported;
the others are loaded all the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from toolcrib.definitions import Skipped, ToolsetName
from toolcrib.sources.base import Source

GROUP = "toolcrib.plugins"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """What was found."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]


def load_plugins(points: Iterable[EntryPoint] | None = None) -> Plugins:
    """Loads the plugins of this installation, in the order of their names."""
    found = entry_points(group=GROUP) if points is None else points
    sources: list[Source] = []
    skipped: list[Skipped] = []
    for point in sorted(found, key=lambda item: item.name):
        try:
            sources.extend(_sources_of(point.load()))
        except Exception as error:  # a plugin may fail in any way; its siblings are loaded all the same
            skipped.append(Skipped(toolset=ToolsetName(point.name), name=point.value, reason=repr(error)[:300]))
    return Plugins(sources=tuple(sources), skipped=tuple(skipped))


def _sources_of(loaded: object) -> Sequence[Source]:
    if hasattr(loaded, "snapshot"):
        return [cast("Source", loaded)]
    if callable(loaded):
        loaded = loaded()
    if hasattr(loaded, "snapshot"):
        return [cast("Source", loaded)]
    several = cast("list[Source]", loaded) if isinstance(loaded, list | tuple) else []
    if several and all(hasattr(item, "snapshot") for item in several):
        return list(several)
    raise TypeError("a plugin must give a source or a list of sources")
