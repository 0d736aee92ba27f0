"""Who comes in: the one place between what sources offer and what sessions can know of.

A tool that is held back is not in the toolset that leaves here, so no search, description, listing, count, hint or
error can hold its text, and to a session it is the same as a tool that does not exist. What is let in unchanged stays
the same object, so that everything kept by identity further on stays valid.

    pins        off      nothing is compared
                warn     everything is served, and what changed since it was approved is reported
                enforce  what is not exactly as approved is held back; without a lock file that is everything
    screening   off      nothing is screened
                warn     everything is served; findings are reported
                hold     hard findings hold a tool back
                strict   every finding of the tool alone holds it back

A definition that the lock approves as it stands is never held back by screening: a person has looked at it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakKeyDictionary

from toolcrib.alongside import common_ends, spliced
from toolcrib.definitions import Fingerprint, Json, JsonObject, Tool, Toolset
from toolcrib.errors import ConfigError
from toolcrib.intake.findings import Finding
from toolcrib.intake.freezing import freeze_tool
from toolcrib.intake.pins import Drift, Lock, Offer, compare_launch, compare_toolset, is_pinned, read_lock
from toolcrib.intake.screening import find_hard, screen_together, screen_tool, screen_toolset
from toolcrib.limits import SCREENED_KEPT
from toolcrib.settings import PinMode, ScreeningMode

logger = logging.getLogger("toolcrib")

_PIECE = 4_000
"""Characters of a prompt's or a resource's words that are looked at together."""
_OVERLAP = 1_000
"""Characters that a piece repeats of the one before it: no order is cut in two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """A tool that no session gets, and why."""

    toolset: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided on one toolset. Never holds the toolset itself, or the cache would keep it alive."""

    lock: Lock | None
    launch: str | None
    admitted: Toolset | None
    """`None` if it is let in as it is."""
    held_back: tuple[HeldBack, ...]
    drifts: tuple[Drift, ...]

    @property
    def is_odd(self) -> bool:
        """Whether something was held back or is not as approved."""
        return bool(self.held_back or self.drifts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What came of the offers."""

    toolsets: tuple[Toolset, ...] = ()
    """In the order of the offers; the same object where nothing was held back."""
    held_back: tuple[HeldBack, ...] = ()
    drifts: tuple[Drift, ...] = ()
    """Everything that is not as approved, if there is a lock to compare with."""
    offers: tuple[Offer, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """What was decided on each of the offers, under this lock."""
    lock: Lock | None = None


class Intake:
    """Decides on offers, and keeps what it decided as long as nothing changed."""

    def __init__(self, *, pins: PinMode, screening: ScreeningMode, lock: Path | None = None) -> None:
        """Raises `ConfigError` if there is a lock file that cannot be used."""
        self.pins: PinMode = pins
        self.screening: ScreeningMode = screening
        self.path = lock
        self._stamp = self._stat()
        self._lock = self._read()
        self._verdicts: WeakKeyDictionary[Toolset, Verdict] = WeakKeyDictionary()
        self._texts: dict[str, bool] = {}
        self._hard: dict[Fingerprint, tuple[Finding, ...]] = {}
        self._screened: WeakKeyDictionary[Toolset, Mapping[str, tuple[Finding, ...]]] = WeakKeyDictionary()

    @property
    def is_outdated(self) -> bool:
        """Whether the lock file is not the one that was read last."""
        return self._stat() != self._stamp

    @property
    def lock(self) -> Lock | None:
        """What is approved now; read again if the file changed."""
        stamp = self._stat()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._lock = self._read()
            except ConfigError:
                logger.exception("the lock file cannot be used: the last good one stays in force")
        return self._lock

    def admit(self, offers: Sequence[Offer], previous: Admission | None = None) -> Admission:
        """What sessions may know of these offers; offers that were among the `previous` ones are not judged again."""
        given, lock = tuple(offers), self.lock
        before = previous if previous is not None and previous.lock is lock else Admission()
        head, tail = common_ends(before.offers, given)
        between = given[head : len(given) - tail]
        fresh = [self._verdict(offer, lock) for offer in between]
        verdicts = spliced(before.verdicts, head, tail, fresh)
        admitted = [verdict.admitted or offer.toolset for offer, verdict in zip(between, fresh, strict=True)]
        odd = [each for each in (*fresh, *before.verdicts[head : len(before.offers) - tail]) if each.is_odd]
        return Admission(
            offers=given,
            verdicts=verdicts,
            lock=lock,
            toolsets=spliced(before.toolsets, head, tail, admitted),
            # Where nobody has anything to say, nothing has to be gathered from all.
            held_back=tuple([held for verdict in verdicts for held in verdict.held_back]) if odd else before.held_back,
            drifts=tuple(dict.fromkeys([drift for verdict in verdicts for drift in verdict.drifts]))
            if odd
            else before.drifts,
        )

    def findings(self, toolsets: Sequence[Toolset]) -> Mapping[str, tuple[Finding, ...]]:
        """Every finding, soft ones too, by exposed name. Takes its time: for reports, not for serving."""
        foreign = [toolset for toolset in toolsets if is_pinned(toolset)]
        if self.screening == "off":
            return {}
        found: dict[str, tuple[Finding, ...]] = {}
        for toolset in foreign:
            found.update(self._screen(toolset))
        for name, findings in screen_together(foreign).items():
            found[name] = (*found.get(name, ()), *findings)
        return found

    def lets_through(self, item: JsonObject) -> bool:
        """Whether a prompt or a resource may be listed: its words are held to what those of a tool are (C1)."""
        if self.screening not in {"hold", "strict"}:
            return True
        text = "\n".join(_strings(item))
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) > SCREENED_KEPT:
                self._texts.clear()
            known = self._texts[text] = not any(
                self._finds_hard(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE - _OVERLAP)
            )
        return known

    def _finds_hard(self, text: str) -> bool:
        tool = freeze_tool({"name": "item", "description": text}, toolset="mcp-item", origin="mcp")
        found = screen_tool(tool)
        return bool(found) if self.screening == "strict" else any(item.severity == "hard" for item in found)

    def _verdict(self, offer: Offer, lock: Lock | None) -> Verdict:
        digest = offer.launch.digest if offer.launch else None
        known = self._verdicts.get(offer.toolset)
        if known is None or known.lock is not lock or known.launch != digest:
            known = self._verdicts[offer.toolset] = self._decide(offer, lock, digest)
        return known

    def _decide(self, offer: Offer, lock: Lock | None, digest: str | None) -> Verdict:
        toolset = offer.toolset
        if not is_pinned(toolset):
            return Verdict(lock, digest, None, (), ())
        drifts, reasons = self._compare(offer, lock)
        approved = {drift.name for drift in drifts if drift.kind == "tool" and drift.state == "unchanged"}
        for name, findings in self._holding(toolset).items():
            if name not in approved and name not in reasons:
                reasons[name] = "; ".join(
                    f"{item.explanation} (at {item.path or 'the whole'})" for item in findings[:3]
                )
        if not reasons and not drifts:
            return Verdict(lock, digest, None, (), ())
        held = tuple(
            HeldBack(toolset=toolset.name, name=tool.name, reason=reasons[tool.name])
            for tool in toolset.tools
            if tool.name in reasons
        )
        admitted = None
        if held:
            kept: tuple[Tool, ...] = tuple(tool for tool in toolset.tools if tool.name not in reasons)
            admitted = replace(toolset, tools=kept)
        return Verdict(lock, digest, admitted, held, tuple(drift for drift in drifts if drift.state != "unchanged"))

    def _compare(self, offer: Offer, lock: Lock | None) -> tuple[tuple[Drift, ...], dict[str, str]]:
        """How the toolset stands to the lock, and which tools that holds back."""
        toolset, enforced = offer.toolset, self.pins == "enforce"
        if self.pins == "off" or (lock is None and not enforced):
            return (), {}
        lock = lock or Lock()
        drifts = compare_toolset(toolset, lock.pins_of(toolset.name))
        launch = compare_launch(offer.source, offer.launch, lock)
        reasons: dict[str, str] = {}
        if enforced and launch is not None and launch.state != "unchanged":
            why = f"the launch configuration of `{offer.source}` is {tell(launch)}"
            reasons = {tool.name: why for tool in toolset.tools}
        elif enforced:
            reasons = {
                drift.name: f"the definition is {tell(drift)}" for drift in drifts if drift.state in {"changed", "new"}
            }
        return ((*drifts, launch) if launch else drifts), reasons

    def _holding(self, toolset: Toolset) -> Mapping[str, tuple[Finding, ...]]:
        if self.screening == "hold":
            if len(self._hard) > SCREENED_KEPT:
                self._hard.clear()
            return find_hard(toolset, self._hard)
        return self._screen(toolset) if self.screening == "strict" else {}

    def _screen(self, toolset: Toolset) -> Mapping[str, tuple[Finding, ...]]:
        found = self._screened.get(toolset)
        if found is None:
            found = self._screened[toolset] = screen_toolset(toolset)
        return found

    def _read(self) -> Lock | None:
        return None if self.path is None or self.pins == "off" else read_lock(self.path)

    def _stat(self) -> tuple[int, int, int] | None:
        if self.path is None or self.pins == "off":
            return None
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _strings(value: Json) -> Iterator[str]:
    """Every string of a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def tell(drift: Drift) -> str:
    """How it stands, as the end of a sentence."""
    if drift.state == "removed":
        return "gone"
    if drift.state == "new":
        return "not approved yet"
    parts = f" ({', '.join(drift.parts)})" if drift.parts else ""
    return f"not as approved: it changed{parts}"
