"""`toolcrib pins`: what was approved, what differs from it, and approving it."""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.output import open_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from toolcrib.crib import Crib
    from toolcrib.definitions import JsonObject
    from toolcrib.intake.admission import HeldBack
    from toolcrib.intake.findings import Finding
    from toolcrib.intake.pins import Drift, Offer

Tools = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File of definitions, instead of the configured sources.")
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Configuration file; without it, toolcrib.yaml here.")
]
LockFile = Annotated[
    Path | None,
    typer.Option("--lock", metavar="FILE", help="Lock file; else beside the configuration: x.lock for x.yaml."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_MARKS = {"unchanged": " ", "changed": "~", "new": "+", "removed": "-"}


def build_pins() -> typer.Typer:
    """The group with its commands."""
    group = typer.Typer(
        help="Approved definitions, and what differs from them.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("list", short_help="Every tool, and how it stands to the lock file.")(list_pins)
    group.command("diff", short_help="What differs from the lock file.")(diff_pins)
    group.command("approve", short_help="Approve definitions as they are now.")(approve_pins)
    return group


def list_pins(tools: Tools = None, config: Config = None, lock: LockFile = None, json: AsJson = False) -> None:
    """Shows every tool, how it stands to the lock file, and what screening found.

    Example: toolcrib pins list --json
    """
    state = _State(tools, config, lock)
    findings = state.findings()
    held = {(item.toolset, item.name): item.reason for item in state.held_back}
    rows: list[JsonObject] = [
        {
            **_row(drift),
            "held_back": held.get((drift.toolset, drift.name)),
            "findings": [finding.as_json() for finding in _of(findings, drift)],
        }
        for drift in state.drifts
    ]
    if json:
        print_json({"lock": str(state.path), "exists": state.exists, "problems": state.problems(), "pins": rows})
        return
    console = open_console()
    for drift in state.drifts:
        console.print(_line(drift), markup=False, soft_wrap=True)
        if (drift.toolset, drift.name) in held:
            console.print(f"    held back: {held[(drift.toolset, drift.name)]}", markup=False, soft_wrap=True)
        for finding in _of(findings, drift):
            console.print(f"    {_finding_line(finding)}", markup=False, soft_wrap=True)
    _conclude(console, state)


def diff_pins(tools: Tools = None, config: Config = None, lock: LockFile = None, json: AsJson = False) -> None:
    """Shows what differs from the lock file; exit code 1 if anything does, or if approved tools could not be asked for.

    Example: toolcrib pins diff --config toolcrib.yaml || echo "definitions changed"
    """
    state = _State(tools, config, lock)
    differing = [drift for drift in state.drifts if drift.state != "unchanged"]
    if json:
        texts = [{**_row(drift), "description": state.description_of(drift)} for drift in differing]
        print_json(
            {"lock": str(state.path), "exists": state.exists, "problems": state.problems(), "differences": texts}
        )
    else:
        console = open_console()
        for drift in differing:
            console.print(_line(drift), markup=False, soft_wrap=True)
            text = state.description_of(drift)
            if drift.state in {"new", "changed"} and text:
                console.print(f"    now: {text}", markup=False, soft_wrap=True)
        _conclude(console, state)
    if differing or state.unseen():
        raise typer.Exit(1)


def approve_pins(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Tools, toolsets or sources to approve.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Approve whatever differs, except tools with hard findings.")
    ] = False,
    tools: Tools = None,
    config: Config = None,
    lock: LockFile = None,
    json: AsJson = False,
) -> None:
    """Writes the definitions as they are now into the lock file. Look at `pins diff` first.

    Example: toolcrib pins approve github__create_issue mcp-time
    """
    from toolcrib.errors import ConfigError
    from toolcrib.intake.pins import approve, write_lock

    if bool(names) == everything:
        raise ConfigError("Name what to approve, or give --all: `toolcrib pins diff` shows what there is.")
    state = _State(tools, config, lock)
    differing = [drift for drift in state.drifts if drift.state != "unchanged"]
    chosen = state.without_hard_findings(differing) if everything else state.named(names or [])
    accepted = [drift for drift in chosen if drift.state != "unchanged"]
    left = [drift for drift in differing if everything and drift not in accepted]
    if accepted or not state.exists:
        write_lock(state.path, approve(state.offers, state.lock, accepted))
    if json:
        print_json(
            {
                "lock": str(state.path),
                "approved": [_row(drift) for drift in accepted],
                "left": [_row(drift) for drift in left],
            }
        )
        return
    console = open_console()
    for drift in accepted:
        console.print(f"approved {_line(drift)}", markup=False)
    for drift in left:
        console.print(f"left     {_line(drift)}: it has hard findings; approve it by name after a look", markup=False)
    console.print(f"{len(accepted)} approved in {state.path}" if accepted else "Nothing to approve.", markup=False)


@contextmanager
def _quiet() -> Generator[None]:
    """Keeps out of the log what the command prints itself."""
    import logging

    logger = logging.getLogger("toolcrib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class _State:
    """The sources and the lock file, as one command sees them."""

    def __init__(self, tools: Path | None, config: Path | None, lock: Path | None) -> None:
        import asyncio

        from toolcrib.cli.cribs import open_crib
        from toolcrib.intake.pins import LOCK_NAME, Lock, compare, read_lock

        # A file of definitions has no configuration to lie beside.
        named = lock or (Path(LOCK_NAME) if tools is not None else None)
        with _quiet():
            self.crib: Crib = open_crib(tools=tools, config=config, lock=named)
            asyncio.run(self._look())
        self.path: Path = named or self.crib.intake.path or Path(LOCK_NAME)
        found = read_lock(self.path)
        self.exists = found is not None
        self.lock: Lock = found or Lock()
        self.drifts: Sequence[Drift] = compare(self.offers, self.lock)

    async def _look(self) -> None:
        """Starts the servers, takes down what they offer, and ends them."""
        from toolcrib.cli.cribs import settle

        async with self.crib as crib:
            self.unasked: Mapping[str, str] = await settle(crib)
            self.offers: Sequence[Offer] = crib.offers
            self.held_back: Sequence[HeldBack] = crib.held_back

    def findings(self) -> Mapping[str, tuple["Finding", ...]]:
        """Everything that screening finds, by tool."""
        return self.crib.intake.findings([offer.toolset for offer in self.offers])

    def problems(self) -> list[str]:
        """Sources that could not be asked, and why."""
        return [f"{name} could not be asked: {reason}" for name, reason in self.unasked.items()]

    def unseen(self) -> int:
        """Approved tools that nobody could look at."""
        seen = {(drift.toolset, drift.name) for drift in self.drifts}
        return sum((toolset, name) not in seen for toolset in self.unasked for name in self.lock.pins_of(toolset))

    def named(self, names: Sequence[str]) -> list["Drift"]:
        """The drifts that these names mean. Raises `ConfigError`."""
        from toolcrib.errors import ConfigError
        from toolcrib.intake.naming import nearest

        owned = {
            offer.source: {o.toolset.name for o in self.offers if o.source == offer.source} for offer in self.offers
        }
        known = {drift.name for drift in self.drifts} | {drift.toolset for drift in self.drifts} | set(owned)
        for name in names:
            if name not in known:
                hint = nearest(name, known)
                raise ConfigError(f"There is nothing named `{name}`{f': did you mean `{hint}`?' if hint else '.'}")
        wanted = set(names).union(*(owned.get(name, set()) for name in names))
        return [drift for drift in self.drifts if drift.name in wanted or drift.toolset in wanted]

    def without_hard_findings(self, drifts: Sequence["Drift"]) -> list["Drift"]:
        """The drifts that nobody needs to look at one by one."""
        from toolcrib.intake.screening import find_hard

        hard = {name for offer in self.offers for name in find_hard(offer.toolset)}
        return [
            drift for drift in drifts if drift.kind == "launch" or drift.state == "removed" or drift.name not in hard
        ]

    def description_of(self, drift: "Drift") -> str | None:
        """What the tool says of itself now, on one line and with nothing hidden."""
        from toolcrib.intake.findings import make_visible

        for offer in self.offers:
            tool = offer.toolset.by_name.get(drift.name) if offer.toolset.name == drift.toolset else None
            if tool is not None:
                return make_visible(re.sub(r"\s+", " ", tool.description))
        return None

    def summary(self) -> str:
        """One line about all of it."""
        counts = {state: sum(drift.state == state for drift in self.drifts) for state in _MARKS}
        counts["not asked"] = self.unseen()
        told = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "nothing to pin"
        return f"{self.path}{'' if self.exists else ' (does not exist yet)'}: {told}"


def _conclude(console: "Console", state: _State) -> None:
    from rich.text import Text

    from toolcrib.terminal import print_hanging

    for problem in state.problems():
        print_hanging(console, Text(), Text(problem, style="yellow"))
    console.print(state.summary(), markup=False, soft_wrap=True)
    if any(drift.state != "unchanged" for drift in state.drifts):
        step = "`toolcrib pins approve NAME` (or a toolset, or --all) once you have looked at them."
        print_hanging(console, Text("Next: ", style="bold"), Text(step))


def _row(drift: "Drift") -> "JsonObject":
    return {
        "kind": drift.kind,
        "toolset": drift.toolset,
        "name": drift.name,
        "state": drift.state,
        "parts": list(drift.parts),
    }


def _line(drift: "Drift") -> str:
    parts = f" ({', '.join(drift.parts)})" if drift.parts else ""
    what = "launch of " if drift.kind == "launch" else ""
    return f"{_MARKS[drift.state]} {what}{drift.name}: {drift.state}{parts}"


def _of(findings: Mapping[str, tuple["Finding", ...]], drift: "Drift") -> tuple["Finding", ...]:
    return findings.get(drift.name, ()) if drift.kind == "tool" else ()


def _finding_line(finding: "Finding") -> str:
    return (
        f"{finding.severity} {finding.rule} at {finding.path or 'the whole'}: {finding.explanation}: {finding.excerpt}"
    )
