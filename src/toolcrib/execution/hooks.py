"""What a host may put around a call: guardrails, hooks, checkpoints, progress. The whole contract on one screen.

All of them see the real tool (S7). A hook may rewrite arguments, which are checked again, but never the tool.
Whatever guards a call (guardrails, `before`, checkpoint) refuses when it fails or takes too long; whatever only
observes (`after`, progress) never fails a call (X14).
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from toolcrib.definitions import Call, JsonObject, Result
from toolcrib.dialects.mcp import open_result
from toolcrib.errors import CallError, CheckpointFailed, GuardrailRefused, HookRejected
from toolcrib.limits import HOOK_DEADLINE_S

logger = logging.getLogger("toolcrib")

T = TypeVar("T")


class Guardrail(Protocol):
    """Says no to calls."""

    async def __call__(self, call: Call) -> str | None:
        """The reason to refuse, for the model to read, or nothing."""
        ...


class Hook(Protocol):
    """Stands before and after a call."""

    async def before(self, call: Call) -> JsonObject | None:
        """New arguments, or nothing to keep them. Raise `HookRejected` to refuse."""
        ...

    async def after(self, call: Call, result: Result) -> Result | None:
        """A new result, or nothing to keep it. The tool has run: failing here does not run it again."""
        ...


class Checkpoint(Protocol):
    """Saves what a call may change, before it does."""

    async def __call__(self, call: Call) -> None:
        """Saves; raise to refuse the call."""
        ...


class Progress(Protocol):
    """Is told how far a call has come."""

    def __call__(self, call: Call, done: float, total: float | None, message: str | None) -> None:
        """Takes one report."""
        ...


async def bounded(work: Awaitable[T]) -> T:
    """Waits for host code, but not for ever."""
    async with asyncio.timeout(HOOK_DEADLINE_S):
        return await work


async def run_guardrails(guardrails: Sequence[Guardrail], call: Call) -> None:
    """Asks every guardrail. Raises `GuardrailRefused`."""
    for guardrail in guardrails:
        try:
            reason = await bounded(guardrail(call))
        except Exception as error:
            logger.exception("a guardrail failed; the call was refused")
            raise GuardrailRefused(
                "A guardrail could not decide, so the call was refused.", detail=repr(error)
            ) from None
        if reason is not None:
            raise GuardrailRefused(reason)


async def run_before(hooks: Sequence[Hook], call: Call) -> JsonObject | None:
    """The arguments as the hooks leave them, or nothing if none changed them. Raises `HookRejected`."""
    arguments: JsonObject | None = None
    for hook in hooks:
        current = call if arguments is None else _with(call, arguments)
        try:
            changed = await bounded(hook.before(current))
        except CallError:
            raise
        except Exception as error:
            logger.exception("a hook failed; the call was refused")
            raise HookRejected("A hook failed, so the call was refused.", detail=repr(error)) from None
        if changed is not None:
            if not isinstance(changed, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - host code may ignore the types
                raise HookRejected(
                    "A hook may change arguments only.", detail=f"a hook returned {type(changed).__name__}"
                )
            arguments = changed
    return arguments


async def run_after(hooks: Sequence[Hook], call: Call, result: Result) -> Result:
    """The result as the hooks leave it. A failing hook leaves it as it was."""
    if hooks:
        result = open_result(result)
    for hook in hooks:
        try:
            changed = await bounded(hook.after(call, result))
        except Exception:
            logger.exception("a hook failed after the call; the result was kept")
            continue
        if changed is not None:
            result = changed
    return result


async def run_checkpoints(checkpoints: Sequence[Checkpoint], call: Call) -> None:
    """Saves before a change. Raises `CheckpointFailed`, and nothing is changed."""
    for checkpoint in checkpoints:
        try:
            await bounded(checkpoint(call))
        except Exception as error:
            logger.exception("a checkpoint failed; the call was refused")
            raise CheckpointFailed(
                "The checkpoint before this change failed, so nothing was run.", detail=repr(error)
            ) from None


def _with(call: Call, arguments: JsonObject) -> Call:
    return Call(
        id=call.id,
        tool=call.tool,
        arguments=arguments,
        route=call.route,
        principal=call.principal,
        notes=call.notes,
    )
