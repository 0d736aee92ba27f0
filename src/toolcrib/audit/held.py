"""A source that only holds definitions: enough to count and to search them, nothing to call."""

from toolcrib.definitions import Call, Result, Toolset
from toolcrib.errors import ToolFailed
from toolcrib.execution.dispatch import CallContext


class HeldSource:
    """Toolsets that somebody else has listed."""

    def __init__(self, toolsets: tuple[Toolset, ...]) -> None:
        self.name = "audit"
        self._toolsets = toolsets

    def snapshot(self) -> tuple[Toolset, ...]:
        """The toolsets."""
        return self._toolsets

    def watch(self, changed: object) -> bool:
        """Never changes."""
        return True

    async def call(self, call: Call, context: CallContext) -> Result:
        """Refuses."""
        raise ToolFailed(f"`{call.tool.name}` was listed for an audit and cannot be called.")

    async def close(self) -> None:
        """Holds nothing."""
