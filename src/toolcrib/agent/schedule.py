"""One unattended turn with its own scope, and a record of what really happened.

`cron` calls it; there is no scheduler here. It starts only if it has the tools that it was promised (S22). Nobody is
there to ask, so an approval that is needed is refused, told to the model, and makes the run a failed one: a turn that
could not do its work must not look like one that did.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from toolcrib.activity import Event
from toolcrib.agent.account import Account
from toolcrib.agent.host import Host, open_host
from toolcrib.agent.loop import NO_SUCCESS, Report, View
from toolcrib.agent.models import Model
from toolcrib.definitions import Json, JsonObject
from toolcrib.errors import ModelError, RequiredToolsMissing
from toolcrib.settings import Settings
from toolcrib.sources.base import Source

RunOutcome = Literal[
    "completed",
    "refused",
    "cut",
    "declined",
    "empty",
    "step_limit",
    "required_tools_missing",
    "model_failed",
    "interrupted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a run did."""

    task: str
    outcome: RunOutcome
    started: float
    finished: float
    enabled_toolsets: tuple[str, ...] | None
    required_tools: tuple[str, ...]
    model: str | None = None
    reason: str | None = None
    """Why the outcome is no success, if it is none."""
    text: str = ""
    steps: int = 0
    calls: tuple[JsonObject, ...] = ()
    """Every call under its real name, with its outcome, as the feed has it."""
    account: JsonObject | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the turn did what it could have been asked for."""
        return self.outcome == "completed"

    def as_json(self) -> JsonObject:
        """The record, for a file."""
        return {
            "task": self.task,
            "outcome": self.outcome,
            "reason": self.reason,
            "model": self.model,
            "started": self.started,
            "finished": self.finished,
            "enabled_toolsets": None if self.enabled_toolsets is None else list(self.enabled_toolsets),
            "required_tools": list(self.required_tools),
            "steps": self.steps,
            "calls": cast("Json", list(self.calls)),
            "account": self.account,
            "text": self.text,
        }


async def run_task(
    task: str,
    settings: Settings,
    sources: Sequence[Source],
    *,
    clock: Callable[[], float],
    model: Model | None = None,
    view: View | None = None,
    opened: Callable[[Host], None] | None = None,
    enabled_toolsets: Iterable[str] | None = None,
    required_tools: Iterable[str] = (),
    lock: Path | None = None,
    ended: Callable[[], str | None] = lambda: None,
) -> RunRecord:
    """Runs one task and says what became of it; `opened` sees the host before it starts. Raises `ConfigError`.

    `ended` tells what cancelled the run if that is an end like any other, which has a record, too.
    """
    started = clock()
    enabled = None if enabled_toolsets is None else tuple(enabled_toolsets)
    required = tuple(required_tools)
    events: list[Event] = []

    def record(outcome: RunOutcome, **more: object) -> RunRecord:
        return RunRecord(
            task=task,
            outcome=outcome,
            started=started,
            finished=clock(),
            enabled_toolsets=enabled,
            required_tools=required,
            calls=tuple(_entry(event) for event in events if event.stage == "done"),
            **more,  # pyright: ignore[reportArgumentType]
        )

    name = model.name if model else settings.agent.model
    account: Account | None = None
    made: RunRecord | None = None
    """The record, once the turn is over: whatever ends the run while it closes takes none of it back."""
    try:
        async with open_host(
            settings,
            sources,
            model=model,
            view=view,
            enabled_toolsets=enabled,
            required_tools=required,
            lock=lock,
        ) as host:
            host.crib.activity.add_sink(lambda event: events.append(event))
            account = host.agent.account
            if opened is not None:
                opened(host)
            try:
                report = await host.agent.run(task)
            except ModelError as error:
                made = record("model_failed", model=name, reason=str(error), account=account.as_json())
            else:
                outcome, reason = _judge(report, events)
                made = record(
                    outcome,
                    model=name,
                    reason=reason,
                    text=report.text,
                    steps=report.steps,
                    account=account.as_json(),
                )
        return made
    except RequiredToolsMissing as error:
        return record("required_tools_missing", model=name, reason=str(error))
    except asyncio.CancelledError:
        by = ended()
        if by is None:
            raise
        if made is not None:
            return made
        figures = account.as_json() if account else None
        return record("interrupted", model=name, reason=f"{by} ended the run before it was done.", account=figures)


def _judge(report: Report, events: Sequence[Event]) -> tuple[RunOutcome, str | None]:
    """The outcome. Approvals count wherever they were refused, in sub-agents and code too."""
    unanswered = sorted({str(event.tool) for event in events if event.stage == "done" and event.code == _UNANSWERED})
    if unanswered:
        return "refused", f"Nobody could approve: {', '.join(unanswered)}."
    if report.outcome == "step_limit":
        return "step_limit", f"The model did not come to an end within {report.steps} requests."
    why = NO_SUCCESS.get(report.outcome)
    return report.outcome, f"{why[0].upper()}{why[1:]}." if why else None


_UNANSWERED = "approval_required"


def _entry(event: Event) -> JsonObject:
    kept = ("tool", "toolset", "route", "outcome", "code", "duration_ms", "tokens", "principal")
    return {key: value for key, value in event.as_json().items() if key in kept}
