"""A conversation over a real endpoint in one line: scripted model, crib, session, agent."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Imported here so that their seconds of loading count for no single test.
import anthropic
import openai
from tests.fakes.scripted_model import Policy, ScriptedModel, Step

from toolcrib.activity import Event
from toolcrib.agent.core_tools import Asker, Seat, Seats, Workspace, core_tools
from toolcrib.agent.host import agent_settings
from toolcrib.agent.loop import Agent, Quiet
from toolcrib.agent.models import open_model, window_of
from toolcrib.crib import Crib
from toolcrib.session import Session
from toolcrib.settings import AgentSettings, ApprovalSettings, Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.functions import Functions

LOADED = (anthropic.__version__, openai.__version__)
APIS = ("openai_chat", "openai_responses", "anthropic")


def issues() -> Functions:
    """A small plugin whose tools really run."""
    toolset = Functions("tracker", prefix="tracker")
    opened: list[str] = []

    @toolset.tool(aliases=["ticket"])
    def create_issue(title: str, body: str = "", priority: int = 3) -> dict[str, Any]:
        """Open a new issue in the tracker.

        Args:
            title: One line.
            body: Everything else.
            priority: 1 is urgent.
        """
        opened.append(title)
        return {"number": len(opened), "title": title, "priority": priority}

    @toolset.tool(read_only=True, parallel=True)
    def list_issues(state: str = "open") -> list[str]:
        """List the issues of the tracker."""
        return list(opened)

    @toolset.tool(destructive=True)
    def delete_issue(number: int) -> str:
        """Delete an issue of the tracker for ever."""
        return f"deleted {number}"

    return toolset


def weather() -> Functions:
    """Another plugin."""
    toolset = Functions("weather", prefix="weather")

    @toolset.tool(read_only=True, parallel=True)
    def forecast(city: str, days: int = 1) -> str:
        """Tell the weather of the coming days in a city."""
        return f"{city}: sun for {days} days"

    return toolset


@dataclass
class Talk:
    """Everything that a test may look at."""

    endpoint: ScriptedModel
    crib: Crib
    session: Session
    agent: Agent
    seats: Seats
    notes: Quiet

    @property
    def events(self) -> list[Event]:
        return [event for event in self.crib.activity.events if event.session == self.session.id]

    def ran(self) -> list[str]:
        """Real tools that ran, in order."""
        return [str(event.tool) for event in self.crib.activity.events if event.stage == "dispatch"]


@asynccontextmanager
async def talk(
    script: Sequence[Step] | Policy,
    workdir: Path,
    *,
    api: str = "openai_chat",
    sources: Sequence[Any] | None = None,
    reveal: str = "bridge",
    native: bool = True,
    rules: dict[str, Any] | None = None,
    asker: Asker | None = None,
    approver: Callable[..., Any] | None = None,
    max_steps: int = 40,
    search: ToolSearchSettings | None = None,
    session_options: dict[str, Any] | None = None,
) -> AsyncGenerator[Talk]:
    settings = agent_settings(
        Settings(
            tools=ToolsSettings(tool_search=search or ToolSearchSettings(enabled="on")),
            approvals=ApprovalSettings(rules=rules if rules is not None else {"terminal": "allow"}),
        )
    )
    with ScriptedModel(script, native=native, window=32_000) as endpoint:
        address = endpoint.url if api == "anthropic" else endpoint.openai_url
        model = open_model(AgentSettings(api=api, model="scripted", endpoint=address))
        seats = Seats()
        core = core_tools(Workspace(workdir), seats, asker=asker)
        try:
            async with Crib(
                core, *(sources if sources is not None else [issues(), weather()]), settings=settings, approver=approver
            ) as crib:
                window = window_of(model.name, told=await model.window())
                session = crib.session(model_context=window, **(session_options or {}))
                notes = Quiet()
                agent = Agent(model, session, reveal=reveal, max_steps=max_steps, view=notes)
                with seats.take(Seat(session=session, model=model, reveal=reveal)):
                    yield Talk(endpoint=endpoint, crib=crib, session=session, agent=agent, seats=seats, notes=notes)
        finally:
            await model.close()
