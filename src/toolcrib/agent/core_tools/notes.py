"""What an agent writes down: a list of things to do, for one conversation, and a memory that outlives it."""

from typing import Literal

from toolcrib.agent.core_tools.seats import Seats
from toolcrib.agent.core_tools.workspace import Workspace
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ToolFailed
from toolcrib.execution.dispatch import CallContext
from toolcrib.limits import MEMORY_MAX_CHARS, TODO_ITEMS


class Notes:
    """The notes of an agent."""

    def __init__(self, workspace: Workspace, seats: Seats, *, memory: str) -> None:
        self._workspace = workspace
        self._seats = seats
        self._memory = memory
        workspace.inside(memory)

    async def todo(
        self, context: CallContext, items: list[str] | None = None, done: list[int] | None = None
    ) -> JsonObject:
        """Keep a list of things to do in this conversation; without arguments, show it.

        Args:
            context: The call.
            items: The whole new list, in order.
            done: Numbers of entries that are done, counted from 1.
        """
        seat = self._seats.of(context)
        if items is not None:
            if len(items) > TODO_ITEMS:
                raise ToolFailed(f"The list has {len(items)} entries; at most {TODO_ITEMS} are kept.")
            seat.todo[:] = [(item[:500], False) for item in items]
        for number in done or ():
            if not 1 <= number <= len(seat.todo):
                raise ToolFailed(f"There is no entry {number}; the list has {len(seat.todo)}.")
            seat.todo[number - 1] = (seat.todo[number - 1][0], True)
        listed: list[Json] = [{"item": text, "done": finished} for text, finished in seat.todo]
        return {"todo": listed, "open": sum(not finished for _, finished in seat.todo)}

    def memory(self, action: Literal["read", "add", "remove"] = "read", text: str = "") -> str:
        """Remember things beyond this conversation: read the notes, add a line, or remove the lines that hold a text.

        Args:
            action: What to do.
            text: The line to add, or text of the lines to remove.
        """
        lines = self._lines()
        if action == "read":
            return "\n".join(lines) or "[nothing remembered]"
        line = " ".join(text.split())
        if not line:
            raise ToolFailed("`text` is blank.")
        if action == "add":
            lines.append(line)
        else:
            kept = [known for known in lines if line not in known]
            if len(kept) == len(lines):
                raise ToolFailed("No line holds this text.")
            lines = kept
        content = "".join(f"{known}\n" for known in lines)
        if len(content) > MEMORY_MAX_CHARS:
            raise ToolFailed(f"The memory is full ({MEMORY_MAX_CHARS} characters): remove something first.")
        self._workspace.write(self._memory, content.encode())
        return f"{len(lines)} lines remembered."

    def _lines(self) -> list[str]:
        if not self._workspace.inside(self._memory).exists():
            return []
        return self._workspace.read(self._memory).decode(errors="replace").splitlines()
