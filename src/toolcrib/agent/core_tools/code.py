"""Python in a process of its own, whose tool calls come back to the session that runs it.

The code holds no tool and no key. What it calls travels over a socket to the host and goes through the same session:
same scope, same checks, same approvals, same feed, by the route `caller` (S7). Limits are set by the process on
itself before the code is read, and cannot be raised again. They are limits, not a prison: the code can read what its
user can read, which is why running it is asked about unless the operator's rules say otherwise.
"""

import asyncio
import contextlib
import socket
import sys
from typing import cast

import orjson

from toolcrib.agent.core_tools.processes import run_child
from toolcrib.agent.core_tools.seats import Seat, Seats
from toolcrib.agent.core_tools.workspace import Workspace
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ToolFailed
from toolcrib.execution.dispatch import CallContext
from toolcrib.limits import (
    CODE_CALLS,
    CODE_CPU_S,
    CODE_DEADLINE_S,
    CODE_FILE_BYTES,
    CODE_MEMORY_BYTES,
    CODE_MESSAGE_MAX_BYTES,
)

_NOT_FROM_CODE = frozenset({"execute_code", "delegate_task"})
"""Tools that start something of their own: code inside code would multiply every limit."""

_CHILD = """
import json, resource, socket, sys
for kind, bound in ((resource.RLIMIT_CPU, int(sys.argv[2])), (resource.RLIMIT_AS, int(sys.argv[3])),
                    (resource.RLIMIT_FSIZE, int(sys.argv[4])), (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(kind, (bound, bound))
_channel = socket.socket(fileno=int(sys.argv[1])).makefile("rw", encoding="utf-8", newline="\\n")
class ToolError(Exception):
    pass
def call(name, /, **arguments):
    _channel.write(json.dumps({"name": name, "arguments": arguments}) + "\\n")
    _channel.flush()
    line = _channel.readline()
    if not line:
        raise ToolError("the session is gone")
    answer = json.loads(line)
    if answer["is_error"]:
        raise ToolError(answer["text"])
    return answer["text"] if answer["structured"] is None else answer["structured"]
_code = json.loads(_channel.readline())
exec(compile(_code, "<code>", "exec"), {"__name__": "__main__", "call": call, "ToolError": ToolError})
"""


class Code:
    """Runs code for sessions."""

    def __init__(self, workspace: Workspace, seats: Seats) -> None:
        self._workspace = workspace
        self._seats = seats

    async def execute_code(self, context: CallContext, code: str) -> str:
        """Run Python code in the working directory and return what it prints.

        In it, `call("tool_name", key=value)` runs a tool of this session and returns its result, or raises
        `ToolError`.

        Args:
            context: The call.
            code: The program.
        """
        seat = self._seats.of(context)
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-I", "-c", _CHILD, str(theirs.fileno())]
        argv += [str(bound) for bound in (CODE_CPU_S, CODE_MEMORY_BYTES, CODE_FILE_BYTES)]
        serving: asyncio.Task[None] | None = None
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=CODE_MESSAGE_MAX_BYTES)
            serving = asyncio.create_task(_serve(seat, code, reader, writer))
            done = await run_child(
                argv, cwd=self._workspace.root, deadline_s=CODE_DEADLINE_S, pass_fds=[theirs.fileno()]
            )
        finally:
            theirs.close()
            if serving is not None:
                serving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await serving
        if done.status is None:
            raise ToolFailed(f"The code was ended after {CODE_DEADLINE_S:g} s. Its output so far:\n{done.output}")
        if done.status != 0:
            raise ToolFailed(f"The code ended with status {done.status}:\n{done.output}")
        return done.output or "[no output]"


async def _serve(seat: Seat, code: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hands the code over and answers its calls, one after the other."""
    try:
        writer.write(orjson.dumps(code) + b"\n")
        for number in range(1, CODE_CALLS + 2):
            line = await reader.readline()
            if not line:
                return
            answer = await _answer(seat, line, number)
            encoded = orjson.dumps(answer, default=str)
            if len(encoded) > CODE_MESSAGE_MAX_BYTES:
                encoded = orjson.dumps(_refused("The result is too large for code."))
            writer.write(encoded + b"\n")
            await writer.drain()
    except (ConnectionError, ValueError):
        return
    finally:
        writer.close()


async def _answer(seat: Seat, line: bytes, number: int) -> JsonObject:
    if number > CODE_CALLS:
        return _refused(f"At most {CODE_CALLS} calls are answered to one piece of code.")
    try:
        request = cast("Json", orjson.loads(line))
    except orjson.JSONDecodeError:
        return _refused("A call must be one line of JSON.")
    name = request.get("name") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(name, str):
        return _refused("A call needs a name.")
    if name in _NOT_FROM_CODE:
        return _refused(f"`{name}` cannot be called from code.")
    result = await seat.session.call(name, request.get("arguments"), call_id=f"code-{number}")
    return {"is_error": result.is_error, "text": result.text, "structured": result.structured}


def _refused(text: str) -> JsonObject:
    return {"is_error": True, "text": text, "structured": None}
