"""From what was seen to checks: a state, a sentence and, where something is wrong, the next step.

Every function here takes values and gives checks, so that each verdict can be tried without a server. `wrong` is kept
for what a person should act on: it alone makes the check-up fail. What is merely worth knowing is a `note`.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from toolcrib.clients.state import ClientState
from toolcrib.core import CORE_TOOLSET, DEFAULT_CORE, CoreSet
from toolcrib.definitions import JsonObject, Skipped, Tool
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.gate import GateDecision
from toolcrib.intake.admission import HeldBack, tell
from toolcrib.intake.findings import Finding
from toolcrib.intake.pins import Drift
from toolcrib.limits import CLIENT_NAME_MAX_CHARS, CLIENT_TOOLS_MAX, DOCTOR_ITEMS
from toolcrib.settings import PinMode, ScreeningMode

Section = Literal[
    "configuration",
    "servers",
    "gate",
    "approvals",
    "retrieval",
    "kernel",
    "pins",
    "screening",
    "definitions",
    "clients",
]
State = Literal["ok", "note", "wrong"]

_SERVERS = "mcpServers."
_COMMAND = re.compile(r"(`toolcrib (?:pins|config|describe)\b[^`]*)`")
"""A command that goes by a configuration file."""
_OLD_SDK = re.compile(r"mcp\.server\.fastmcp|\bMcpError\b|'Server' object has no attribute '(?:list|call|get|read)_")
"""How a server in Python ends that names no version of the SDK and got one that it does not know."""
CLIENT_PREFIX = "mcp__toolcrib__"
"""What clients put before the names of our server's tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    section: Section
    state: State
    text: str
    action: str | None = None
    """What to do about it."""

    def for_file(self, path: Path) -> "Check":
        """The check with its commands as they must be typed for a configuration that is not the one here."""
        option = f" --config {shlex.quote(str(path))}`"
        texts = [text and _COMMAND.sub(lambda match: match[1] + option, text) for text in (self.text, self.action)]
        return replace(self, text=texts[0] or "", action=texts[1])

    def as_json(self) -> JsonObject:
        """The check as plain data."""
        shown: JsonObject = {"section": self.section, "state": self.state, "text": self.text}
        return {**shown, "action": self.action} if self.action else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One upstream as it was found."""

    name: str
    tools: int
    seconds: float | None = None
    """How long it took to list its tools, if it did."""
    error: str | None = None
    """Why it cannot be used."""
    is_web: bool = False
    """Whether it is reached at an address, instead of started."""
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileView:
    """What one profile gets."""

    profile: str
    decision: GateDecision
    visible: tuple[str, ...]
    """The names in its array, the bridge's too."""
    tokens: int
    missing: tuple[str, ...] = ()
    """Tools that it requires and does not have."""


def check_config(path: Path | None, changed: Sequence[tuple[str, str, str]]) -> Iterator[Check]:
    """The file and every value that is not a default. `changed` has key, shown value and origin."""
    if path is None:
        yield Check(
            section="configuration",
            state="note",
            text="There is no toolcrib.yaml here: every setting has its default and no server is configured.",
            action="give --config FILE, or put a file there: `toolcrib config show` has every key",
        )
    else:
        yield Check(section="configuration", state="ok", text=f"{path} is valid.")
    entries = [key for key, _, _ in changed if key.startswith(_SERVERS)]
    for key, value, origin in changed:
        if not key.startswith(_SERVERS):
            yield Check(
                section="configuration", state="ok", text=f"{key} = {value} (from {origin.removesuffix(f':{path}')})"
            )
    if entries:
        servers = {key.removeprefix(_SERVERS).partition(".")[0] for key in entries}
        yield Check(
            section="configuration",
            state="ok",
            text=(
                f"{_count(len(servers), 'server')} with {_count(len(entries), 'key')}; `toolcrib config show --origin` "
                "has them all."
            ),
        )


