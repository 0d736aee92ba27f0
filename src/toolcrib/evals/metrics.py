"""The measures, each a pure function of one ranking and its right answers.

Recall is the share of all right tools among the first k, so a query with three right tools needs all three; NDCG
discounts by rank. A query without right answers has no recall: it is right exactly when the result is empty.
"""

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np


def recall(found: Sequence[str], relevant: AbstractSet[str], k: int) -> float:
    """Share of the right tools among the first `k`."""
    return len(relevant & set(found[:k])) / len(relevant)


def reciprocal_rank(found: Sequence[str], relevant: AbstractSet[str]) -> float:
    """One over the rank of the first right tool; 0 if there is none."""
    return next((1.0 / rank for rank, key in enumerate(found, 1) if key in relevant), 0.0)


def ndcg(found: Sequence[str], relevant: AbstractSet[str], k: int) -> float:
    """Discounted gain of the first `k`, as a share of the best order's."""
    gain = sum(1.0 / math.log2(rank + 1) for rank, key in enumerate(found[:k], 1) if key in relevant)
    return gain / sum(1.0 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))


MEASURES: tuple[tuple[str, Callable[[Sequence[str], AbstractSet[str]], float]], ...] = (
    ("recall@1", lambda found, relevant: recall(found, relevant, 1)),
    ("recall@5", lambda found, relevant: recall(found, relevant, 5)),
    ("recall@10", lambda found, relevant: recall(found, relevant, 10)),
    ("mrr", reciprocal_rank),
    ("ndcg@10", lambda found, relevant: ndcg(found, relevant, 10)),
)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` percent lie; 0 without values."""
    return float(np.percentile(values, share)) if values else 0.0


def bootstrap_interval(values: Sequence[float], *, seed: int = 0, resamples: int = 2_000) -> tuple[float, float]:
    """The 95 % interval of the mean, from resampling the queries."""
    if not values:
        return (0.0, 0.0)
    data = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = np.array([data[rng.integers(0, len(data), len(data))].mean() for _ in range(resamples)])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
