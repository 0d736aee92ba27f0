"""The report for a person: tables and bars from 60 columns up, plain text in a pipe."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolcrib.audit.report import AuditReport, ServerCost
from toolcrib.intake.findings import make_visible
from toolcrib.terminal import print_hanging

_NARROW = 90
"""Columns below which a table shows only what nobody can do without."""
_MANY = 10
_FULL, _EMPTY = "█", "·"


def render(report: AuditReport, console: Console, *, next_step: str | None = None) -> None:
    """Prints the whole report, and what to do now."""
    if report.tools:
        console.print(_servers(report, console))
    _print_failures(report, console)
    _print_clients(report, console)
    if report.biggest:
        console.print()
        console.print(_biggest(report, console))
    if report.duplicates:
        console.print()
        console.print(_duplicates(report, console))
    if report.tools:
        console.print()
        for line in picture(report, console.width):
            console.print(line, overflow="ellipsis", no_wrap=True)
    console.print()
    for sentence in conclusions(report):
        print_hanging(console, Text(), Text(sentence))
    if next_step is not None:
        print_hanging(console, Text("Next: ", style="bold"), Text(next_step))


def picture(report: AuditReport, width: int) -> Iterator[Text]:
    """Now and with Toolcrib, side by side as bars."""
    conversation = report.conversation
    # All four begin in one column, so that the eye can compare.
    digits = len(f"{max(conversation.now, conversation.with_toolcrib):,}")
    yield Text("per turn", style="bold")
    yield from _bars(report.total_tokens, report.with_toolcrib_tokens, digits, width)
    searches = f", {conversation.searches} searches" if conversation.searches else ""
    yield Text(f"per conversation of {conversation.turns} turns{searches}", style="bold")
    yield from _bars(conversation.now, conversation.with_toolcrib, digits, width)


def conclusions(report: AuditReport) -> Iterator[str]:
    """What the figures mean, in sentences."""
    conversation = report.conversation
    if not report.total_tokens:
        yield "No tools were found: nothing to save."
        return
    if not report.activated:
        yield (
            f"Tool search would not be in use: {report.total_tokens:,} tokens are below its threshold of "
            f"{report.decision.threshold:,}. Switched on anyway, a turn would cost {report.forced_tokens:,}."
        )
    else:
        share = ""
        if report.context:
            now, then = (100 * value / report.context for value in (report.total_tokens, report.with_toolcrib_tokens))
            share = f", from {now:.1f} % to {then:.1f} % of the window"
        yield f"Saved per turn: {report.saved_pct} %{share}."
        yield (
            f"A search costs one more request and about {conversation.search_tokens:,} tokens of answer (median of "
            f"{conversation.measured}); up to {conversation.break_even:,} searches in {conversation.turns} turns, tool "
            "search is the cheaper way."
        )
    if report.exact_total is not None and report.exact_with_toolcrib is not None:
        yield (
            f"Counted with {report.tokenizer}: {report.exact_total:,} now, {report.exact_with_toolcrib:,} with "
            "Toolcrib; all other figures are estimates (characters / 4)."
        )
    else:
        yield "All figures are estimates (characters / 4). Toolcrib reported nothing to anybody."


def _bars(now: int, then: int, digits: int, width: int) -> Iterator[Text]:
    room = max(8, min(80, width - 18 - digits))
    top = max(now, then) or 1
    for label, value, style in (("now", now, "red"), ("with Toolcrib", then, "green")):
        full = max(1 if value else 0, round(room * value / top))
        yield Text.assemble(f"  {label:<13} ", (f"{value:>{digits},} ", "bold"), (_FULL * full, style))


def _servers(report: AuditReport, console: Console) -> Table:
    wide = console.width >= _NARROW
    exact = report.tokenizer is not None and wide
    table = _table("server", console)
    for title in ("tools", "tokens/turn", *(["exact"] if exact else []), *(["of window"] if report.context else [])):
        table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    if wide:
        table.add_column("", no_wrap=True)
    top = max((server.tokens for server in report.servers), default=0) or 1
    for server in sorted(report.servers, key=lambda item: (-item.tokens, item.name)):
        if server.status != "ok":
            continue
        cells = [server.name, f"{server.tools:,}", f"{server.tokens:,}"]
        cells += [f"{server.exact:,}"] if exact and server.exact is not None else []
        cells += [f"{100 * server.tokens / report.context:.1f} %"] if report.context else []
        cells += [_FULL * max(1, round(20 * server.tokens / top))] if wide else []
        table.add_row(*cells)
    total = ["together", f"{report.tools:,}", f"{report.total_tokens:,}"]
    total += [f"{report.exact_total:,}"] if exact and report.exact_total is not None else []
    total += [f"{100 * report.total_tokens / report.context:.1f} %"] if report.context else []
    table.add_section()
    table.add_row(*total, *([""] if wide else []), style="bold")
    return table


def _print_failures(report: AuditReport, console: Console) -> None:
    failed: list[ServerCost] = [server for server in report.servers if server.status != "ok"]
    for server in failed:
        word = "did not start" if server.status == "failed" else "was not started"
        print_hanging(console, Text(), Text(make_visible(f"{server.name} {word}: {server.error}"), style="yellow"))
    for server in report.servers:
        if server.left_out:
            console.print(Text(f"{server.name}: {server.left_out} definitions cannot be used"), soft_wrap=True)


def _print_clients(report: AuditReport, console: Console) -> None:
    if len(report.clients) < 2:
        return
    table = _table("client", console)
    for title in ("servers", "tokens/turn", "with Toolcrib"):
        table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    for client in report.clients:
        table.add_row(client.client, str(client.servers), f"{client.tokens:,}", f"{client.with_toolcrib:,}")
    console.print()
    console.print(table)


def _biggest(report: AuditReport, console: Console) -> Table:
    table = _table("biggest schemas", console)
    table.add_column("server", overflow="ellipsis", no_wrap=True)
    table.add_column("tokens/turn", justify="right", no_wrap=True, min_width=len("tokens/turn"))
    for tool in report.biggest[:_MANY]:
        table.add_row(tool.name, tool.server, f"{tool.tokens:,}")
    return table


def _duplicates(report: AuditReport, console: Console) -> Table:
    table = _table("on several servers", console)
    table.add_column("servers", overflow="ellipsis")
    table.add_column("paid again", justify="right", no_wrap=True, min_width=len("paid again"))
    for item in report.duplicates[:_MANY]:
        servers = ", ".join(item.servers)
        table.add_row(item.name, f"{servers} (same definition)" if item.same else servers, f"{item.tokens:,}")
    return table


def _table(first: str, console: Console) -> Table:
    table = Table(box=SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, show_edge=False)
    table.add_column(first, overflow="ellipsis", no_wrap=True, max_width=max(16, console.width // 2))
    return table
