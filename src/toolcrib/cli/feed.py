"""The activity feed in the terminal: what really ran, under its real name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.activity import Event
from toolcrib.agent.prompts import visible

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.agent.host import Host

_MARKS = {"ok": "✓", "failed": "✗", "refused": "⊘"}


def feed_line(event: Event, found: Mapping[str, str]) -> str | None:
    """One line for an event, if it deserves one."""
    match event.stage:
        case "search":
            return f"  ⌕ tool_search {_cost(event)}{_names(event, 'found')}"
        case "describe":
            return f"  ⌕ tool_describe {_cost(event)}{_names(event, 'described')}"
        case "unwrap":
            return f"  ⊘ a call that cannot be read: {event.reason}"
        case "done":
            return _done_line(event, found)
        case _:
            return None


def _done_line(event: Event, found: Mapping[str, str]) -> str:
    name = visible(event.tool or "?")
    toolset = f" [{event.toolset}]" if event.toolset else ""
    query = found.get(event.tool or "")
    by = f"  found by tool_search: “{visible(query)}”" if query else ""
    code = f"  {event.code}" if event.code else ""
    nested = "    " * (event.principal.count("/")) + ("(code) " if event.route == "caller" else "")
    return f"  {nested}{_MARKS.get(event.outcome, '·')} {name}{toolset}  {_cost(event)}{code}{by}"


def _cost(event: Event) -> str:
    parts = [
        f"{event.duration_ms:,.0f} ms" if event.duration_ms is not None else "",
        f"{event.tokens:,} tokens" if event.tokens is not None else "",
        event.code or "" if event.stage != "done" else "",
    ]
    return ", ".join(part for part in parts if part)


def _names(event: Event, key: str) -> str:
    names = event.detail.get(key) if isinstance(event.detail, dict) else None
    if not isinstance(names, list):
        return ""
    return f" → {', '.join(str(name) for name in names) or 'nothing'}"


class TerminalView:
    """Shows a conversation on a console: the model's words as they come, notes and the feed in between."""

    def __init__(self, console: "Console", *, words: bool = True) -> None:
        self._console = console
        self._words = words
        self._open = False
        self.found: Mapping[str, str] = {}

    def watch(self, host: "Host") -> None:
        """Shows the feed of a conversation from now on."""
        self.found = host.agent.found
        host.crib.activity.add_sink(self.event)

    def text(self, piece: str) -> None:
        """A piece of the reply; what a terminal would obey is shown instead."""
        if self._words:
            shown = "\n".join(visible(line) for line in piece.split("\n"))
            self._console.print(shown, end="", markup=False, highlight=False, soft_wrap=True)
            self._open = not piece.endswith("\n")

    def note(self, line: str) -> None:
        """A line of our own."""
        self.line(f"  ! {visible(line)}")

    def event(self, event: Event) -> None:
        """An event of the feed."""
        line = feed_line(event, self.found)
        if line is not None:
            self.line(line)

    def line(self, line: str) -> None:
        """A whole line, on a line of its own."""
        if self._open:
            self._console.print()
            self._open = False
        self._console.print(line, markup=False, highlight=False, style="dim", soft_wrap=True)

    def end(self) -> None:
        """Ends the reply's line."""
        if self._open:
            self._console.print()
            self._open = False
