"""When tool search stops paying: how many searches use up what it saves. Plain arithmetic on measured sizes.

Attached, every tool is in every request. With tool search, the three bridge tools are. What that saves, a search takes
back: it is one more request, and its answer stays in the conversation for the rest of it. So, for a conversation of
so many turns:

    saved    = turns x (direct - visible)
    a search = visible + answer x (turns + 1) / 2
    searches = saved / a search, rounded down

An answer that comes at a random turn is in half of the requests; what both ways carry alike is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from toolcrib.evals.metrics import percentile

TURNS = 20
"""Requests of the conversation that is counted."""


def search_cost(*, visible: int, answer: int, turns: int = TURNS) -> int:
    """What one search adds: one more request, and its answer in every request that follows, half of them on average."""
    return visible + -(-answer * (turns + 1) // 2)


def break_even_searches(*, direct: int, visible: int, answer: int, turns: int = TURNS) -> int:
    """Searches in one conversation up to which tool search costs no more than attaching everything."""
    return max(0, turns * (direct - visible) // search_cost(visible=visible, answer=answer, turns=turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """What both ways cost on one catalog, and what searching it costs."""

    tools: int
    direct: int
    """Tokens per request with every tool attached."""
    visible: int
    """Tokens per request with tool search: the three bridge tools, the listing, and what never defers."""
    answers: tuple[int, ...]
    """Tokens of the answers that were measured."""
    turns: int = TURNS

    def answer(self, share: float) -> int:
        """Tokens of an answer than which `share` percent are smaller; the median with 50."""
        return round(percentile(self.answers, share))

    def searches(self, share: float) -> int:
        """Searches in one conversation up to which tool search pays, with answers of that size."""
        return break_even_searches(
            direct=self.direct, visible=self.visible, answer=self.answer(share), turns=self.turns
        )

    def per_turn(self, share: float) -> float:
        """The same for one turn, rounded down."""
        return 10 * self.searches(share) // self.turns / 10

    def summary(self) -> dict[str, object]:
        """What `eval --json` prints of it."""
        return {
            "n_tools": self.tools,
            "direct_tokens": self.direct,
            "visible_tokens": self.visible,
            "searches_measured": len(self.answers),
            "search_tokens": {"p50": self.answer(50), "p95": self.answer(95)},
            "turns": self.turns,
            "searches": {"p50": self.searches(50), "p95": self.searches(95)},
            "searches_per_turn": {"p50": self.per_turn(50), "p95": self.per_turn(95)},
        }


def sampled(queries: Sequence[str], most: int) -> Sequence[str]:
    """At most so many of the queries, evenly spread."""
    step = max(1, -(-len(queries) // most))
    return queries[::step]
