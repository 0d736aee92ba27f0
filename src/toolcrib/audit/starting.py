"""Starting servers side by side, asking each once for its tools, and ending all of them.

The slowest server decides how long it takes, and a deadline decides how long that may be. Whatever happens, a server
that was started is ended: also when another fails, and when somebody presses Ctrl-C.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from toolcrib.audit.report import Failure, Listed
from toolcrib.definitions import JsonObject, Toolset
from toolcrib.errors import ToolcribError
from toolcrib.limits import AUDIT_CLOSE_S, AUDIT_START_S


class Startable(Protocol):
    """A source that reaches its server when it is started."""

    def snapshot(self) -> Sequence[Toolset]:
        """Its toolset as it was listed last."""
        ...

    def watch(self, changed: Callable[[], None]) -> bool:
        """Calls `changed` when the tools were listed, or when the server cannot be reached."""
        ...

    async def start(self) -> None:
        """Begins to reach the server; returns at once."""
        ...

    async def close(self) -> None:
        """Ends the server."""
        ...


Open = Callable[[str, JsonObject], Startable]
"""The source of one entry of `mcpServers`. May raise `ToolcribError`."""


def build_starter(open_server: Open, *, deadline_s: float = AUDIT_START_S) -> Callable[..., Mapping[str, Listed]]:
    """What the audit command starts servers with."""

    def start(entries: Mapping[str, JsonObject], *, done: Callable[[str], None]) -> Mapping[str, Listed]:
        return asyncio.run(list_all(entries, open_server, done=done, deadline_s=deadline_s))

    return start


async def list_all(
    entries: Mapping[str, JsonObject],
    open_server: Open,
    *,
    done: Callable[[str], None],
    deadline_s: float = AUDIT_START_S,
) -> dict[str, Listed]:
    """What each server lists, or why it does not, in the order of the entries."""

    async def one(name: str, entry: JsonObject) -> Listed:
        listed = await _list_one(name, entry, open_server, deadline_s)
        done(name)
        return listed

    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(one(name, entry)) for name, entry in entries.items()}
    return {name: task.result() for name, task in tasks.items()}


async def _list_one(name: str, entry: JsonObject, open_server: Open, deadline_s: float) -> Listed:
    try:
        source = open_server(name, entry)
    except ToolcribError as error:
        return Failure(reason=str(error).rstrip("."))
    heard = asyncio.Event()
    source.watch(heard.set)
    try:
        await source.start()
        async with asyncio.timeout(deadline_s):
            await heard.wait()
    except TimeoutError:
        return Failure(reason=f"it did not answer within {deadline_s:g} seconds")
    except ToolcribError as error:
        return Failure(reason=str(error).rstrip("."))
    else:
        toolsets = source.snapshot()
        reason = next((toolset.unavailable for toolset in toolsets if toolset.unavailable), None)
        if reason is not None:
            return Failure(reason=reason)
        return [tool.definition for toolset in toolsets for tool in toolset.tools]
    finally:
        with suppress(TimeoutError, ToolcribError):
            async with asyncio.timeout(AUDIT_CLOSE_S):
                await source.close()
