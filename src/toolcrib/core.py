"""Which tools stay on the bench: the core set, and what may be deferred at all.

The core set is a constructor argument, never a lookup that could fail and answer "nothing is core". A name is core
because the operator said so; who registered it does not matter, so a plugin cannot take a core name down into the
crib (S9).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolcrib.definitions import Tool

DEFAULT_CORE = (
    "terminal", "process", "read_file", "write_file", "patch", "search_files", "todo", "memory", "browser_*",
    "web_search", "web_extract", "clarify", "execute_code", "delegate_task", "session_search", "send_message",
)  # fmt: skip
"""The tools that an agent always needs (S8). `*` at the end stands for any rest."""

CORE_TOOLSET = "core"


@dataclass(frozen=True, slots=True)
class CoreSet:
    """Names that never defer."""

    names: frozenset[str]
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str] = DEFAULT_CORE) -> "CoreSet":
        """The set of these names; a trailing `*` makes a prefix."""
        every = sorted(set(patterns))
        return cls(
            names=frozenset(name for name in every if not name.endswith("*")),
            prefixes=tuple(name[:-1] for name in every if name.endswith("*")),
        )

    def __contains__(self, name: str) -> bool:
        return name in self.names or (bool(self.prefixes) and name.startswith(self.prefixes))


USUAL_CORE = CoreSet.of(DEFAULT_CORE)
"""What is core where nobody says so."""


def is_deferrable(tool: Tool, core: CoreSet) -> bool:
    """MCP and plugin tools outside the core set, and nothing else (S8–S10)."""
    return tool.origin != "host" and tool.name not in core


def undeferrable(tools: Sequence[Tool], core: CoreSet) -> list[Tool]:
    """Those among many tools that are not deferrable."""
    given = [tool.name for tool in tools]
    # Nearly always there is none, which all names together tell at one look.
    together = "\n".join(("", *given))
    if (
        core.names.isdisjoint(given)
        and not any(f"\n{prefix}" in together for prefix in core.prefixes)
        and "host" not in {tool.origin for tool in tools}
    ):
        return []
    return [tool for tool in tools if not is_deferrable(tool, core)]
