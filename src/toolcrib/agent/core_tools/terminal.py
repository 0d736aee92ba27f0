"""Commands in a shell, started inside the working directory.

The fence holds for where a command starts; a shell can leave it. That is why commands are asked about unless the
operator's rules say otherwise, with the whole command shown.
"""

from toolcrib.agent.core_tools.processes import run_child
from toolcrib.agent.core_tools.workspace import Workspace
from toolcrib.errors import ToolFailed
from toolcrib.limits import TERMINAL_DEADLINE_MAX_S, TERMINAL_DEADLINE_S


class Terminal:
    """The terminal of one working directory."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def terminal(self, command: str, workdir: str = ".", timeout_s: float = TERMINAL_DEADLINE_S) -> str:
        """Run a shell command and return its output and exit status. It gets no input and ends with the call.

        Args:
            command: The command, for /bin/sh.
            workdir: Directory to start in, inside the working directory.
            timeout_s: Seconds that it may take.
        """
        if not command.strip() or "\0" in command:
            raise ToolFailed("`command` is empty or holds a NUL character.")
        start = self._workspace.inside(workdir)
        if not start.is_dir():
            raise ToolFailed(f"{workdir} is no directory.")
        deadline = max(0.1, min(timeout_s, TERMINAL_DEADLINE_MAX_S))
        done = await run_child(["/bin/sh", "-c", command], cwd=start, deadline_s=deadline)
        if done.status is None:
            raise ToolFailed(f"The command was ended after {deadline:g} s. Its output so far:\n{done.output}")
        return f"{done.output.rstrip()}\n[exit status {done.status}]".lstrip("\n")
