"""What `chat` and `run` are made of: a crib with the core tools, a model, and a session that fits its window."""

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolcrib.agent.core_tools import Asker, Seat, Seats, Workspace, core_tools
from toolcrib.agent.loop import Agent, View
from toolcrib.agent.models import Model, open_model, window_of
from toolcrib.crib import Crib
from toolcrib.execution.approval import Approver
from toolcrib.limits import AGENT_STARTUP_WAIT_S
from toolcrib.session import Session
from toolcrib.settings import Settings, Verdict
from toolcrib.sources.base import Source

logger = logging.getLogger("toolcrib")

CORE_RULES: dict[str, Verdict] = {"terminal": "ask", "execute_code": "ask"}
"""What is asked about unless the operator's rules name it: both can do whatever their user can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One conversation, ready to start."""

    crib: Crib
    model: Model
    session: Session
    agent: Agent


def agent_settings(settings: Settings) -> Settings:
    """The settings with the rules for core tools below the operator's own."""
    approvals = msgspec.structs.replace(settings.approvals, rules={**CORE_RULES, **settings.approvals.rules})
    return msgspec.structs.replace(settings, approvals=approvals)


@asynccontextmanager
async def open_host(
    settings: Settings,
    sources: Sequence[Source],
    *,
    model: Model | None = None,
    asker: Asker | None = None,
    approver: Approver | None = None,
    view: View | None = None,
    enabled_toolsets: Iterable[str] | None = None,
    required_tools: Iterable[str] = (),
    lock: Path | None = None,
) -> AsyncGenerator[Host]:
    """Opens a conversation and closes everything behind it.

    Raises:
        ConfigError: A setting or a toolset that is wrong.
        RequiredToolsMissing: Before the model's endpoint is asked for anything.
    """
    ready = agent_settings(settings)
    seats = Seats()
    workspace = Workspace(ready.agent.workdir)
    core = core_tools(workspace, seats, asker=asker, memory=ready.agent.memory)
    async with Crib(core, *sources, settings=ready, approver=approver, lock=lock) as crib:
        for name in await crib.settle(wait_s=AGENT_STARTUP_WAIT_S):
            logger.warning("%s is still starting; its tools come when it is up", name)
        enabled = None if enabled_toolsets is None else [*enabled_toolsets]
        # Required tools are checked before anything is asked of the endpoint, even its window.
        probe = crib.session(enabled_toolsets=enabled, required_tools=required_tools)
        client = model or open_model(ready.agent)
        try:
            told = None if ready.agent.context else await client.window()
            session = crib.session(
                model_context=window_of(client.name, configured=ready.agent.context, told=told),
                enabled_toolsets=enabled,
                required_tools=probe.required,
            )
            agent = Agent(client, session, reveal=ready.agent.reveal, max_steps=ready.agent.max_steps, view=view)
            with seats.take(Seat(session=session, model=client, reveal=ready.agent.reveal)):
                yield Host(crib=crib, model=client, session=session, agent=agent)
        finally:
            await client.close()
