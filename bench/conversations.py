"""What tools cost in whole conversations: through the bridge, and all attached.

`python -m bench.conversations [--write]` plays scripted tasks through the real loop, session, search and functions.
Each task is a conversation of 20 turns in which five different tools are needed, each twice; the model is a policy
that knows nothing but the conversation: it searches for a need in its own words, calls what it finds, describes only
what it cannot call yet, and calls a tool that it knows without searching again; it never guesses from the listing.
The same conversation is then played with every definition in the array. Counted are tokens of tools by the usual
estimate (characters of JSON over four), once for every request that carries them, without prompt caching.

What is saved depends on how large definitions are, so there are two catalogs of 226 functions: `science` mixes the
standard library with numpy, `plain` is the standard library alone, whose definitions are half as large.

With `--write` the table and the picture in docs/agent.md are made anew.
"""

import argparse
import asyncio
import random
import statistics
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import orjson
from examples.stdlib_toolsets import stdlib_toolsets

from bench.needs import NEEDS, SCIENCE_NEEDS, Need
from bench.picture import draw_lines
from toolcrib import Crib, Functions
from toolcrib.agent.account import Account
from toolcrib.agent.core_tools import Seats, Workspace, core_tools
from toolcrib.agent.loop import Agent
from toolcrib.agent.models import Reply, TakeText
from toolcrib.config import build_settings
from toolcrib.definitions import DialectName, JsonObject

ROOT = Path(__file__).resolve().parent.parent
TOOLS = 226
TURNS = 20
DIFFERENT = 5
TASKS = 120
WINDOW = 128_000
MUST_SAVE_PCT = 90.0
MUST_TWO_STEPS_PCT = 80.0


Way = Literal["bridge", "attached"]
Catalog = Literal["science", "plain"]
UNSUITABLE = ("*file*", "load*", "save*", "mem*", "get_include", "info", "show*", "set*", "get*", "test", "put*", "copyto",
              "fill_diagonal", "place", "nested_iters", "frombuffer", "from*", "may_share*", "shares_memory", "einsum*",
              "iterable", "print*", "array2string", "array_str", "array_repr", "format_*", "asarray*", "require",
              "issubdtype", "can_cast", "*dtype*", "result_type", "promote_types", "min_scalar_type", "typename",
              "mintypecode", "common_type", "ndfromtxt", "busday*", "datetime*", "is_busday", "block", "bmat", "r_",
              "apply_*", "piecewise", "vectorize", "broadcast*", "deprecate*", "real_if_close", "ix_", "c_", "s_",
              "index_exp", "mgrid", "ogrid", "lib*", "errstate", "seterr*", "poly*line*", "polyvander*", "polyval*d")  # fmt: skip
"""Functions of numpy that are for programs only: files, buffers, types, printing."""


@dataclass(slots=True)
class Reached:
    """How a tool that the model did not know was reached."""

    tool: str
    steps: int = 0
    """Requests from the wish to the call, the call included."""
    called: bool = False


@dataclass(slots=True)
class Policy:
    """A model that follows its nose: it reads only what the conversation shows."""

    way: Way
    name: str = "policy"
    endpoint: str = "in process"
    dialect: DialectName = "openai_chat"
    known: set[str] = field(default_factory=set[str])
    cold: list[Reached] = field(default_factory=list[Reached])
    need: Need | None = None
    searched: int = 0
    _called: bool = False

    def begin(self, need: Need | None) -> None:
        """The user's next turn."""
        self.need, self.searched, self._called = need, 0, False
        if need and need.tool not in self.known and self.way != "attached":
            self.cold.append(Reached(need.tool))

    async def window(self) -> int | None:
        return WINDOW

    async def close(self) -> None:
        pass

    def say(self, text: str) -> JsonObject:
        return {"role": "user", "content": text}

    def answer(self, messages: Sequence[JsonObject], notice: str | None) -> list[JsonObject]:
        return list(messages)

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        call = self._next_call(items)
        if call is None:
            return Reply(text="Here you are.", items=({"role": "assistant", "content": "Here you are."},))
        name, arguments = call
        entry: JsonObject = {
            "id": f"c{len(items)}",
            "type": "function",
            "function": {"name": name, "arguments": orjson.dumps(arguments).decode()},
        }
        return Reply(text="", items=({"role": "assistant", "content": None, "tool_calls": [entry]},), calls=(entry,))

    def _next_call(self, items: Sequence[JsonObject]) -> tuple[str, dict[str, Any]] | None:
        need = self.need
        if need is None or self._called:
            return None
        if self.way == "attached":
            self._called = True
            return need.tool, need.arguments
        cold = self.cold[-1] if self.cold and self.cold[-1].tool == need.tool and not self.cold[-1].called else None
        if need.tool in self.known:
            return self._call(need, cold)
        if cold is None:
            return None
        cold.steps += 1
        shown = _read_match(items, need.tool) if cold.steps > 1 else None
        if shown is not None and shown.get("complete", True):
            return self._call(need, cold)
        if shown is not None:
            return "tool_describe", {"name": need.tool}
        self.searched += 1
        if self.searched > 2:
            return None
        return "tool_search", {"query": need.asked if self.searched == 1 else need.again}

    def _call(self, need: Need, cold: Reached | None) -> tuple[str, dict[str, Any]]:
        self._called = True
        self.known.add(need.tool)
        if cold is not None:
            cold.called = True
        return "tool_call", {"name": need.tool, "arguments": need.arguments}