def check_servers(servers: Iterable[ServerState]) -> Iterator[Check]:
    """Each upstream."""
    for server in servers:
        if server.disabled:
            yield Check(section="servers", state="note", text=f"{server.name} is switched off.")
        elif server.error is not None:
            yield Check(
                section="servers",
                state="wrong",
                text=f"{server.name} does not work: {server.error.rstrip('.')}.",
                action=_remedy(server.name, server.error, is_web=server.is_web),
            )
        elif not server.tools:
            yield Check(section="servers", state="note", text=f"{server.name} works, but has no tools.")
        else:
            took = f" after {server.seconds:.1f} s" if server.seconds is not None else ""
            yield Check(
                section="servers", state="ok", text=f"{server.name} works: {_count(server.tools, 'tool')}{took}."
            )


def _remedy(name: str, error: str, *, is_web: bool) -> str:
    """What to do about a server, by the reason that was found."""
    variable = re.fullmatch(r"the variable (\w+) is not set", error)
    if variable:
        return f"set {variable[1]} where the gateway or its client is started, or write it into `mcpServers.{name}`"
    if re.fullmatch(r"the program `.*` was not found", error):
        return f"install it, or give its whole path as `mcpServers.{name}.command`, or set `disabled: true`"
    if _OLD_SDK.search(error):
        return (
            "it was written for version 1 of the MCP SDK: start it with `uvx --with 'mcp<2'`, or install that beside it"
        )
    if "HTTP 401" in error or "HTTP 403" in error:
        return f"correct the token in `mcpServers.{name}.headers`, or set `oauth: true` if it signs in with a browser"
    if is_web:
        return f"look whether it is up, correct `url` or `headers` of `mcpServers.{name}`, or set `disabled: true`"
    if error.startswith("it did not answer within"):
        return "a first start may have to fetch its program: `--wait 120`; else start its command by hand"
    return f"start its command by hand, correct `mcpServers.{name}`, or set `disabled: true`"


def check_gate(views: Iterable[ProfileView]) -> Iterator[Check]:
    """What the gate decides for each profile, and whether clients can take what comes of it."""
    for view in views:
        decision = view.decision
        text = "the window is not known" if decision.window is None else f"a window of {decision.window:,}"
        verdict = (
            f"{decision.deferrable:,} tools are deferred"
            if decision.defer
            else f"{_count(decision.deferrable, 'tool')} {'stays' if decision.deferrable == 1 else 'stay'} attached"
        )
        yield Check(
            section="gate",
            state="ok",
            text=(f"profile {view.profile}: {verdict}, {view.tokens:,} tokens per turn ({_why(decision)}; {text})."),
            action=(
                f"set `profiles.{view.profile}.context` to the window of your model: it is taken for 200,000 or more"
                if decision.window is None and decision.reason in {"over_threshold", "below_threshold"}
                else None
            ),
        )
        if view.missing:
            yield Check(
                section="gate",
                state="wrong",
                text=f"profile {view.profile} requires tools that nobody has: {', '.join(view.missing)}.",
                action=f"correct `profiles.{view.profile}.required_tools`, or the servers that have them",
            )
        yield from _check_client_limits(view)


def _check_client_limits(view: ProfileView) -> Iterator[Check]:
    if len(view.visible) > CLIENT_TOOLS_MAX:
        yield Check(
            section="gate",
            state="wrong",
            text=(
                f"profile {view.profile} shows {len(view.visible):,} tools, and several clients and model APIs take at "
                f"most {CLIENT_TOOLS_MAX}."
            ),
            action="set `tools.tool_search.enabled: on`, or narrow the profile with `toolsets`",
        )
    room = CLIENT_NAME_MAX_CHARS - len(CLIENT_PREFIX)
    long = [name for name in view.visible if len(name) > room]
    if long:
        yield Check(
            section="gate",
            state="wrong",
            text=(
                f"profile {view.profile}: {len(long):,} names are longer than {room} characters, and with the client's "
                f"prefix longer than the {CLIENT_NAME_MAX_CHARS} that model APIs take: {_some(long)}."
            ),
            action="set a shorter `prefix` for their servers, or `tools.tool_search.enabled: on`",
        )


def check_approvals(policies: Iterable[ApprovalPolicy], tools: Sequence[Tool]) -> Iterator[Check]:
    """Rules that no tool meets. A misspelt one would let through what somebody meant to keep back."""
    idle = [
        (policy.where, pattern)
        for policy in policies
        for pattern in policy.idle_rules(tools)
        if not _is_for_a_host(pattern)
    ]
    for where, pattern in idle[:DOCTOR_ITEMS]:
        yield Check(
            section="approvals",
            state="note",
            text=f"{where}.rules: no tool meets `{pattern}`.",
            action=(
                "correct it, unless it is for tools to come: rules meet `server__tool` and `toolset/server__tool`, "
                "those with `ask` and `deny` also the tool's own name"
            ),
        )
    yield from _more("approvals", len(idle))


