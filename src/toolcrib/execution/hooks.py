"""What a host may put around a call: guardrails, hooks, checkpoints, progress. The whole contract on one screen.

All of them see the real tool (S7). A hook may rewrite arguments, which are checked again, but never the tool.
Whatever guards a call (guardrails, `before`, checkpoint) refuses when it fails or takes too long; whatever only
observes (`after`, progress) never fails a call (X14).
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar, cast

import orjson
from msgspec import structs

from toolcrib.bridge import read_arguments
from toolcrib.definitions import Call, JsonObject, Result
from toolcrib.dialects.mcp import open_result
from toolcrib.errors import CallError, CheckpointFailed, GuardrailRefused, HookRejected
from toolcrib.execution.foreign import settled, told
from toolcrib.execution.results import is_made_of_objects
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
        return await settled(work)


def own_copy(call: Call) -> Call:
    """The call for code of others: what that does to the arguments changes nothing of what runs."""
    return structs.replace(call, arguments=orjson.loads(orjson.dumps(call.arguments)))


async def run_guardrails(guardrails: Sequence[Guardrail], call: Call) -> None:
    """Asks every guardrail. Raises `GuardrailRefused`."""
    for guardrail in guardrails:
        try:
            reason = await bounded(guardrail(own_copy(call)))
        except Exception as error:
            logger.exception("a guardrail failed; the call was refused")
            raise GuardrailRefused(
                "A guardrail could not decide, so the call was refused.", detail=told(repr, error)
            ) from None
        if reason is not None:
            raise GuardrailRefused(reason)


async def run_before(hooks: Sequence[Hook], call: Call) -> JsonObject | None:
    """The arguments as the hooks leave them, or nothing if none changed them. Raises `HookRejected`."""
    arguments: JsonObject | None = None
    for hook in hooks:
        current = own_copy(call if arguments is None else structs.replace(call, arguments=arguments))
        before = orjson.dumps(current.arguments)
        try:
            changed = await bounded(hook.before(current))
        except CallError:
            raise
        except Exception as error:
            logger.exception("a hook failed; the call was refused")
            raise HookRejected("A hook failed, so the call was refused.", detail=told(repr, error)) from None
        if changed is None and _encoded(current.arguments) != before:
            changed = current.arguments  # in place: checked like what is handed back
        if changed is not None:
            arguments = _taken(changed)
    return arguments


def _taken(changed: object) -> JsonObject:
    """What a hook handed back, as arguments. Raises `HookRejected`."""
    if not isinstance(changed, dict):
        raise HookRejected("A hook may change arguments only.", detail=f"a hook returned {type(changed).__name__}")
    try:
        return read_arguments(cast("JsonObject", changed))
    except CallError as error:
        raise HookRejected(
            "A hook changed the arguments to what JSON cannot carry, so the call was refused.", detail=str(error)
        ) from None


def _encoded(arguments: JsonObject) -> bytes | None:
    try:
        return orjson.dumps(arguments)
    except TypeError:
        return None


async def run_after(hooks: Sequence[Hook], call: Call, result: Result) -> Result:
    """The result as the hooks leave it. A failing hook leaves it as it was."""
    if hooks:
        result = open_result(result)
    for hook in hooks:
        try:
            changed: object = await bounded(hook.after(call, result))
        except Exception:
            logger.exception("a hook failed after the call; the result was kept")
            continue
        if isinstance(changed, Result) and is_made_of_objects(changed):
            result = changed
        elif changed is not None:
            logger.error("a hook gave %s in place of a result, which was kept", type(changed).__name__)
    return result


async def run_checkpoints(checkpoints: Sequence[Checkpoint], call: Call) -> None:
    """Saves before a change. Raises `CheckpointFailed`, and nothing is changed."""
    for checkpoint in checkpoints:
        try:
            await bounded(checkpoint(own_copy(call)))
        except Exception as error:
            logger.exception("a checkpoint failed; the call was refused")
            raise CheckpointFailed(
                "The checkpoint before this change failed, so nothing was run.", detail=told(repr, error)
            ) from None
