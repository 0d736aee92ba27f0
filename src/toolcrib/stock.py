"""The sources of a crib, and what is on its shelves now: what they offer, less what is held back.

A source that tells of its changes is asked when it told; all others are asked whenever somebody looks. What did not
change stays the same object, so that everything derived from it stays valid.
"""

import logging
from collections.abc import Sequence
from itertools import chain
from operator import is_not
from threading import RLock

from toolcrib.activity import Activity, Event
from toolcrib.alongside import common_ends, spliced
from toolcrib.definitions import Toolset
from toolcrib.errors import ConfigError
from toolcrib.intake.admission import Admission, HeldBack, Intake, tell
from toolcrib.intake.naming import nearest
from toolcrib.intake.pins import Drift, Launch, Offer, launch_of
from toolcrib.inventory import Inventory, build_inventory
from toolcrib.limits import INTAKE_REPORTS
from toolcrib.sources.base import Source

logger = logging.getLogger("toolcrib")


class Stock:
    """Sources by name, and the inventory that they make."""

    def __init__(self, intake: Intake, activity: Activity) -> None:
        self.sources: dict[str, Source] = {}
        """In the order in which they were added."""
        self.generation = 0
        """Counts every change of the inventory."""
        self._intake = intake
        self._activity = activity
        self._polled: list[Source] = []
        self._owners: dict[str, Source] | None = {}
        """By toolset, as soon as somebody asks."""
        self._asked: tuple[Source, ...] = ()
        """The sources of the snapshots."""
        self._snapshots: tuple[Sequence[Toolset], ...] = ()
        self._offered: dict[str, tuple[Launch | None, tuple[Toolset, ...], tuple[Offer, ...]]] = {}
        """By source: how it was started, its toolsets, and an offer for each of them."""
        self._inventory = Inventory()
        self._admission = Admission()
        self._reported: set[HeldBack | Drift] = set()
        self._news = self._seen = object()
        """Another object whenever something may have changed; which one was there at the last look."""
        self._looking = RLock()
        """Of two threads that look, the second sees what the first has made."""

    def add(self, source: Source) -> None:
        """Adds a source. Raises `ConfigError` if its name, or that of one of its toolsets, is taken."""
        if source.name in self.sources:
            raise ConfigError(f"There is a source `{source.name}` already: remove it first, or use another name.")
        taken = {toolset.name for toolset in self.look().toolsets}
        # The first source can take nobody's name: it is not asked before it has to be.
        for toolset in source.snapshot() if taken else ():
            if toolset.name in taken:
                raise ConfigError(f"There is a toolset `{toolset.name}` already: give the new one another name.")
        self.sources[source.name] = source
        if not source.watch(self.refresh):
            self._polled.append(source)
        self._news = object()

    def remove(self, name: str) -> Source:
        """Removes a source. Raises `ConfigError` if there is none of this name."""
        source = self.sources.pop(name, None)
        if source is None:
            hint = nearest(name, self.sources)
            raise ConfigError(f"There is no source `{name}`{f': did you mean `{hint}`?' if hint else '.'}")
        if source in self._polled:
            self._polled.remove(source)
        self._offered.pop(name, None)
        self._news = object()
        return source

    def refresh(self) -> None:
        """Has the sources and the lock file looked at again."""
        self._news = object()

    def look(self, *, ask: bool = True) -> Inventory:
        """All toolsets now; sources that tell nobody of their changes are asked only if `ask` says so."""
        if self._news is not self._seen or (ask and self._polled):
            with self._looking:
                self._look()
        return self._inventory

    def _look(self) -> None:
        # Before anybody is asked: what changes meanwhile is for the next look.
        news, sources = self._news, tuple(self.sources.values())
        current = tuple([source.snapshot() for source in sources])
        if news is not self._seen or len(current) != len(self._snapshots) or any(map(is_not, current, self._snapshots)):
            self._seen = news
            self._rebuild(sources, current)

    @property
    def admission(self) -> Admission:
        """What the sources offered at the last look, and what came of it."""
        return self._admission

    def owner_of(self, toolset: str) -> Source:
        """The source of a toolset; of two that offer one of this name, the later."""
        owners = self._owners
        if owners is None:
            with self._looking:
                owners = self._owners = {
                    offered.name: source
                    for source, snapshot in zip(self._asked, self._snapshots, strict=True)
                    for offered in snapshot
                }
        return owners[toolset]

    def _rebuild(self, sources: tuple[Source, ...], snapshots: tuple[Sequence[Toolset], ...]) -> None:
        self._snapshots, self._asked, self._owners = snapshots, sources, None
        given = [self._offers_of(source, tuple(snapshot)) for source, snapshot in zip(sources, snapshots, strict=True)]
        offers = given[0] if len(given) == 1 else tuple(chain.from_iterable(given))
        self._admission = self._intake.admit(offers, self._admission)
        self._inventory = build_inventory(self._admission.toolsets, self._inventory)
        self.generation += 1
        self._report()

    def _offers_of(self, source: Source, toolsets: tuple[Toolset, ...]) -> tuple[Offer, ...]:
        """What a source offers. An offer as before is the same object: whoever decided on it need not do so again."""
        launch = launch_of(source)
        old, before, offers = self._offered.get(source.name, (None, (), ()))
        head, tail = common_ends(before, toolsets) if old == launch else (0, 0)
        fresh = [
            Offer(toolset=toolset, source=source.name, launch=launch)
            for toolset in toolsets[head : len(toolsets) - tail]
        ]
        offers = spliced(offers, head, tail, fresh)
        self._offered[source.name] = (launch, toolsets, offers)
        return offers

    def _report(self) -> None:
        """Tells the log and the feed, once each, what was held back and what is not as approved."""
        held = {(item.toolset, item.name) for item in self._admission.held_back}
        news: list[tuple[HeldBack | Drift, str, str]] = [
            (item, "held back", item.reason) for item in self._admission.held_back
        ]
        news += [
            (item, "not as approved", f"the {'launch' if item.kind == 'launch' else 'definition'} is {tell(item)}")
            for item in self._admission.drifts
            if (item.toolset, item.name) not in held
        ]
        fresh = [entry for entry in news if entry[0] not in self._reported]
        self._reported = {item for item, _, _ in news}
        if len(fresh) > INTAKE_REPORTS:
            logger.warning("%d more tools are held back or not as approved", len(fresh) - INTAKE_REPORTS)
        for item, what, reason in fresh[:INTAKE_REPORTS]:
            logger.warning("%s: %s/%s: %s", what, item.toolset, item.name, reason)
            self._activity.record(
                Event(
                    stage="intake",
                    outcome="refused" if isinstance(item, HeldBack) else "info",
                    tool=item.name,
                    toolset=item.toolset,
                    reason=f"{what}: {reason}",
                    at=self._activity.now(),
                )
            )
