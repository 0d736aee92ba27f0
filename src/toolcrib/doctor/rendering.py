"""The page for a person: what is wrong first in each section, each with its next step; plain text in a pipe."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from toolcrib.doctor.checks import Check, State
from toolcrib.doctor.examination import Diagnosis
from toolcrib.intake.findings import make_visible
from toolcrib.terminal import print_hanging

_MARKS: dict[State, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "yellow"),
    "wrong": ("WRONG", "bold red"),
}
_WORST: tuple[State, ...] = ("wrong", "note", "ok")
_MARK_WIDTH = 6


def render(diagnoses: Sequence[Diagnosis], console: Console) -> None:
    """Prints the whole page: one configuration after the other."""
    for number, diagnosis in enumerate(diagnoses):
        if number:
            console.print()
        for section, checks in groupby(diagnosis.checks, key=lambda check: check.section):
            console.print(Text(section, style="bold"))
            for check in sorted(checks, key=lambda check: _WORST.index(check.state)):
                _print_check(check, console)
    wrong = sum(check.state == "wrong" for diagnosis in diagnoses for check in diagnosis.checks)
    console.print()
    if wrong:
        console.print(Text(f"{wrong} thing{'' if wrong == 1 else 's'} to put right.", style="bold red"))
    else:
        console.print(Text("Nothing is wrong.", style="bold green"))


def _print_check(check: Check, console: Console) -> None:
    word, style = _MARKS[check.state]
    print_hanging(console, Text(f"  {word:<{_MARK_WIDTH}}", style=style), Text(make_visible(check.text)))
    if check.action:
        action = Text(make_visible(check.action), style="dim" if check.state == "ok" else "")
        print_hanging(console, Text(f"  {'':{_MARK_WIDTH}}→ "), action)
