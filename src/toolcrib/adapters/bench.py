"""The bench: the array of a session for a host that runs its own loop, and what its calls get.

A framework decides when to ask the model and owns the conversation, so two things need a home. The array stays the
same for the life of a bench, because a changed array costs the prompt cache; what changed is told with the next
result, which is the one place at the end of the conversation that a tool can write to (X10).
"""

from dataclasses import dataclass

from toolcrib.assembly import Turn
from toolcrib.definitions import Json, JsonObject, ModelCall
from toolcrib.dialects.base import plain_text
from toolcrib.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTool:
    """One entry of the array, in no dialect."""

    name: str
    description: str
    parameters: JsonObject
    parallel: bool
    """Whether it may run beside others of one reply."""


class Bench:
    """A session's array, and the way back for its calls."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._turn: Turn | None = None
        self._notices: list[str] = []

    def refresh(self) -> Turn:
        """Looks what the session has now; the array stays where it can, the news wait for the next result."""
        turn = self.session.assemble(previous=self._turn)
        if turn.notice:
            # Besides a new array, too: a host may have taken the old one for good.
            self._notices.append(turn.notice)
        if turn.rebase_advised:
            turn = turn.rebased()
        self._turn = turn
        return turn

    def tools(self) -> list[BenchTool]:
        """The array: tools that are always visible, and the bridge for all others."""
        turn = self._turn or self.refresh()
        return [
            BenchTool(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                parallel=tool.traits.parallel,
            )
            for tool in turn.assembly.tools
        ]

    async def run(self, name: str, arguments: Json, *, call_id: str | None = None) -> str:
        """Runs a call of the model's, whichever of the array's tools it names. Refusals are answers too."""
        call = ModelCall(id=call_id or name, name=name, arguments=arguments)
        (answer,) = await self.session.execute([call])
        self.refresh()
        text = plain_text(answer.result)
        if self._notices:
            text += "".join(f"\n[notice from the host: {notice}]" for notice in self._notices)
            self._notices.clear()
        return text