def _read_match(items: Sequence[JsonObject], name: str) -> dict[str, Any] | None:
    """What the last answer shows of a tool: a hit, or a description."""
    last = items[-1]
    if last.get("role") != "tool":
        return None
    body: Any = orjson.loads(str(last["content"]))
    if not isinstance(body, dict):
        return None
    if body.get("name") == name:
        return {"complete": True}
    return next((match for match in body.get("matches", ()) if match["name"] == name), None)


@dataclass(frozen=True, slots=True)
class Played:
    """One conversation."""

    account: Account
    by_turn: list[int]
    """Tool-related tokens sent up to the end of each turn."""
    cold: list[Reached]
    ran: int


def catalog(kind: Catalog) -> list[Functions]:
    """Exactly 226 real functions: all that are needed, and others of the same toolsets in turn."""
    toolsets = stdlib_toolsets()
    if kind == "science":
        import numpy as np
        from numpy.polynomial import polynomial

        toolsets = [toolset for toolset in toolsets if toolset.name != "operator"]
        owners = {"numpy": np, "linalg": np.linalg, "fft": np.fft, "polynomial": polynomial}
        toolsets += [Functions.of(owner, name=name, exclude=UNSUITABLE) for name, owner in owners.items()]
    wanted = {need.tool for need in needs_of(kind)}
    spare = [[tool.name for tool in toolset.snapshot()[0].tools if tool.name not in wanted] for toolset in toolsets]
    turns = [name for layer in zip_longest(*spare) for name in layer if name]
    kept = wanted | set(turns[: TOOLS - len(wanted)])
    for toolset in toolsets:
        for tool in toolset.snapshot()[0].tools:
            if tool.name not in kept:
                toolset.remove(tool.name)
    return toolsets


def needs_of(kind: Catalog) -> tuple[Need, ...]:
    """What can be wished for with a catalog."""
    return (*NEEDS, *SCIENCE_NEEDS) if kind == "science" else NEEDS


def plan_task(seed: int, kind: Catalog) -> list[Need | None]:
    """Twenty turns: five tools, each needed twice, the rest is talk."""
    rng = random.Random(seed)
    needs = rng.sample(needs_of(kind), DIFFERENT)
    turns: list[Need | None] = [None] * TURNS
    places = sorted(rng.sample(range(TURNS), 2 * DIFFERENT))
    order = [*needs, *needs]
    first, second = order[:DIFFERENT], order[DIFFERENT:]
    # A tool comes back after it was first needed: first uses and returns alternate.
    for index in range(DIFFERENT):
        turns[places[2 * index]] = first[index]
        turns[places[2 * index + 1]] = second[rng.randrange(index + 1)]
    return turns


@asynccontextmanager
async def open_crib(way: Way, kind: Catalog, *, core: bool, retrieval: str) -> AsyncGenerator[Crib]:
    """The crib of one way; every task gets a session of its own in it."""
    search = {"enabled": "off"} if way == "attached" else {"enabled": "auto", "retrieval": retrieval}
    extra = [core_tools(Workspace(ROOT), Seats())] if core else []
    settings = build_settings({"tools": {"tool_search": search}})
    async with Crib(*extra, *catalog(kind), settings=settings) as crib:
        yield crib


