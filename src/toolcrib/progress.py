"""The progress guard: stops a model that searches without getting anywhere (X7).

Discovery is progress: a search that leads to a tool that none had led to before is free, however alike two needs are
phrased. Of others, one that repeats or rephrases an earlier one, or that shows nothing new, is counted. The answers get
shorter, then firmer, then searching is refused with the next legal step. Using a tool that was found starts the
count again. Everything depends on the sequence of searches and uses alone: no clock, no randomness.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from toolcrib.definitions import JsonObject, canonical_json, fingerprint_of
from toolcrib.intake.naming import fold
from toolcrib.limits import QUERY_MAX_CHARS, SEARCHES_SHORT, SEARCHES_STALE, SEARCHES_UNUSED
from toolcrib.retrieval.pasted import without_data

Stance = Literal["full", "short", "firm", "refuse"]

_REPHRASED = 0.5
"""Share of common words above which two queries state the same need: "list issues" and "create issue" do not."""

_NEEDS_KEPT = 64

_FILLERS = frozenset({
    "a", "an", "the", "to", "of", "for", "in", "on", "with", "and", "or", "my", "me", "i", "please", "tool", "tools",
    "find", "search", "get", "how", "can", "use",
})  # fmt: skip


class Verdict(NamedTuple):
    """How to answer a search."""

    stance: Stance
    stale: int
    """Searches without progress, this one included."""


class ProgressGuard:
    """Counts one session's searches without progress."""

    def __init__(self) -> None:
        self._stale = 0
        self._unused = 0
        self._needs: list[str] = []
        self._shown: set[str] = set()
        self._leads: set[str] = set()
        self._described: set[str] = set()
        self._failures: dict[str, int] = {}
        self._catalog: object = None

    @property
    def shown(self) -> frozenset[str]:
        """Names that this session has been shown since it last changed its catalog."""
        return frozenset(self._shown)

    def before_search(self, queries: Sequence[str], catalog: object) -> Verdict:
        """How firmly to answer, before anything is searched; `catalog` is equal for equal catalogs."""
        if catalog is not self._catalog and catalog != self._catalog:
            # Another catalog: what was said about the old one does not count.
            self._catalog = catalog
            self._shown.clear()
            self._leads.clear()
            self.note_progress()
        if self._stale >= SEARCHES_STALE or self._unused >= SEARCHES_UNUSED:
            self._stale += 1
            return Verdict(stance="refuse", stale=self._stale)
        repeated = bool(self._needs) and all(map(self._is_known, queries))
        stale = self._stale + (1 if repeated else 0)
        stance: Stance = "full" if stale == 0 else "short" if stale <= SEARCHES_SHORT else "firm"
        return Verdict(stance=stance, stale=stale)

    def after_search(self, queries: Sequence[str], names: Sequence[str]) -> None:
        """Takes note of what a search asked and showed."""
        rephrased = bool(self._needs) and all(map(self._is_known, queries))
        # Tools fill up the end of earlier answers: what a search is about is what it puts first.
        leads = not self._leads.issuperset(names[:1])
        self._leads.update(names[:1])
        if leads or not (rephrased or self._shown.issuperset(names)):
            self._unused += 1
        else:
            self._stale += 1
        self._needs = [*self._needs, *map(_need, queries)][-_NEEDS_KEPT:]
        self._shown.update(names)

    def note_described(self, names: Iterable[str]) -> None:
        """A found tool was described: progress the first time, a repetition after that."""
        fresh = set(names) - self._described
        self._described |= fresh
        if fresh:
            self._reset()

    def note_failure(self, name: str, arguments: JsonObject) -> int:
        """How often this very call has failed since the last progress."""
        key = fingerprint_of(name.encode(errors="replace"), canonical_json(arguments))
        self._failures[key] = self._failures.get(key, 0) + 1
        return self._failures[key]

    def note_progress(self) -> None:
        """A tool ran, or the user spoke: start again."""
        if not (self._unused or self._stale or self._failures or self._described or self._needs):
            return
        self._described.clear()
        self._failures.clear()
        self._reset()

    def _reset(self) -> None:
        self._stale = 0
        self._unused = 0
        self._needs.clear()

    def _is_known(self, query: str) -> bool:
        need = _words(_need(query))
        return any(_likeness(need, _words(known)) > _REPHRASED for known in self._needs)


def _need(query: str) -> str:
    """What is kept of a query: as much as is searched for."""
    return query if len(query) <= QUERY_MAX_CHARS else without_data(query)[:QUERY_MAX_CHARS]


@lru_cache(128)
def _words(query: str) -> frozenset[str]:
    words = frozenset(fold(word).removesuffix("s") for word in query.replace("_", " ").replace("-", " ").split())
    return (words - _FILLERS) or words


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    if not one or not other:
        return 1.0 if one == other else 0.0
    return len(one & other) / len(one | other)
