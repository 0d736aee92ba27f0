"""Sub-agents: a task for another conversation with the same model and at most the same tools.

The sub-agent's session is made by narrowing the session that delegates, so whatever the model asks for, the result is
an intersection (S19). It has its own crib in the sense that its searches, counts and texts know nothing else, and its
own budget of requests.
"""

from typing import cast

from toolcrib.agent.core_tools.seats import Seat, Seats
from toolcrib.agent.loop import Agent
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ModelError, ToolFailed
from toolcrib.execution.dispatch import CallContext
from toolcrib.limits import AGENT_DEPTH, SUBAGENT_STEPS
from toolcrib.session import Answer


class Delegation:
    """Starts sub-agents."""

    def __init__(self, seats: Seats) -> None:
        self._seats = seats

    async def delegate_task(
        self, context: CallContext, task: str, toolsets: list[str] | None = None, read_only: bool = False
    ) -> JsonObject:
        """Give a task to a sub-agent that works on it alone and reports back. It knows nothing but the task.

        Args:
            context: The call.
            task: Everything that it needs to know.
            toolsets: The only toolsets that it may have; all of yours if left out.
            read_only: Whether it may only use deferred tools that change nothing.
        """
        seat = self._seats.of(context)
        if not task.strip():
            raise ToolFailed("`task` is blank.")
        if seat.model is None:
            raise ToolFailed("There is no model for a sub-agent here.")
        if seat.depth >= AGENT_DEPTH:
            raise ToolFailed("Sub-agents cannot delegate further: do this part yourself.")
        session = seat.session.narrow(enabled_toolsets=toolsets, read_only=read_only)
        child = Seat(session=session, model=seat.model, reveal=seat.reveal, depth=seat.depth + 1)
        with self._seats.take(child):
            agent = Agent(seat.model, session, reveal=seat.reveal, max_steps=SUBAGENT_STEPS)
            try:
                report = await agent.run(task)
            except ModelError as error:
                raise ToolFailed(f"The sub-agent could not go on: {error}", detail=str(error)) from None
        available: list[Json] = [toolset.name for toolset in session.catalog.toolsets]
        return {
            "answer": report.text,
            "outcome": report.outcome,
            "toolsets": available,
            "calls": cast("Json", [call_entry(answer) for answer in report.answers]),
        }


def call_entry(answer: Answer) -> JsonObject:
    """A call in a report: the real tool and what became of it."""
    entry: JsonObject = {
        "tool": answer.tool.name if answer.tool else answer.call.name,
        "ok": not answer.result.is_error,
    }
    if answer.tool is not None:
        entry["toolset"] = answer.tool.toolset
    return {**entry, "code": answer.result.code} if answer.result.code else entry
