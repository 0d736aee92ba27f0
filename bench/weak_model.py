"""Does the loop survive a model that is too small for it? An advisory run with a real one.

`python -m bench.weak_model --endpoint http://127.0.0.1:8123/v1 --model smollm2-135m` talks to whatever is there. A
model of 135 million parameters hardly calls a tool by itself, so each conversation is held twice: as it is, and with
`tool_choice` forcing a tool in every request, where the model fills in the arguments. What counts is that the loop
ends in order, whatever comes: the run fails only if something is raised that is no error of the endpoint.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from examples.stdlib_toolsets import stdlib_toolsets

from toolcrib import Crib
from toolcrib.agent.core_tools import Seat, Seats, Workspace, core_tools
from toolcrib.agent.host import agent_settings
from toolcrib.agent.loop import Agent
from toolcrib.agent.models import Reply, TakeText
from toolcrib.agent.openai_client import ChatModel
from toolcrib.config import build_settings
from toolcrib.definitions import JsonObject
from toolcrib.errors import ModelError
from toolcrib.settings import AgentSettings

WISHES = (
    "What is the greatest common divisor of 84 and 36? Use a tool.",
    "Is 2028 a leap year?",
    "Read the file notes.txt and tell me what it says.",
)
FORCED = ("tool_search", "tool_call", "tool_describe", "tool_call", "read_file", "tool_search")


class Forced(ChatModel):
    """The same model, made to call a tool in every request of a list."""

    forced: list[str]

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        self.options.pop("tool_choice", None)
        if self.forced:
            self.options["tool_choice"] = {"type": "function", "function": {"name": self.forced.pop(0)}}
        return await super().reply(system=system, items=items, tools=tools, take=take)


async def hold(endpoint: str, name: str, wish: str, forced: Sequence[str], folder: Path) -> None:
    """Holds one conversation and prints what became of it."""
    settings = agent_settings(build_settings({"tools": {"tool_search": {"enabled": "on"}}}))
    model = Forced(
        AgentSettings(model=name, endpoint=endpoint, timeout_s=200),
        key="none",
        options={"max_tokens": 200, "temperature": 0.0},
    )
    model.forced = list(forced)
    seats = Seats()
    toolsets = [toolset for toolset in stdlib_toolsets() if toolset.name in {"math", "calendar", "dates"}]
    async with Crib(core_tools(Workspace(folder), seats), *toolsets, settings=settings) as crib:
        session = crib.session(model_context=8_192)
        agent = Agent(model, session, max_steps=8)
        with seats.take(Seat(session=session, model=model)):
            try:
                report = await agent.run(wish)
                end = f"{report.outcome} after {report.steps} requests: {report.text.strip()[:120]!r}"
            except ModelError as error:
                end = f"the endpoint failed: {error}"
        codes = Counter(str(event.code or event.outcome) for event in crib.activity.events if event.stage == "done")
        searches = sum(event.stage == "search" for event in crib.activity.events)
    await model.close()
    print(
        f"- {'forced' if forced else 'free'}: {wish}\n  {end}\n  searches {searches}, calls {dict(codes)}", flush=True
    )


async def run(endpoint: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "notes.txt").write_text("The meeting is on Tuesday.\n", encoding="utf-8")
        for forced in ((), FORCED):
            for wish in WISHES:
                await hold(endpoint, name, wish, forced, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True, help="base address of an OpenAI-compatible server")
    parser.add_argument("--model", required=True, help="the model's name there")
    options = parser.parse_args()
    asyncio.run(run(options.endpoint, options.model))


if __name__ == "__main__":
    main()
