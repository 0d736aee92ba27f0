"""The break-even: where what searches cost has used up what tool search saves."""

import pytest

from toolcrib.evals.break_even import BreakEven, break_even_searches, sampled, search_cost


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(
    ("direct", "visible", "answer", "expected"),
    [(10_000, 1_000, 0, 180), (10_000, 1_000, 1_000, 15), (1_000, 1_000, 500, 0), (500, 1_000, 500, 0)],
)
def test_the_break_even_is_where_both_ways_cost_the_same(direct: int, visible: int, answer: int, expected: int) -> None:
    assert break_even_searches(direct=direct, visible=visible, answer=answer, turns=20) == expected


@pytest.mark.requirement("X25")
def test_one_search_more_than_the_break_even_costs_more_than_attaching_everything() -> None:
    found = BreakEven(tools=9, direct=5_000, visible=700, answers=(100, 300, 200, 900, 400))
    for share in (50, 95):
        cost = search_cost(visible=found.visible, answer=found.answer(share), turns=found.turns)
        attached, searched = found.turns * found.direct, found.turns * found.visible
        most = found.searches(share)
        assert searched + most * cost <= attached < searched + (most + 1) * cost
    assert (found.answer(50), found.answer(95)) == (300, 800)
    assert found.searches(95) < found.searches(50)


@pytest.mark.requirement("X25")
def test_the_summary_says_what_it_was_computed_from() -> None:
    assert BreakEven(tools=9, direct=5_000, visible=1_000, answers=(100,)).summary() == {
        "n_tools": 9,
        "direct_tokens": 5_000,
        "visible_tokens": 1_000,
        "searches_measured": 1,
        "search_tokens": {"p50": 100, "p95": 100},
        "turns": 20,
        "searches": {"p50": 39, "p95": 39},
        "searches_per_turn": {"p50": 1.9, "p95": 1.9},
    }


def test_many_queries_are_sampled_evenly_and_few_are_all_taken() -> None:
    queries = [str(number) for number in range(10)]
    assert sampled(queries, 10) == queries
    assert sampled(queries, 4) == ["0", "3", "6", "9"]
    assert sampled([], 4) == []
