"""The tools that are always on the bench: real, bounded, and never deferred (S8).

They are one toolset, `core`. Nobody classifies them as a plugin's, so no setting can take them out of the array; what
they may do is decided by the same stages as every other call: checks, hooks, approvals.
"""

from toolcrib.agent.core_tools.code import Code
from toolcrib.agent.core_tools.delegation import Delegation
from toolcrib.agent.core_tools.files import Files
from toolcrib.agent.core_tools.notes import Notes
from toolcrib.agent.core_tools.people import Asker, People
from toolcrib.agent.core_tools.seats import Seat, Seats
from toolcrib.agent.core_tools.terminal import Terminal
from toolcrib.agent.core_tools.workspace import Workspace
from toolcrib.core import CORE_TOOLSET
from toolcrib.definitions import Traits
from toolcrib.limits import (
    CLARIFY_DEADLINE_S,
    CODE_DEADLINE_S,
    DELEGATE_DEADLINE_S,
    TERMINAL_DEADLINE_MAX_S,
)
from toolcrib.sources.functions import Functions

__all__ = ["Asker", "Seat", "Seats", "Workspace", "core_tools"]

_SLACK_S = 10.0
"""What the dispatcher grants beyond a tool's own deadline, so that the tool can end in order."""


def core_tools(
    workspace: Workspace, seats: Seats, *, asker: Asker | None = None, memory: str = ".toolcrib/memory.md"
) -> Functions:
    """The toolset `core` over a working directory. Without an asker, `clarify` says that nobody is there."""
    toolset = Functions(CORE_TOOLSET, origin="host")
    files, notes = Files(workspace), Notes(workspace, seats, memory=memory)
    reads = Traits(read_only=True, parallel=True)
    writes = Traits(read_only=False)
    toolset.add(Terminal(workspace).terminal, traits=Traits(deadline_s=TERMINAL_DEADLINE_MAX_S + _SLACK_S))
    toolset.add(files.read_file, traits=reads)
    toolset.add(files.write_file, traits=writes)
    toolset.add(files.patch, traits=writes)
    toolset.add(files.search_files, traits=reads)
    toolset.add(notes.todo, traits=Traits(read_only=True))
    toolset.add(notes.memory, traits=writes)
    toolset.add(People(asker).clarify, traits=Traits(read_only=True, deadline_s=CLARIFY_DEADLINE_S))
    toolset.add(Delegation(seats).delegate_task, traits=Traits(deadline_s=DELEGATE_DEADLINE_S))
    toolset.add(Code(workspace, seats).execute_code, traits=Traits(deadline_s=CODE_DEADLINE_S + _SLACK_S))
    return toolset