async def play(crib: Crib, task: Sequence[Need | None], way: Way) -> Played:
    """Plays one task."""
    session = crib.session(model_context=WINDOW)
    policy = Policy(way=way)
    agent = Agent(policy, session)
    by_turn: list[int] = []
    for need in task:
        policy.begin(need)
        await agent.run(need.wish if need else "Thank you. Tell me something about your day.")
        by_turn.append(agent.account.tokens)
    ran = sum(
        event.stage == "done" and event.outcome == "ok" and event.session == session.id
        for event in crib.activity.events
    )
    return Played(account=agent.account, by_turn=by_turn, cold=policy.cold, ran=ran)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All tasks over one catalog, both ways."""

    kind: Catalog
    bridge: list[Played]
    attached: list[Played]
    core_saved_pct: float
    definition_tokens: float

    @property
    def saved_pct(self) -> float:
        spent = sum(played.account.tokens for played in self.bridge)
        return 100 * (1 - spent / sum(played.account.tokens for played in self.attached))

    @property
    def cold(self) -> list[Reached]:
        return [reached for played in self.bridge for reached in played.cold]

    @property
    def two_steps_pct(self) -> float:
        return 100 * sum(reached.called and reached.steps == 2 for reached in self.cold) / len(self.cold)


async def measure(kind: Catalog, *, tasks: int = TASKS, retrieval: str = "hybrid") -> Outcome:
    """Plays every task both ways; a tenth of them once more with the core tools on both sides."""
    plans = [plan_task(seed, kind) for seed in range(tasks)]

    async def every(way: Way, plans: list[list[Need | None]], *, core: bool = False) -> list[Played]:
        async with open_crib(way, kind, core=core, retrieval=retrieval) as crib:
            return [await play(crib, plan, way) for plan in plans]

    sample = plans[: max(1, tasks // 10)]
    ours = await every("bridge", sample, core=True)
    theirs = await every("attached", sample, core=True)
    chars = sum(toolset.snapshot()[0].chars for toolset in catalog(kind))
    return Outcome(
        kind=kind,
        bridge=await every("bridge", plans),
        attached=await every("attached", plans),
        core_saved_pct=100 * (1 - sum(p.account.tokens for p in ours) / sum(p.account.tokens for p in theirs)),
        definition_tokens=chars / 4 / TOOLS,
    )


def table(outcomes: Sequence[Outcome], retrieval: str) -> str:
    """The figures as Markdown."""

    def row(label: str, read: Callable[[Played], float]) -> str:
        columns = [played for one in outcomes for played in (one.bridge, one.attached)]
        return (
            f"| {label} | {' | '.join(f'{statistics.fmean([read(p) for p in played]):,.1f}' for played in columns)} |"
        )

    count = len(outcomes[0].bridge)
    heads = " | ".join(
        f"{one.kind} ({one.definition_tokens:.0f} tokens a definition): bridge | all attached" for one in outcomes
    )
    rows = [
        f"{count} conversations of {TURNS} turns over {TOOLS} real functions, {DIFFERENT} different tools in each, "
        f"{2 * DIFFERENT} calls; {retrieval} retrieval, default settings, window {WINDOW:,} tokens.",
        "",
        f"| mean per conversation | {heads} |",
        f"|---|{'---|---|' * len(outcomes)}",
        row("requests to the model", lambda one: one.account.requests),
        row("searches", lambda one: one.account.searches),
        row("describes", lambda one: one.account.describes),
        row("calls that ran", lambda one: one.ran),
        row("tool-related tokens", lambda one: one.account.tokens),
        "",
    ]
    for one in outcomes:
        steps = statistics.fmean([reached.steps for reached in one.cold if reached.called])
        lost = sum(not reached.called for reached in one.cold)
        rows.append(
            f"- {one.kind}: **{one.saved_pct:.1f} % fewer tool-related tokens** ({one.core_saved_pct:.1f} % with the "
            f"agent's ten core tools in the array on both sides); **{one.two_steps_pct:.1f} %** of {len(one.cold)} cold "
            f"tools reached in two steps (search, call), {steps:.2f} steps on average, {lost} not reached."
        )
    return "\n".join(rows)


def write_docs(outcome: Outcome, text: str) -> None:
    """Puts the table and the picture into docs/agent.md."""
    picture = ROOT / "docs" / "images" / "conversations.svg"
    picture.parent.mkdir(parents=True, exist_ok=True)
    lines = {
        name: [statistics.fmean(turn) for turn in zip(*(one.by_turn for one in played), strict=True)]
        for name, played in {"all attached": outcome.attached, "bridge": outcome.bridge}.items()
    }
    picture.write_text(
        draw_lines(lines, title="Tool-related tokens sent, by turn of the conversation", across="turn"),
        encoding="utf-8",
    )
    page = ROOT / "docs" / "agent.md"
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- conversations:begin -->\n")
    _, _, after = rest.partition("<!-- conversations:end -->")
    body = f"{text}\n\n![Tokens by turn, bridge against all attached](images/conversations.svg)\n"
    page.write_text(f"{before}<!-- conversations:begin -->\n{body}<!-- conversations:end -->{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=TASKS, help="conversations to play")
    parser.add_argument("--retrieval", choices=["hybrid", "lexical"], default="hybrid", help="how to search")
    parser.add_argument("--write", action="store_true", help="make the table and the picture of docs/agent.md anew")
    options = parser.parse_args()
    kinds: tuple[Catalog, ...] = ("science", "plain")
    outcomes = [asyncio.run(measure(kind, tasks=options.tasks, retrieval=options.retrieval)) for kind in kinds]
    text = table(outcomes, options.retrieval)
    print(text)
    first = outcomes[0]
    if options.write:
        write_docs(first, text)
    if first.saved_pct < MUST_SAVE_PCT or min(one.two_steps_pct for one in outcomes) < MUST_TWO_STEPS_PCT:
        sys.exit("below what is promised")


if __name__ == "__main__":
    main()