def _is_for_a_host(pattern: str) -> bool:
    """Whether a rule meets core tools, which a host with the same configuration has and a gateway has not."""
    name = pattern.removeprefix(f"{CORE_TOOLSET}/")
    return name in CoreSet.of() or any(fnmatchcase(known, name) for known in DEFAULT_CORE)


def _why(decision: GateDecision) -> str:
    reasons = {
        "off": "tool search is off",
        "nothing_to_defer": "there is nothing to defer",
        "on": "tool search is on",
        "over_threshold": f"{decision.tokens:,} tokens of definitions reach the threshold of {decision.threshold:,}",
        "below_threshold": (
            f"{decision.tokens:,} tokens of definitions are below the threshold of {decision.threshold:,}"
        ),
    }
    return reasons[decision.reason]


def check_retrieval(*, configured: str, unavailable: str | None, lacking: str | None = None) -> Check:
    """How searches are really done."""
    if unavailable is None and lacking is not None:
        return Check(
            section="retrieval",
            state="wrong",
            text=f"Searches are {configured}, with a part of the model missing: {lacking.rstrip('.')}.",
            action="install toolcrib again",
        )
    if unavailable is None:
        return Check(section="retrieval", state="ok", text=f"Searches are {configured}, as configured.")
    return Check(
        section="retrieval",
        state="wrong",
        text=f"Searches are lexical although {configured} is configured: {unavailable.rstrip('.')}.",
        action="install toolcrib again, or set `tools.tool_search.retrieval: lexical`",
    )


def check_kernel(*, account: str) -> Check:
    """Whether the compiled kernel is in use: worth knowing, and no fault where it is not."""
    return Check(section="kernel", state="ok", text=f"{account[0].upper()}{account[1:]}.")


def check_reranker(*, host: str, failure: str | None, dimensions: int) -> Check:
    """Whether the embeddings endpoint answers."""
    if failure is None:
        return Check(
            section="retrieval",
            state="ok",
            text=f"The reranker at {host} answers with {dimensions:,} dimensions; descriptions and queries go there.",
        )
    return Check(
        section="retrieval",
        state="wrong",
        text=f"The reranker at {host} does not answer ({failure.rstrip('.')}): searches do without it.",
        action="start it, correct `tools.tool_search.reranker`, or set its `enabled: false`",
    )


def check_aliases(aliases: Iterable[str], tools: Sequence[Tool]) -> Iterator[Check]:
    """Aliases that belong to no tool and to no toolset: they help nobody, and nothing else would say so."""
    known = {name for tool in tools for name in (tool.name, tool.leaf, tool.toolset)}
    idle = [key for key in aliases if key not in known and not _is_for_a_host(key)]
    for key in idle[:DOCTOR_ITEMS]:
        yield Check(
            section="retrieval",
            state="note",
            text=f"tools.aliases: no tool and no toolset is called `{key}`.",
            action=(
                "correct it, unless it is for tools to come: a tool is called `server__tool` or by its own name, "
                "the toolset of a server `mcp-server`"
            ),
        )
    yield from _more("retrieval", len(idle))


def check_pins(mode: PinMode, *, lock: Path | None, drifts: Sequence[Drift]) -> Iterator[Check]:
    """What is not as somebody approved it."""
    if mode == "off":
        yield Check(section="pins", state="note", text="Pins are off: a changed definition goes unnoticed.")
        return
    if lock is None or not lock.is_file():
        yield Check(
            section="pins",
            state="wrong" if mode == "enforce" else "note",
            text=(
                "Nothing is approved yet, so everything is held back."
                if mode == "enforce"
                else "Nothing is approved yet: a changed definition would go unnoticed."
            ),
            action="look at the tools with `toolcrib pins list`, then `toolcrib pins approve --all`",
        )
        return
    if not drifts:
        yield Check(section="pins", state="ok", text=f"Everything is as {lock.name} approves it.")
        return
    for drift in drifts[:DOCTOR_ITEMS]:
        what = "the launch" if drift.kind == "launch" else "the definition"
        yield Check(
            section="pins",
            state="note" if drift.state == "removed" else "wrong",
            text=f"{drift.toolset}/{drift.name}: {what} is {tell(drift)}.",
            action=f"look at `toolcrib pins diff`, then `toolcrib pins approve {drift.toolset}` if it is right",
        )
    yield from _more("pins", len(drifts))


