"""A story in the terminal: more than 226 real tools for the price of three.

A scripted model works through a conversation: it searches, calls, repairs a wrong call, runs calls in parallel, is
refused what it may not have, and hands a part to a sub-session with a narrower scope. Everything that it calls is a real
function of Python's standard library. The story checks its own claims and exits with 1 if one fails.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from stdlib_toolsets import stdlib_toolsets

from toolcrib import Answer, ConfigError, Crib, Event, Functions, Session
from toolcrib.config import build_settings

WINDOW = 128_000
HERE = Path(__file__).resolve().parent

console = Console(highlight=False, soft_wrap=False)
claims: list[tuple[str, bool]] = []


def claim(text: str, holds: bool) -> None:
    claims.append((text, holds))


def core_tools() -> Functions:
    core = Functions("core")
    notes: list[str] = []

    @core.tool(read_only=True)
    def read_file(name: str) -> str:
        """Read a text file of the examples folder."""
        path = (HERE / name).resolve()
        if path.parent != HERE or not path.is_file():
            raise ValueError("only files of this folder can be read")
        return path.read_text(encoding="utf-8")

    @core.tool
    def todo(item: str) -> str:
        """Note something to do."""
        notes.append(item)
        return f"{len(notes)} noted"

    @core.tool(read_only=True)
    def clarify(question: str) -> str:
        """Ask the user a question."""
        return f"(the user is asked: {question})"

    return core


def call(name: str, call_id: str = "c1", /, **arguments: object) -> dict[str, object]:
    """A call as an OpenAI-compatible model would send it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def tool_call(name: str, call_id: str = "c1", /, **arguments: object) -> dict[str, object]:
    return call("tool_call", call_id, name=name, arguments=arguments)


async def say(
    session: Session, title: str, calls: Sequence[dict[str, object]], *, parallel: bool = False
) -> list[Answer]:
    console.print(f"\n[bold]{title}[/bold]")
    answers = await session.execute(calls, mode="parallel" if parallel else "sequential")
    for answer in answers:
        arguments = str(answer.call.arguments)
        console.print(f"  [cyan]model →[/cyan] {answer.call.name} ", end="")
        console.print(arguments, style="dim", markup=False, overflow="ellipsis", no_wrap=True)
        mark = "[red]✗[/red]" if answer.result.is_error else "[green]✓[/green]"
        console.print(f"  {mark} ", end="")
        console.print(" ".join(answer.result.text.split()), markup=False, overflow="ellipsis", no_wrap=True)
    return answers


def show_tools(crib: Crib) -> None:
    table = Table(title="What is attached", box=None, title_justify="left", title_style="bold")
    for heading in ("toolset", "tools", "tokens per turn"):
        table.add_column(heading, justify="left" if heading == "toolset" else "right")
    toolsets = sorted(crib.inventory.toolsets, key=lambda toolset: -toolset.chars)
    for toolset in toolsets[:8]:
        table.add_row(toolset.name, str(len(toolset.tools)), f"{toolset.chars // 4:,}")
    rest = toolsets[8:]
    table.add_row(f"… {len(rest)} more", str(sum(len(t.tools) for t in rest)), f"{sum(t.chars for t in rest) // 4:,}")
    console.print(table)


def show_picture(direct: int, now: int) -> None:
    width = max(20, min(60, console.width - 40))
    console.print("\n[bold]What the model reads on every turn[/bold]")
    for label, value, style in (("all attached", direct, "red"), ("with Toolcrib", now, "green")):
        bar = "█" * max(1, round(width * value / direct))
        console.print(f"  {label:>13} {value:>7,} tokens [{style}]{bar}[/{style}]")
    console.print(f"  {'saved':>13} {100 * (1 - now / direct):>6.1f} %")


def show_feed(events: Sequence[Event]) -> None:
    table = Table(title="\nThe activity feed: what really ran", box=None, title_justify="left", title_style="bold")
    for heading in ("who", "tool", "way", "outcome", "ms", "tokens"):
        table.add_column(heading, justify="right" if heading in {"ms", "tokens"} else "left", no_wrap=True)
    for event in events:
        if event.stage in {"done", "search"}:
            found = event.detail.get("found") if isinstance(event.detail, dict) else None
            name = event.tool or f"(search, {len(found) if isinstance(found, list) else 0} found)"
            table.add_row(
                event.principal, name, event.route or "", event.code or event.outcome,
                f"{event.duration_ms or 0:.1f}", str(event.tokens or ""),
            )  # fmt: skip
    console.print(table)


