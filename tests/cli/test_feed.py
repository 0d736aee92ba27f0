"""The feed in the terminal: real names, what they cost, and what found them."""

import io

import pytest
from rich.console import Console

from toolcrib.activity import Event
from toolcrib.cli.feed import TerminalView, feed_line


@pytest.mark.requirement("X28", "X15")
@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event(stage="done", tool="create_issue", toolset="mcp-github", duration_ms=12.4, tokens=30, route="bridge"),
            "  ✓ create_issue [mcp-github]  12 ms, 30 tokens  found by tool_search: “open a ticket”",
        ),
        (
            Event(stage="done", tool="rm", outcome="refused", code="approval_denied", principal="local/1"),
            "      ⊘ rm    approval_denied",
        ),
        (
            Event(stage="done", tool="rm", outcome="failed", code="tool_failed", route="caller", tokens=1),
            "  (code) ✗ rm  1 tokens  tool_failed",
        ),
        (
            Event(stage="search", duration_ms=3.0, tokens=96, detail={"found": ["a", "b"]}),
            "  ⌕ tool_search 3 ms, 96 tokens → a, b",
        ),
        (Event(stage="search", code="search_refused", outcome="refused"), "  ⌕ tool_search search_refused"),
        (Event(stage="describe", tokens=5, detail={"described": []}), "  ⌕ tool_describe 5 tokens → nothing"),
        (Event(stage="unwrap", reason="what it was"), "  ⊘ a call that cannot be read: what it was"),
        (Event(stage="scope"), None),
    ],
)
def test_an_event_has_its_line(event: Event, line: str | None) -> None:
    assert feed_line(event, {"create_issue": "open a ticket"}) == line


@pytest.mark.requirement("X28")
def test_words_of_the_model_cannot_take_over_the_terminal() -> None:
    out = io.StringIO()
    view = TerminalView(Console(file=out, force_terminal=False, width=200))
    view.text("safe \x1b[2J[bold]text[/bold]\nnext")
    view.note("a \x07 note")
    view.end()
    assert "\x1b" not in out.getvalue()
    assert out.getvalue() == "safe \\x1b[2J[bold]text[/bold]\nnext\n  ! a \\x07 note\n"