def check_screening(
    mode: ScreeningMode, *, held_back: Sequence[HeldBack], findings: Mapping[str, Sequence[Finding]]
) -> Iterator[Check]:
    """What no session gets, and what looks as if it should not."""
    if mode == "off":
        yield Check(section="screening", state="note", text="Screening is off: nobody looks at what tools say.")
    groups: dict[tuple[str, str], list[str]] = {}
    for item in held_back:
        groups.setdefault((item.toolset, item.reason), []).append(item.name)
    for (toolset, reason), names in list(groups.items())[:DOCTOR_ITEMS]:
        yield Check(
            section="screening",
            state="wrong",
            text=f"{toolset}: {_some(names)} {'is' if len(names) == 1 else 'are'} held back: {reason.rstrip('.')}.",
            action="look with `toolcrib pins list`; approve only what you trust",
        )
    yield from _more("screening", len(groups))
    held = {item.name for item in held_back}
    hard = [
        (name, finding)
        for name, found in findings.items()
        for finding in found
        if finding.severity == "hard" and name not in held
    ]
    for name, finding in hard[:DOCTOR_ITEMS]:
        yield Check(
            section="screening",
            state="wrong" if mode == "warn" else "note",
            text=f"{name} is served, and has a hard finding ({finding.rule} in {finding.path}): {finding.explanation}",
            action="read its definition with `toolcrib describe`; set `screening: hold` to hold it back",
        )
    yield from _more("screening", len(hard))
    if mode != "off" and not held_back and not hard:
        soft = sum(1 for found in findings.values() for finding in found if finding.severity == "soft")
        alarms = f"; {soft} soft ones, see `toolcrib pins list`" if soft else ""
        yield Check(section="screening", state="ok", text=f"No hard finding{alarms}.")


def check_skipped(skipped: Sequence[Skipped]) -> Iterator[Check]:
    """Definitions that cannot be used."""
    if not skipped:
        yield Check(section="definitions", state="ok", text="Every definition can be used.")
    for item in skipped[:DOCTOR_ITEMS]:
        yield Check(
            section="definitions",
            state="wrong",
            text=f"{item.toolset}/{item.name} is left out: {item.reason.rstrip('.')}.",
            action="tell whoever maintains the server; its other tools work",
        )
    yield from _more("definitions", len(skipped))


def check_clients(states: Sequence[ClientState]) -> Iterator[Check]:
    """The clients of this machine."""
    if not states:
        yield Check(section="clients", state="note", text="No client with MCP servers was found here.")
    for state in states:
        yield _client(state)


def _client(state: ClientState) -> Check:
    name = state.client or "a client"
    servers = _count(state.servers, "server")
    if state.state == "direct":
        text = f"{name} reaches {servers} without the gateway ({state.path})."
        return Check(section="clients", state="note", text=text, action=f"toolcrib install {name} --dry-run")
    if state.state == "installed":
        return Check(section="clients", state="ok", text=f"{name} has {servers} behind the gateway ({state.path}).")
    if state.state == "changed since":
        text = f"{name} has {servers} behind the gateway; its file was changed since ({state.path})."
        undo = f"to go back: toolcrib uninstall {name} --keep-changes"
        return Check(section="clients", state="note", text=text, action=undo)
    if state.state == "backup lost":
        text = f"{name}: the backup of {state.path} is gone or changed, so uninstall cannot restore it."
        return Check(
            section="clients", state="wrong", text=text, action=f"toolcrib uninstall {name} --keep-changes --dry-run"
        )
    text = f"{name}: {state.detail or f'{state.path} cannot be read'}"
    return Check(section="clients", state="wrong", text=text, action=f"correct {state.path}")


def _more(section: Section, count: int) -> Iterator[Check]:
    if count > DOCTOR_ITEMS:
        yield Check(section=section, state="note", text=f"… and {count - DOCTOR_ITEMS:,} more; --json has all of them.")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
