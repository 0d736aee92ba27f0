"""Which probes of abstention count as absent."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from bench.calibration import FITS, Judged, Set, Table, describe, fitted_both, probes, read_verdicts, verdict_key

from bench import calibration
from toolcrib.evals.corpus import Query
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vectors import unit

WEATHER = (("get_forecast", "Weather forecast of a city for the next days"), ("get_tides", "Tides of a harbour today"))
CHAT = (
    ("send_message", "Send a message to a channel of the team chat"),
    ("mute_channel", "Mute a channel of the chat"),
)


@pytest.fixture(scope="module")
def model() -> StaticModel:
    return StaticModel.load()


def a_set(model: StaticModel, tools: Sequence[tuple[str, str]], query: str) -> Set:
    documents = [
        PlainDocument(key=leaf, digest=leaf, leaf=leaf, toolset="", description=text, parameters=(), nested="")
        for leaf, text in tools
    ]
    queries = [Query(id="1", text=query, relevant=frozenset({tools[0][0]}))]
    return Set(documents=documents, queries=queries, vectors=unit(model.embed_documents(documents)))


def two_sets(model: StaticModel) -> dict[str, Set]:
    return {
        "weather": a_set(model, WEATHER, "will it rain in Oslo this week"),
        "chat": a_set(model, CHAT, "mute the chat"),
    }


def test_every_verdict_is_one_of_three_and_names_its_probe_by_a_check_sum():
    verdicts = read_verdicts()
    assert set(verdicts.values()) == {0, 1, 2}
    assert all(len(key) == len(verdict_key("near", "catalog", "query")) for key in verdicts)


@pytest.mark.requirement("X2")
@pytest.mark.parametrize(
    ("verdict", "kinds", "read"),
    [(0, {"foreign"}, True), (1, set[str](), True), (2, {"met"}, True), (None, {"foreign"}, False)],
)
def test_a_probe_counts_as_absent_unless_it_was_read_and_is_met(
    model: StaticModel, monkeypatch: pytest.MonkeyPatch, verdict: int | None, kinds: set[str], read: bool
):
    asked = "post the minutes to the team channel"
    sets = {"weather": a_set(model, WEATHER, "will it rain in Oslo this week"), "chat": a_set(model, CHAT, asked)}
    key = verdict_key("foreign", "weather", asked)
    monkeypatch.setattr(calibration, "read_verdicts", lambda: {} if verdict is None else {key: verdict})
    monkeypatch.setattr(calibration, "FOREIGN", 1)
    found = [probe for probe in probes(sets, model) if probe.catalog == "weather" and probe.kind in ("foreign", "met")]
    assert {probe.kind for probe in found} == kinds
    assert all(probe.read is read for probe in found)


@pytest.mark.requirement("X2")
def test_what_is_met_weighs_nothing_and_sets_without_it_are_described(model: StaticModel):
    found = probes(two_sets(model), model)
    table = Table([*found, replace(found[0], kind="met")])
    everything = np.ones(len(table.kind), dtype=bool)
    assert table.weights(everything)[-1] == 0.0
    assert table.weights(everything)[:-1].all()
    assert "met nan% (nan%)" in describe(Table(found), everything[:-1])


@pytest.mark.requirement("X2")
def test_what_was_not_read_together_is_decided_by_the_first_line(model: StaticModel):
    found = probes(two_sets(model), model)
    unread = [replace(probe, signals=replace(probe.signals, together=None)) for probe in found]
    table = Table([*found, *unread])
    assert table.read.tolist() == [True] * len(found) + [False] * len(unread)
    judged = Judged.by(table, np.ones(len(table.kind), dtype=bool))
    assert not judged.unsettled[len(found) :].any()
    hopeless = replace_values(judged, -50.0, unsettled=False)
    assert hopeless.emptied(table, (-1e9, -1.0)).tolist() == table.open.tolist()
    doubtful = replace_values(judged, 0.0, unsettled=True)
    assert not doubtful.emptied(table, (-1.0, 9.0)).any()
    assert doubtful.emptied(table, (9.0, -9.0)).tolist() == table.open.tolist()


@pytest.mark.requirement("X2")
def test_the_second_line_is_fitted_on_what_the_first_leaves_open_alone(
    model: StaticModel, monkeypatch: pytest.MonkeyPatch
):
    found = [
        replace(probe, signals=replace(probe.signals, words=0.0, nearest=nearest, together=nearest - 1.0))
        for probe in probes(two_sets(model), model)
        for nearest in (0.2, 0.5, 0.8)
    ]
    everything = np.ones(len(found), dtype=bool)
    apart, before = fitted_both(Table(found), everything)
    values = Table(found).rows(FITS) @ apart
    clearest, next_to = np.argsort(values)[::-1][:2]
    monkeypatch.setattr(calibration, "BAND", (-np.inf, float(values[clearest])))
    _, without = fitted_both(Table(found), everything)
    assert without.tolist() != before.tolist()
    for row, same in ((clearest, True), (next_to, False)):
        signals = replace(found[row].signals, together=4.0)
        changed = [replace(probe, signals=signals) if at == row else probe for at, probe in enumerate(found)]
        assert (fitted_both(Table(changed), everything)[1].tolist() == without.tolist()) is same


def replace_values(judged: Judged, value: float, *, unsettled: bool) -> Judged:
    values = np.full(len(judged.apart), value)
    return Judged(apart=values, together=values, unsettled=np.full(len(values), unsettled))
