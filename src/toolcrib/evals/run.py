"""Runs queries against a retriever and sums up what came back, in the shape that `toolcrib eval --json` prints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.evals.break_even import BreakEven
from toolcrib.evals.corpus import Query
from toolcrib.evals.metrics import MEASURES, bootstrap_interval, percentile
from toolcrib.retrieval.base import Document, Retriever, Settling

Summary = dict[str, object]
_DEPTH = 10
_SHOWN = 5
"""Hits of an answer as a model usually sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one query gave."""

    query: Query
    found: tuple[str, ...]
    confidence: float
    doubtful: bool
    """Whether perhaps nothing fits: told to the reader, with the hits."""
    took_ms: float

    @property
    def answerable(self) -> bool:
        """Whether something fits at all."""
        return bool(self.query.relevant)

    @property
    def shows_right(self) -> bool:
        """Whether a right tool is among the hits that a model usually sees."""
        return bool(self.query.relevant.intersection(self.found[:_SHOWN]))

    def measures(self) -> dict[str, float]:
        """Every measure of an answerable query."""
        return {name: measure(self.found, self.query.relevant) for name, measure in MEASURES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Everything that one run saw."""

    tools: int
    retrieval: str
    """What was really applied: the mode that the rankings name."""
    build_ms: float
    outcomes: tuple[Outcome, ...]
    break_even: BreakEven | None = None
    """Up to how many searches tool search pays; nothing if the definitions were not at hand."""

    def values(self, measure: str) -> list[float]:
        """One measure of every answerable query, in order."""
        return [outcome.measures()[measure] for outcome in self.outcomes if outcome.answerable]

    def interval(self, measure: str) -> tuple[float, float]:
        """The 95 % interval of a measure's mean."""
        return bootstrap_interval(self.values(measure))

    def summary(self) -> Summary:
        """Exactly what `eval --json` prints."""
        categories = sorted({outcome.query.category for outcome in self.outcomes if outcome.query.category})
        took = [outcome.took_ms for outcome in self.outcomes]
        return {
            "n_tools": self.tools,
            "n_queries": len(self.outcomes),
            "retrieval": self.retrieval,
            **_means(self.outcomes),
            "abstention": _abstention(self.outcomes),
            "latency_ms": {"p50": round(percentile(took, 50), 3), "p95": round(percentile(took, 95), 3)},
            "build_ms": round(self.build_ms, 1),
            **({"break_even": self.break_even.summary()} if self.break_even else {}),
            "by_category": {
                name: _category([outcome for outcome in self.outcomes if outcome.query.category == name])
                for name in categories
            },
        }


def evaluate(
    retriever: Retriever,
    documents: Sequence[Document],
    queries: Sequence[Query],
    *,
    retrieval: str,
    clock: Callable[[], float],
    settle: Callable[[], None] | None = None,
) -> Evaluation:
    """Builds the index and asks every query once; `clock` gives seconds.

    `settle` waits for what an index makes in the background; without it, the retriever's own way of waiting is used.
    """
    started = clock()
    index = retriever.index(documents)
    built = clock()
    # Measured is the whole: a figure of half of it would be of no use.
    if settle is not None:
        settle()
    elif isinstance(retriever, Settling):
        retriever.settle()
    outcomes: list[Outcome] = []
    modes: set[str] = set()
    for query in queries:
        before = clock()
        ranking = index.search(query.text, limit=_DEPTH)
        took = (clock() - before) * 1_000
        modes.add(ranking.mode)
        found = tuple(hit.key for hit in ranking.hits)
        outcomes.append(
            Outcome(query=query, found=found, confidence=ranking.confidence, doubtful=ranking.doubtful, took_ms=took)
        )
    # A hybrid run whose model is missing must not pass for hybrid, nor half of one for the whole.
    others = sorted(modes - {retrieval, "substring"})
    applied = retrieval if retrieval in modes or not others else others[0]
    return Evaluation(
        tools=len(documents), retrieval=applied, build_ms=(built - started) * 1_000, outcomes=tuple(outcomes)
    )


def unmet(summary: Summary, minimums: Mapping[str, float]) -> list[str]:
    """One sentence for each minimum that the summary does not reach; a gate passes when there is none."""
    complaints: list[str] = []
    for name, least in sorted(minimums.items()):
        value = _number(summary, name)
        if value is None:
            complaints.append(f"{name} was not measured, at least {least:g} is asked for")
        elif value < least:
            complaints.append(f"{name} is {value:.4f}, at least {least:g} is asked for")
    return complaints


def _number(summary: Summary, name: str) -> float | None:
    counts = cast("Mapping[str, int]", summary.get("abstention", {}))
    absent = counts.get("n", 0)
    if name == "abstention":
        return counts["correct"] / absent if absent else None
    # Where every query is absent there is nothing that could have been found.
    value = summary.get(name) if summary.get("n_queries") != absent else None
    return float(value) if isinstance(value, int | float) else None


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    rows = [outcome.measures() for outcome in outcomes if outcome.answerable]
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) if rows else 0.0 for name, _ in MEASURES}


def _abstention(outcomes: Sequence[Outcome]) -> dict[str, object]:
    return {
        "n": sum(not outcome.answerable for outcome in outcomes),
        "correct": sum(not outcome.answerable and not outcome.found for outcome in outcomes),
        "answerable_emptied": sum(outcome.answerable and not outcome.found for outcome in outcomes),
        "doubtful": doubt(outcomes),
    }


def doubt(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many doubtful answers there were to absent abilities, without the right tool, and with it."""
    doubted = [outcome for outcome in outcomes if outcome.doubtful]
    absent, found = sum(not outcome.answerable for outcome in doubted), sum(outcome.shows_right for outcome in doubted)
    return {"absent": absent, "missed": len(doubted) - absent - found, "found": found}


def _category(outcomes: Sequence[Outcome]) -> dict[str, object]:
    found: dict[str, object] = {"n": len(outcomes)}
    if any(outcome.answerable for outcome in outcomes):
        found |= _means(outcomes)
    if any(not outcome.answerable for outcome in outcomes):
        found["abstention"] = _abstention(outcomes)
    return found
