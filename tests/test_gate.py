"""The gate: when to defer, and why."""

import pytest
from tests.factories import settings

from toolcrib.gate import decide_gate


def gate(*, window: int | None = 100_000, chars: int = 40_000, deferrable: int = 10, **search: object):
    return decide_gate(settings(**search).tools.tool_search, window=window, deferrable=deferrable, chars=chars)


@pytest.mark.requirement("S12")
def test_off_never_defers_and_on_defers_from_the_first_tool() -> None:
    assert not gate(enabled="off", chars=10**9).defer
    assert gate(enabled="on", deferrable=1, chars=4).defer
    assert not gate(enabled="on", deferrable=0, chars=0).defer
    assert gate(enabled="on", deferrable=0, chars=0).reason == "nothing_to_defer"


@pytest.mark.requirement("S12")
@pytest.mark.parametrize(("chars", "defer"), [(39_996, False), (39_997, True), (40_000, True)])
def test_auto_defers_from_exactly_the_threshold_on(chars: int, defer: bool) -> None:
    decision = gate(chars=chars)
    assert decision.threshold == 10_000
    assert decision.defer is defer
    assert decision.reason == ("over_threshold" if defer else "below_threshold")


@pytest.mark.requirement("S12")
def test_the_threshold_is_rounded_down_and_takes_fractions() -> None:
    assert gate(window=98_304).threshold == 9_830
    assert gate(window=1_000, threshold_pct=0.5).threshold == 5
    assert gate(window=1_000, threshold_pct=0).threshold == 0
    assert gate(window=1_000, threshold_pct=0, chars=4).defer


@pytest.mark.requirement("S13")
@pytest.mark.parametrize("window", [None, 0, -5])
def test_an_unknown_window_means_twenty_thousand_tokens(window: int | None) -> None:
    assert gate(window=window, chars=80_000).threshold == 20_000
    assert gate(window=window, chars=80_000).defer
    assert not gate(window=window, chars=79_996).defer
    assert gate(window=window).window is None


@pytest.mark.requirement("S13")
def test_tokens_are_rounded_up() -> None:
    assert [gate(chars=chars).tokens for chars in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.requirement("S17")
def test_a_large_window_does_not_switch_the_gate_off() -> None:
    assert gate(window=200_000).threshold == 20_000
    assert gate(window=1_000_000).threshold == 20_000
    assert gate(window=1_000_000, threshold_max_tokens=50_000).threshold == 50_000
    assert gate(window=150_000).threshold == 15_000


@pytest.mark.requirement("S16")
def test_the_decision_says_why_in_words() -> None:
    text = str(gate(chars=400_000))
    assert text == "deferred: over_threshold (10 deferrable tools, 100,000 tokens, threshold 10,000, window 100,000)"
