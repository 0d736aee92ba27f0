"""Products of whole numbers: near to those of floats, and of each row by itself."""

from typing import Any

import numpy as np
import pytest

from toolcrib.retrieval import products
from toolcrib.retrieval.powers import bend
from toolcrib.retrieval.products import CodedVectors, Matrix, SketchedVectors

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def codes(*shape: int) -> Any:
    return RNG.integers(-127, 128, shape).astype(np.int8)


def matrix(rows: int, columns: int) -> tuple[Matrix, Any, Any]:
    """A matrix, the same in floats, and its shift."""
    whole, scales, shift = codes(rows, columns), np.abs(floats(columns)), floats(columns)
    return Matrix.of(whole, scales, shift), whole.astype(np.float64) * scales, shift


@pytest.mark.parametrize(("rows", "columns"), [(384, 1152), (384, 1), (384, 70), (1536, 384)])
@pytest.mark.parametrize("pieces", [1, 19, 21, 64])
def test_a_product_is_near_to_that_of_the_floats(rows: int, columns: int, pieces: int) -> None:
    whole, weights, shift = matrix(rows, columns)
    states = floats(pieces, rows)
    wanted = states.astype(np.float64) @ weights + shift
    found = whole(states)
    assert found.shape == (pieces, columns)
    # Half a step of every state, where all of them err in the same direction.
    steps = np.abs(states.reshape(pieces, -1, 384)).max(axis=2) / 254
    most = steps @ np.abs(weights).reshape(-1, 384, columns).sum(axis=1)
    assert (np.abs(found - wanted) <= most * 1.001).all()
    assert np.abs(found - wanted).mean() < most.mean() / 8


def test_the_product_of_a_row_does_not_depend_on_the_others() -> None:
    whole, _, _ = matrix(1536, 384)
    states = floats(50, 1536)
    together = whole(states)
    assert all(together[row].tobytes() == whole(states[row : row + 1])[0].tobytes() for row in range(50))


def test_a_row_of_zeros_gives_the_shift_and_tiny_or_huge_numbers_stay_finite() -> None:
    whole, _, shift = matrix(384, 96)
    states = np.zeros((4, 384), dtype=np.float32)
    states[1:, 5] = 1e-42, 1e-30, 1e30
    found = whole(states)
    assert found[0].tobytes() == shift.tobytes()
    assert np.isfinite(found).all()


def test_an_outlier_blurs_its_own_stretch_alone() -> None:
    weights = codes(768, 32)
    weights[:384] = 0
    whole, states = Matrix.of(weights, np.ones(32), np.zeros(32)), floats(1, 768)
    quiet = whole(states)
    states[0, 3] = 1e6
    assert whole(states).tobytes() == quiet.tobytes()


@pytest.mark.parametrize(
    ("shape", "scales", "shift"), [((100, 32), 32, 32), ((384, 32), 31, 32), ((384, 32), 32, 33), ((385, 32), 32, 32)]
)
def test_parts_that_do_not_belong_together_are_refused(shape: tuple[int, int], scales: int, shift: int) -> None:
    with pytest.raises(ValueError, match="belong together"):
        Matrix.of(codes(*shape), floats(scales), floats(shift))


@pytest.mark.parametrize(("rows", "dimensions"), [(3, 256), (1_300, 256), (1_300, 64), (40, 50), (0, 256)])
def test_nearness_is_the_cosine(rows: int, dimensions: int) -> None:
    whole, vector = codes(rows, dimensions), floats(dimensions)
    vector /= np.linalg.norm(vector)
    units = whole / np.linalg.norm(whole.astype(np.float64), axis=1, keepdims=True)
    assert np.allclose(CodedVectors.of(whole).near(vector), units @ vector, atol=3e-5)


def test_what_is_all_zero_is_near_to_nothing() -> None:
    whole = codes(5, 64)
    whole[2] = 0
    vectors = CodedVectors.of(whole)
    assert vectors.near(floats(64))[2] == 0.0
    assert not vectors.near(np.zeros(64, dtype=np.float32)).any()


def test_some_vectors_are_as_near_as_they_are_among_all_of_them() -> None:
    vectors, vector = CodedVectors.of(codes(700, 256)), floats(256)
    rows = np.array([699, 0, 513, 512])
    assert vectors.some(rows).near(vector).tobytes() == vectors.near(vector)[rows].tobytes()


def test_the_leading_dimensions_keep_the_length_of_the_whole() -> None:
    whole = codes(9, 256)
    vector = floats(256)
    vector[64:] = 0.0
    vectors = CodedVectors.of(whole)
    assert np.allclose(vectors.leading(64).near(vector[:64]), vectors.near(vector), atol=1e-6)


def test_without_a_way_numpy_multiplies() -> None:
    assert products.WAY in (None, *(() if products.kernel is None else products.kernel.ways()))
    whole, states = codes(384, 40), floats(30, 384)
    plain = Matrix.of(whole, np.ones(40), np.zeros(40), way=None)
    assert plain.compiled is None
    assert plain(states).tobytes() == Matrix.of(whole, np.ones(40), np.zeros(40))(states).tobytes()


def test_no_rows_have_no_product() -> None:
    assert matrix(384, 70)[0](floats(0, 384)).shape == (0, 70)


def test_a_vector_that_is_no_number_is_near_to_nothing_with_the_kernel_and_without() -> None:
    vector = np.full(64, np.nan, dtype=np.float32)
    vectors = CodedVectors.of(codes(5, 64))
    with np.errstate(invalid="ignore"):
        assert np.isnan(vectors.near(vector)).all() and np.isnan(vectors.near(vector, way=None)).all()


def test_of_sketched_vectors_those_that_seem_near_are_measured_whole() -> None:
    whole, vector = codes(2_000, 256), floats(256)
    whole[7], vector = np.rint(vector * 30), vector / np.linalg.norm(vector)
    plain, sketched = CodedVectors.of(whole), SketchedVectors.of(whole, dimensions=96)
    assert len(sketched) == 2_000
    rows = np.array([3, 7, 1_999])
    assert sketched.some(rows).near(vector).tobytes() == plain.some(rows).near(vector).tobytes()
    assert sketched.near(vector, of=2_000).tobytes() == plain.near(vector).tobytes()
    few = sketched.near(vector, of=300)
    assert len(few) == 300
    assert np.sort(few)[-3:].tobytes() == np.sort(plain.near(vector))[-3:].tobytes()


def test_a_bent_product_is_the_product_bent() -> None:
    whole, _, _ = matrix(384, 70)
    states = floats(9, 384)
    assert whole(states, bent=True).tobytes() == bend(whole(states)).tobytes()
