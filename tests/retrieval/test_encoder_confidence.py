"""Nearness elsewhere by both models, and silence where nothing fits."""

from pathlib import Path

import numpy as np
import pytest
from tests.retrieval.encoders import FakeEncoder

from toolcrib.retrieval.cohort import Cohort
from toolcrib.retrieval.encoder import DIMENSIONS, MARK
from toolcrib.retrieval.encoder_confidence import EncoderCohort
from toolcrib.retrieval.semantic import StaticModel

STATIC = Cohort.load(StaticModel.load())
ENCODER = FakeEncoder()


def save(directory: Path, *, mark: str = MARK, dimensions: int = DIMENSIONS) -> None:
    codes = np.zeros((4, dimensions), dtype=np.int8)
    codes[:, 0] = 127
    np.savez(directory / "encoder_cohort.npz", codes=codes, version=np.frombuffer(mark.encode(), dtype=np.uint8))


@pytest.mark.parametrize("by_words", [True, False])
def test_elsewhere_is_measured_by_both_models(by_words: bool, tmp_path: Path):
    assert STATIC is not None
    save(tmp_path)
    cohort = EncoderCohort.load(STATIC, ENCODER.embed, 0.6, tmp_path)
    assert cohort is not None
    query = "take an umbrella"
    expected = 0.4 * STATIC.nearness(query, by_words=by_words) + 0.6 * float(ENCODER.embed(query)[0])
    assert cohort.nearness(query, by_words=by_words) == pytest.approx(expected, abs=1e-5)


def test_a_query_that_the_encoder_does_not_answer_is_measured_by_the_table_alone(tmp_path: Path):
    assert STATIC is not None
    save(tmp_path)
    cohort = EncoderCohort.load(STATIC, lambda query: None, 0.6, tmp_path)
    assert cohort is not None
    query = "take an umbrella"
    assert cohort.nearness(query, by_words=False) == STATIC.nearness(query, by_words=False)


@pytest.mark.parametrize("damage", ["missing", "garbage", "another encoder", "another shape"])
def test_centres_that_do_not_belong_are_not_used(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture):
    assert STATIC is not None
    if damage == "garbage":
        (tmp_path / "encoder_cohort.npz").write_bytes(b"PK no archive")
    elif damage == "another encoder":
        save(tmp_path, mark="another")
    elif damage == "another shape":
        save(tmp_path, dimensions=7)
    assert EncoderCohort.load(STATIC, ENCODER.embed, 0.6, tmp_path) is None
    assert "cannot be used, search abstains less often" in caplog.text


def test_the_centres_that_ship_belong_to_the_encoder():
    assert STATIC is not None
    cohort = EncoderCohort.load(STATIC, ENCODER.embed, 0.6)
    assert cohort is not None
    assert cohort.centres.codes.shape == (3_000, DIMENSIONS)