async def tell() -> None:
    settings = build_settings({"approvals": {"rules": {"random__*": "deny"}}})
    crib = Crib(core_tools(), *stdlib_toolsets(), settings=settings)
    session = crib.session(model_context=WINDOW, required_tools=["read_file", "clarify"])
    turn = session.assemble()
    assembly = turn.assembly

    console.print(Panel.fit("Toolcrib: thousands of tools for the price of three"))
    show_tools(crib)
    console.print(f"\n[bold]The gate[/bold]\n  {turn.decision}")
    names = [tool.name for tool in assembly.tools]
    console.print(f"  the model's array: {', '.join(names)}")
    direct = assembly.tokens - assembly.bridge_tokens + assembly.catalog.chars // 4 - assembly.listing.chars // 4
    show_picture(direct, assembly.tokens)
    claim(
        "at least 226 tools in at least 12 toolsets",
        session.catalog.size >= 226 and len(session.catalog.toolsets) >= 12,
    )
    claim("the bridge costs at most 300 tokens", assembly.bridge_tokens <= 300)
    claim("core tools stay in the array", {"read_file", "todo", "clarify"} <= set(names))

    (found,) = await say(
        session,
        "It searches, and finds how to call what it needs",
        [call("tool_search", query="number of days in a month")],
    )
    claim(
        "the right tool is the first hit", json.loads(found.result.text)["matches"][0]["name"] == "calendar__monthrange"
    )
    (ran,) = await say(
        session, "It calls the tool that it found", [tool_call("calendar__monthrange", year=2028, month=2)]
    )
    claim("the tool really ran", ran.result.text == "[1,29]")

    wrong, mended = await say(
        session,
        "A wrong call is answered with the schema, and repaired in one turn",
        [
            tool_call("statistics__quantiles", values=[1, 2, 3, 4]),
            tool_call("statistics__quantiles", data=[1, 2, 3, 4], n="2"),
        ],
    )
    claim("the wrong call did not run", wrong.result.code == "invalid_arguments" and not mended.result.is_error)

    parallel = await say(
        session,
        "Three calls at once, by full name, by short name and directly",
        [
            tool_call("digests__sha256", "a", text="toolcrib"),
            tool_call("isLeap", "b", year=2000),
            call("math__gcd", "c", integers=[84, 126]),
        ],
        parallel=True,
    )
    claim("answers come in the order of the calls", [answer.call.id for answer in parallel] == ["a", "b", "c"])
    claim("all three ran", not any(answer.result.is_error for answer in parallel))

    refused = await say(
        session,
        "What it gets when it may not, or need not, go through the bridge",
        [
            tool_call("random__randint", a=1, b=6),
            tool_call("read_file", name="story.py"),
            tool_call("monthrang", year=1),
        ],
    )
    claim(
        "each refusal has its own code",
        [a.result.code for a in refused] == ["approval_denied", "call_directly", "tool_not_available"],
    )

    (nothing,) = await say(
        session, "It asks for something that nobody offers", [call("tool_search", query="book a flight to Lisbon")]
    )
    claim("nothing fits, and that is said", not json.loads(nothing.result.text)["matches"])

    child = session.narrow(enabled_toolsets=["texts", "urls"])
    child_calls = [
        tool_call("urls__quote", string="a b&c"),
        tool_call("digests__sha256", text="x"),
        call("tool_search", query="sha256 hash"),
    ]
    inside, outside, hidden = await say(
        child, f"A sub-session with {child.catalog.size} of {session.catalog.size} tools", child_calls
    )
    claim("the sub-session has its own tools", not inside.result.is_error)
    claim(
        "and no others, not even by search",
        outside.result.code == "tool_not_available" and "digests" not in hidden.result.text,
    )

    later = session.assemble(previous=turn)
    crib.remove("lists")
    after = session.assemble(previous=later)
    console.print(
        f"\n[bold]A toolset goes away: the array keeps its bytes, the conversation gets a notice[/bold]\n  {after.notice}"
    )
    claim("not one byte of the array changed", after.encoded == turn.encoded)

    show_feed(crib.activity.events)


def main() -> int:
    try:
        asyncio.run(tell())
    except ConfigError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    console.print("\n[bold]Claims[/bold]")
    for text, holds in claims:
        console.print(f"  {'[green]✓[/green]' if holds else '[red]✗[/red]'} {text}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
