"""One world of names: what a name means in a session, by whichever way it was called (X6).

There are three answers and no fourth: the tool; "call it directly" for what is in the array already; and "not
available in this session" for everything else. A name that nobody knows and a name that somebody else may use take
the same path and give the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolcrib.bridge import TOOL_SEARCH
from toolcrib.catalog import Catalog
from toolcrib.definitions import Tool
from toolcrib.errors import CallDirectly, CallError, ToolNotAvailable
from toolcrib.intake.naming import fold

_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of one session at one moment."""

    visible: Mapping[str, Tool]
    """Tools that are in the array whatever the gate says, by name."""
    folded: Mapping[str, Tool]
    """The same, by their name without case and separators."""
    catalog: Catalog

    @classmethod
    def of(cls, visible: tuple[Tool, ...], catalog: Catalog) -> "Names":
        """The names of these tools."""
        return cls(
            visible={tool.name: tool for tool in visible},
            folded={fold(tool.name): tool for tool in reversed(visible)},
            catalog=catalog,
        )

    def require(self, name: str, *, bridged: bool) -> Tool:
        """The real tool of that name. Raises `CallError` with one of the clear answers."""
        found = self.find(name, bridged=bridged)
        if isinstance(found, CallError):
            raise found
        return found

    def find(self, name: str, *, bridged: bool) -> Tool | CallError:
        """The real tool of that name, or the answer that says why there is none. Exact names come before likeness."""
        visible = self.visible.get(name)
        if visible is None:
            deferred = self.catalog.get(name)
            if deferred is not None:
                return deferred
            visible = self.folded.get(fold(name))
        if visible is not None:
            return call_directly(visible.name) if bridged else visible
        resolution = self.catalog.resolve(name)
        return resolution.tool or not_available(name, tuple(tool.name for tool in resolution.candidates))


def call_directly(name: str) -> CallDirectly:
    """The answer for a tool that is in the array already (S6)."""
    return CallDirectly(f"`{name}` is one of your own tools: call `{name}` directly, with the same arguments.")


def not_available(name: str, candidates: tuple[str, ...] = ()) -> ToolNotAvailable:
    """The one answer for unknown, out of scope and held back."""
    hint = (
        f"Did you mean {' or '.join(f'`{candidate}`' for candidate in candidates)}?"
        if candidates
        # Below the gate there is no bridge; the answer is the same, whoever asks.
        else f"Use a tool that you have; `{TOOL_SEARCH}`, if you have it, finds others."
    )
    return ToolNotAvailable(f"`{shown_name(name)}` is not available in this session. {hint}")


def shown_name(name: str) -> str:
    """A name as answers repeat it, whatever somebody sent as one."""
    shown = name.encode(errors="replace").decode()
    return shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
