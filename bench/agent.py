"""What the reference agent adds to a turn: everything but the model's own time.

The model answers at once from a script: it searches, calls what it found through the bridge, and says that it is done,
which is three requests. What counts is the CPU time of the whole turn in this process. Beside it stands a loop that
does without a crib: it encodes every definition for each of the three requests, as a client of a model API does, and
runs the same tool.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import cast

import orjson

from bench.catalogs import definitions, queries
from bench.cribs import Servers, frozen
from bench.measure import Family, growth, run_family, short
from toolcrib.agent.loop import Agent
from toolcrib.agent.models import Reply, TakeText
from toolcrib.definitions import DialectName, Json, JsonObject

TURNS = 20
_VALUES: dict[str, Json] = {"string": "text", "integer": 7, "boolean": True}


class ScriptedModel:
    """Searches, calls and ends; encodes what it is sent, as any client would."""

    name, endpoint = "scripted", "here"
    dialect: DialectName = "openai_chat"

    def __init__(self, tool: str, arguments: JsonObject, asked: list[str]) -> None:
        self.sent = 0
        self._arguments = arguments
        self._tool = tool
        self._asked = asked
        self._step = 0

    async def window(self) -> int | None:
        return 200_000

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        self.sent += len(orjson.dumps({"messages": [{"role": "system", "content": system}, *items], "tools": tools}))
        turn, step = divmod(self._step, 3)
        self._step += 1
        if step == 2:
            return Reply(text="Done.", items=({"role": "assistant", "content": "Done."},))
        arguments = {"query": self._asked[turn]} if step == 0 else {"name": self._tool, "arguments": self._arguments}
        function = {"name": ("tool_search", "tool_call")[step], "arguments": orjson.dumps(arguments).decode()}
        call: JsonObject = {"id": f"c{self._step}", "type": "function", "function": function}
        return Reply(text="", items=({"role": "assistant", "tool_calls": [call]},), calls=(call,))

    def say(self, text: str) -> JsonObject:
        return {"role": "user", "content": text}

    def answer(self, messages: Sequence[JsonObject], notice: str | None) -> list[JsonObject]:
        return [*messages, *([{"role": "user", "content": notice}] if notice else [])]

    async def close(self) -> None:
        pass


async def measure(count: int) -> tuple[float, float, float, float]:
    """Milliseconds of a turn with the agent and without a crib, and kilobytes that either sends in it."""
    tools = definitions(count)
    session = frozen(Servers(tools))
    target = next(iter(session.catalog))
    properties = cast("dict[str, dict[str, str]]", target.parameters["properties"])
    arguments: JsonObject = {name: _VALUES[value["type"]] for name, value in properties.items()}
    model = ScriptedModel(target.name, arguments, queries(TURNS + 2))
    took: list[float] = []
    bare: list[float] = []
    sent = 0
    conversation: list[JsonObject] = [{"role": "user", "content": "Do it."}]
    for turn in range(TURNS + 1):
        agent = Agent(model, session, reveal="bridge")
        model.sent = 0
        started = time.process_time()
        report = await agent.run("Do it.")
        took.append(time.process_time() - started)
        if report.text != "Done." or any(answer.result.is_error for answer in report.answers):
            raise AssertionError(f"turn {turn} failed: {report}")
        started = time.process_time()
        sent = sum(len(orjson.dumps({"messages": conversation, "tools": tools})) for _ in range(3))
        bare.append(time.process_time() - started)
    # The first turn builds the index.
    return statistics.median(took[1:]) * 1000, statistics.median(bare[1:]) * 1000, model.sent / 1000, sent / 1000


def report(sizes: Sequence[int]) -> Family:
    """The table of all sizes."""
    found = {count: asyncio.run(measure(count)) for count in sizes}
    lines = {
        "agent": {count: cost[0] for count, cost in found.items()},
        "encoding every definition": {count: cost[1] for count, cost in found.items()},
    }
    rows = [
        [f"{count:,}", short(ours), short(bare), f"{bare / ours:.2g}×", f"{kb:,.0f}", f"{all_kb:,.0f}"]
        for count, (ours, bare, kb, all_kb) in found.items()
    ]
    small, large = 2_000, 20_000
    grown = [growth(values, small, large) for values in lines.values()]
    rows.append([f"growth {small:,} → {large:,}", *grown, "", "", ""])
    return Family(
        name="agent",
        title="One turn of the reference agent: three requests, a search and a call (CPU ms without the model)",
        headings=["tools", "agent", "encoding every definition", "ratio", "kB sent", "kB sent without"],
        rows=rows,
        lines=lines,
        notes=[f"n = {TURNS} turns of each size, medians."],
    )


if __name__ == "__main__":
    run_family("agent")
