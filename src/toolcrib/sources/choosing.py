"""Which of a server's definitions are taken: those that the operator wants, and of those the usable ones.

A tool that is not taken is nowhere: not listed, not found, not callable, not pinned. A pattern that chooses nothing
is reported, because a misspelt `exclude` would let through what somebody meant to keep out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from toolcrib.definitions import JsonObject, Skipped, ToolsetName
from toolcrib.sources.mcp_headers import KEY, find_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Patterns over a server's own names of its tools."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    """Wins over `include`."""

    def takes(self, name: str) -> bool:
        """Whether the tool of this name is wanted."""
        return _matches(name, self.include) and not _matches(name, self.exclude)

    def idle_patterns(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The patterns that no name meets, each after its key; `*` may always stand there."""
        for key, patterns in (("include", self.include), ("exclude", self.exclude)):
            for pattern in patterns:
                if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
                    yield key, pattern


EVERYTHING = Choice()


def choose(
    toolset: str, definitions: Sequence[JsonObject], choice: Choice
) -> tuple[Sequence[JsonObject], list[Skipped]]:
    """The wanted and usable definitions, and what has to be reported: unusable headers (C14), idle patterns."""
    reported: list[Skipped] = []
    wanted = definitions
    if choice != EVERYTHING:
        names = [str(definition.get("name")) for definition in definitions]
        wanted = [definition for name, definition in zip(names, definitions, strict=True) if choice.takes(name)]
        reported.extend(
            Skipped(toolset=ToolsetName(toolset), name=pattern, reason=f"no tool meets this pattern of `{key}`")
            for key, pattern in choice.idle_patterns(names)
        )
    usable: list[JsonObject] = []
    for definition in wanted:
        problem = find_problem(definition) if KEY in str(definition.get("inputSchema")) else None
        if problem is None:
            usable.append(definition)
        else:
            name = str(definition.get("name"))
            reported.append(Skipped(toolset=ToolsetName(toolset), name=name, reason=problem))
    return usable, reported


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
