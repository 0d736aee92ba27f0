"""Abilities at large: measured as the tools here are."""

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from toolcrib.retrieval.cohort import Cohort
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, unit

MODEL = StaticModel.load()


@pytest.mark.requirement("X2")
def test_a_query_is_measured_by_words_or_by_sentences_as_the_tools_are():
    cohort = Cohort.load(MODEL)
    assert cohort is not None
    query = "will it rain at the weekend"
    whole = cohort.read.some(np.arange(len(cohort.read)))
    centres, abilities = (np.sort(each.near(MODEL.point(query))) for each in (cohort.words, whole))
    assert cohort.nearness(query, by_words=True) == pytest.approx(float(centres[-10:].mean()), abs=1e-5)
    assert cohort.nearness(query, by_words=False) == pytest.approx(float(abilities[-3:].mean()), abs=1e-5)


@pytest.mark.requirement("X2")
def test_abilities_at_large_reach_far_beyond_what_servers_offer_today():
    cohort = Cohort.load(MODEL)
    assert cohort is not None
    for need in ("mend a torn stocking", "when does the tide turn", "how much feed for forty hens", "tune my piano"):
        assert cohort.nearness(need, by_words=False) > 0.45


@pytest.mark.requirement("X2")
def test_no_two_abilities_at_large_are_nearly_alike():
    cohort = Cohort.load(MODEL)
    assert cohort is not None
    vectors = unit(cohort.read.some(np.arange(len(cohort.read))).codes)
    some = np.random.default_rng(3).choice(len(vectors), 300, replace=False)
    nearness = vectors[some] @ vectors.T
    nearness[np.arange(len(some)), some] = 0.0
    assert nearness.max() < 0.82


@pytest.mark.requirement("X2")
@pytest.mark.parametrize("lacking", ["read", "words", "version"])
def test_a_file_that_lacks_something_is_not_used_and_the_log_says_so(
    lacking: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = copytree(MODEL_DIRECTORY, tmp_path / "model")
    with np.load(folder / "cohort.npz") as archive:
        kept = {name: archive[name] for name in archive.files if name != lacking}
    np.savez(folder / "cohort.npz", allow_pickle=False, **kept)
    assert Cohort.load(MODEL, folder) is None
    assert "search abstains less often" in caplog.text


@pytest.mark.requirement("X2")
def test_a_file_that_is_packed_in_no_known_way_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    packed = bytearray((MODEL_DIRECTORY / "cohort.npz").read_bytes())
    packed[packed.rindex(b"PK\x01\x02") + 10] = 99
    (tmp_path / "cohort.npz").write_bytes(packed)
    assert Cohort.load(MODEL, tmp_path) is None
    assert "search abstains less often" in caplog.text
