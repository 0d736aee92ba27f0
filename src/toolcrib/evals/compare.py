"""Compares two runs over the same queries: how far apart they are, and whether chance explains it.

The differences are paired, query by query, and resampled: two configurations that fail on the same hard queries
are told apart far better than by two separate intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from toolcrib.evals.metrics import MEASURES, bootstrap_interval
from toolcrib.evals.run import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure of two runs."""

    measure: str
    first: float
    second: float
    low: float
    """Lower end of the 95 % interval of second minus first."""
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0


def compare(first: Evaluation, second: Evaluation, *, seed: int = 0) -> list[Difference]:
    """The differences of all measures.

    Raises:
        ValueError: the runs did not ask the same queries.
    """
    if [each.query for each in first.outcomes] != [each.query for each in second.outcomes]:
        raise ValueError("the two runs did not ask the same queries")
    found: list[Difference] = []
    for name, _ in MEASURES:
        one, two = first.values(name), second.values(name)
        deltas = [b - a for a, b in zip(one, two, strict=True)]
        low, high = bootstrap_interval(deltas, seed=seed)
        found.append(Difference(measure=name, first=_mean(one), second=_mean(two), low=low, high=high))
    return found


def changed_queries(first: Evaluation, second: Evaluation, *, measure: str = "recall@5") -> list[tuple[str, float]]:
    """Ids of the queries whose measure differs, worst loss first: where to look."""
    pairs = [(a, b) for a, b in zip(first.outcomes, second.outcomes, strict=True) if a.answerable]
    deltas = [(a.query.id, b.measures()[measure] - a.measures()[measure]) for a, b in pairs]
    return sorted((pair for pair in deltas if pair[1]), key=lambda pair: (pair[1], pair[0]))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
