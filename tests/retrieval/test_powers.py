"""Powers of two, and what bends numbers: near to the true ones, and finite."""

import numpy as np

from toolcrib.retrieval.powers import bend, raise_two


def test_powers_are_within_four_millionths_of_the_true_ones() -> None:
    powers = np.linspace(-87, 87, 200_001).astype(np.float32)
    wanted = np.exp2(powers.astype(np.float64))
    assert np.abs(raise_two(powers) / wanted - 1).max() < 4e-6


def test_powers_that_are_too_great_or_too_small_are_held_back() -> None:
    found = raise_two(np.array([-1e30, -88, 88, 1e30], dtype=np.float32))
    assert np.isfinite(found).all()
    assert found[0] == found[1] > 0.0
    assert found[2] == found[3]


def test_a_bent_number_is_itself_times_a_sigmoid() -> None:
    wide = np.linspace(-40, 40, 100_001).astype(np.float32)
    wanted = wide / (1 + np.exp(-1.702 * wide.astype(np.float64)))
    assert np.allclose(bend(wide.copy()), wanted, rtol=1e-5, atol=1e-20)
    assert bend(np.array([-1e30, 0.0, 1e30], dtype=np.float32)).tolist()[1:] == [0.0, np.float32(1e30)]
