"""The loop: ask the model, run what it calls, ask again, until it has nothing more to call.

Everything that it knows about tools goes through a session: which array to send, what a call means, whether it may
run. The loop itself keeps three promises. The array stays the same bytes for a whole conversation, and what changed
rides at its end (X10). A reply and the answers to its calls enter the conversation together, so that an interrupted
turn leaves nothing that an endpoint would refuse. And it ends: after so many requests, whatever the model does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolcrib.agent.account import Account
from toolcrib.agent.models import Model, Reply, Usage, notice_text
from toolcrib.agent.reveal import BridgeReveal, choose_reveal, found_names, found_tools
from toolcrib.assembly import Turn
from toolcrib.definitions import JsonObject
from toolcrib.dialects import salvage_call
from toolcrib.dialects.reveal import RevealSetting
from toolcrib.errors import CallError, InvalidCall, ModelRefused
from toolcrib.execution.executor import error_result
from toolcrib.limits import AGENT_CALLS_PER_REPLY, AGENT_STEPS
from toolcrib.session import Answer, Session

Outcome = Literal["completed", "cut", "declined", "empty", "step_limit"]

NO_SUCCESS: dict[Outcome, str] = {
    "cut": "the reply was cut at its bound",
    "declined": "the model declined to answer",
    "empty": "the model ended without a word",
}
"""What the end of a turn that is no success is called."""

SYSTEM = (
    "You are a careful assistant with tools. Do what the user asks with the tools that you have; tools that are not "
    "in your list may be found with tool_search. If a tool refuses or fails, say so plainly; never claim that "
    "something was done when it was not. Use clarify when you need a decision from the user."
)


class View(Protocol):
    """Shows a conversation as it goes."""

    def text(self, piece: str) -> None:
        """A piece of what the model says."""
        ...

    def note(self, line: str) -> None:
        """Something that the person should know: a change of tools, a fallback."""
        ...


class Quiet:
    """Shows nothing, and keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def text(self, piece: str) -> None:
        """Drops it."""

    def note(self, line: str) -> None:
        """Keeps it."""
        self.notes.append(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of one turn."""

    text: str
    """The last thing that the model said."""
    outcome: Outcome
    steps: int
    """Requests that it took."""
    answers: tuple[Answer, ...] = ()
    """Every call of the turn and what it got."""
    usage: Usage = field(default_factory=Usage)

    @property
    def refused(self) -> tuple[Answer, ...]:
        """Calls that needed an approval that nobody could give, or that somebody refused."""
        codes = {"approval_required", "approval_denied"}
        return tuple(answer for answer in self.answers if answer.result.code in codes)


class Agent:
    """One conversation between a person, a model and the tools of a session."""

    def __init__(
        self,
        model: Model,
        session: Session,
        *,
        reveal: RevealSetting = "auto",
        system: str = SYSTEM,
        max_steps: int = AGENT_STEPS,
        view: View | None = None,
    ) -> None:
        self.model = model
        self.session = session
        self.items: list[JsonObject] = []
        """The conversation, in the model API's own shape."""
        self.account = Account()
        self.found: dict[str, str] = {}
        """Tools that a search found, and the query that did."""
        self.reveal = choose_reveal(reveal, model, session)
        self._system = system
        self._max_steps = max_steps
        self._view = view or Quiet()
        self._turn: Turn | None = None

    async def run(self, text: str) -> Report:
        """One turn: what the person says, and everything that follows from it.

        Raises:
            RequiredToolsMissing: Before the model is asked.
            ModelError: The endpoint failed; what was done so far stays in the conversation.
        """
        self.session.begin_turn()
        self._assemble(after=None)
        self.items.append(self.model.say(text))
        done: list[Answer] = []
        usage = Usage()
        reply = Reply(text="", items=())
        for step in range(1, self._max_steps + 1):
            reply = await self._ask()
            usage += reply.usage
            if not reply.calls:
                self.items.extend(reply.items)
                if reply.ending == "paused":
                    continue
                outcome = _outcome(reply)
                if outcome in NO_SUCCESS:
                    self._view.note(NO_SUCCESS[outcome])
                return Report(text=reply.text, outcome=outcome, steps=step, answers=tuple(done), usage=usage)
            answers = await self._execute(reply)
            self._note(answers)
            done.extend(answers)
            messages = [message for answer in answers for message in self.reveal.messages(answer)]
            self.items.extend(reply.items)
            self._assemble(after=messages)
        self._view.note(f"stopped after {self._max_steps} requests in one turn")
        return Report(text=reply.text, outcome="step_limit", steps=self._max_steps, answers=tuple(done), usage=usage)

    def _assemble(self, *, after: list[JsonObject] | None) -> None:
        """Takes the next array; results of calls and a notice of what changed go to the end of the conversation."""
        turn = self.session.assemble(dialect=self.model.dialect, previous=self._turn)
        notice = turn.notice
        if turn.rebase_advised:
            # What came or changed is nothing that the bridge reaches: only a new array can show it.
            turn, notice = turn.rebased(), None
            self._view.note("the tool list was renewed: tools came that the old one cannot reach")
        self._turn = turn
        if after is not None:
            self.items.extend(self.model.answer(after, notice))
        elif notice:
            self.items.append(self.model.say(notice_text(notice)))
        if notice:
            self._view.note(notice)

    async def _ask(self) -> Reply:
        try:
            return await self._request()
        except ModelRefused as error:
            if not self.reveal.native or not self._current.activated:
                raise
            self._view.note(f"native tool search was refused; this conversation goes on with the bridge ({error})")
            self.items = self.reveal.for_bridge(self.items)
            self.reveal = BridgeReveal()
            return await self._request()

    async def _request(self) -> Reply:
        tools = self.reveal.tools(self._current)
        reply = await self.model.reply(system=self._system, items=self.items, tools=tools, take=self._view.text)
        self.account.note_request(self._current, tools)
        return reply

    @property
    def _current(self) -> Turn:
        if self._turn is None:
            raise AssertionError("assembled before it is sent")
        return self._turn

    async def _execute(self, reply: Reply) -> list[Answer]:
        """Runs the calls of a reply; every call gets an answer, in order.

        Of a reply that was cut the last call is not run: whatever of its arguments came after the cut is missing.
        """
        whole = reply.calls[:-1] if reply.ending == "cut" else reply.calls
        answers = await self.session.execute(whole[:AGENT_CALLS_PER_REPLY], mode="parallel")
        for raw in whole[AGENT_CALLS_PER_REPLY:]:
            answers.append(
                _not_run(
                    raw,
                    f"At most {AGENT_CALLS_PER_REPLY} calls are run at once; this one was not. Send it again alone.",
                )
            )
        for raw in reply.calls[len(whole) :]:
            answers.append(
                _not_run(
                    raw,
                    "Your reply was cut at the bound of its length in this call, so it was not run. "
                    "Send it again, alone and with shorter arguments.",
                )
            )
        return answers

    def _note(self, answers: Sequence[Answer]) -> None:
        revealed = 0
        for answer in answers:
            names = found_names(answer)
            self.found.update((name, _query(answer)) for name in names)
            if self.reveal.native:
                revealed += sum(tool.chars for tool in found_tools(answer, self.session))
        self.account.note_answers(answers, revealed)


def _outcome(reply: Reply) -> Outcome:
    """What a reply without calls makes of its turn."""
    if reply.ending == "cut" or reply.ending == "declined":
        return reply.ending
    return "completed" if reply.text.strip() else "empty"


def _not_run(raw: JsonObject, why: str) -> Answer:
    error: CallError = InvalidCall(why)
    return Answer(call=salvage_call(raw), result=error_result(error))


def _query(answer: Answer) -> str:
    body = answer.result.structured
    query = body.get("query") if isinstance(body, dict) else None
    return "; ".join(str(part) for part in query) if isinstance(query, list) else str(query or "")
