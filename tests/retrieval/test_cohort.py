"""Abilities at large: measured as the tools here are."""

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from toolcrib.retrieval.cohort import Cohort
from toolcrib.retrieval.semantic import StaticModel
from toolcrib.retrieval.vectors import MODEL_DIRECTORY

MODEL = StaticModel.load()


@pytest.mark.requirement("X2")
def test_a_query_is_measured_by_words_or_by_sentences_as_the_tools_are():
    cohort = Cohort.load(MODEL)
    assert cohort is not None
    query = "will it rain at the weekend"
    for by_words, centres in ((True, cohort.words), (False, cohort.read)):
        nearest = np.sort(centres.near(MODEL.point(query)))[-10:].mean()
        assert cohort.nearness(query, by_words=by_words) == pytest.approx(float(nearest), abs=1e-5)


@pytest.mark.requirement("X2")
@pytest.mark.parametrize("lacking", ["codes", "words", "version"])
def test_a_file_that_lacks_something_is_not_used_and_the_log_says_so(
    lacking: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = copytree(MODEL_DIRECTORY, tmp_path / "model")
    with np.load(folder / "cohort.npz") as archive:
        kept = {name: archive[name] for name in archive.files if name != lacking}
    np.savez(folder / "cohort.npz", allow_pickle=False, **kept)
    assert Cohort.load(MODEL, folder) is None
    assert "search abstains less often" in caplog.text
