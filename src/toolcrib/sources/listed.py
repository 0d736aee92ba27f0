"""Toolsets that somebody has only listed, in a file or for an audit: they can be counted and searched, not called."""

from toolcrib.definitions import Call, Result, Toolset
from toolcrib.errors import ToolFailed
from toolcrib.execution.dispatch import CallContext


class ListedToolsets:
    """A source without anything behind it."""

    def __init__(self, name: str, toolsets: tuple[Toolset, ...]) -> None:
        self.name = name
        self._toolsets = toolsets

    def snapshot(self) -> tuple[Toolset, ...]:
        """The toolsets."""
        return self._toolsets

    def watch(self, changed: object) -> bool:
        """Never changes."""
        return True

    async def call(self, call: Call, context: CallContext) -> Result:
        """Refuses: a definition alone cannot run."""
        raise ToolFailed(f"`{call.tool.name}` is only listed ({self.name}) and cannot be called.")

    async def close(self) -> None:
        """Holds nothing."""
