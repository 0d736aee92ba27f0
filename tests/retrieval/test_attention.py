"""Layers of attention: what the same layer gives in plain floats, whatever the number of pieces and their size."""

from typing import Any

import numpy as np
import pytest

from toolcrib.retrieval.attention import MOST_PIECES, WIDTH, Layer, Norm, Text

RNG = np.random.default_rng(3)


def drawn(rows: int, columns: int, name: str) -> dict[str, Any]:
    return {
        f"{name}.codes": RNG.integers(-127, 128, (rows, columns)).astype(np.int8),
        f"{name}.scales": np.full(columns, 0.0006, dtype=np.float32),
        f"{name}.shift": RNG.standard_normal(columns).astype(np.float32) * 0.1,
    }


def arrays() -> dict[str, Any]:
    norms = {f"{name}.{part}": RNG.random(WIDTH) + 0.5 for name in ("after_looking", "after_thinking") for part in ("weight", "shift")}  # fmt: skip
    looks, seen = drawn(WIDTH, 3 * WIDTH, "looks"), drawn(WIDTH, WIDTH, "seen")
    return norms | looks | seen | drawn(WIDTH, 4 * WIDTH, "widens") | drawn(4 * WIDTH, WIDTH, "narrows")


HELD = arrays()
LAYER = Layer.read(HELD, "")


def plainly(states: Any) -> Any:
    """The layer in double precision, nothing of it in whole numbers."""

    def times(given: Any, name: str) -> Any:
        return given @ (HELD[f"{name}.codes"] * HELD[f"{name}.scales"].astype(np.float64)) + HELD[f"{name}.shift"]

    def normal(given: Any, name: str) -> Any:
        given = (given - given.mean(axis=1, keepdims=True)) / given.std(axis=1, keepdims=True)
        return given * HELD[f"{name}.weight"] + HELD[f"{name}.shift"]

    asks, offers, holds = times(states, "looks").reshape(len(states), 3, 12, 32).transpose(1, 2, 0, 3)
    likeness = np.exp(asks @ offers.transpose(0, 2, 1) / 32**0.5)
    looked = (likeness / likeness.sum(axis=2, keepdims=True)) @ holds
    states = normal(states + times(looked.transpose(1, 0, 2).reshape(states.shape), "seen"), "after_looking")
    wide = times(states, "widens")
    return normal(states + times(wide / (1 + np.exp(-1.702 * wide)), "narrows"), "after_thinking")


@pytest.mark.parametrize("pieces", [1, 2, 40, 64, 65, 130])
def test_a_layer_gives_what_it_gives_in_plain_floats(pieces: int) -> None:
    states = RNG.standard_normal((pieces, WIDTH)).astype(np.float32)
    wanted = plainly(states.astype(np.float64))
    away = LAYER(states) - wanted
    assert np.sqrt((away**2).mean()) < 0.02 * wanted.std()
    assert np.abs(away).max() < 0.1 * wanted.std()


@pytest.mark.parametrize("size", [0.0, 1e-20, 1e4, 1e8])
def test_states_of_any_size_stay_finite(size: float) -> None:
    assert np.isfinite(LAYER(RNG.standard_normal((7, WIDTH)).astype(np.float32) * np.float32(size))).all()


def test_the_given_states_are_left_as_they_were() -> None:
    states = RNG.standard_normal((9, WIDTH)).astype(np.float32)
    before = states.tobytes()
    LAYER(states)
    assert states.tobytes() == before


def test_every_piece_has_mean_and_deviation_of_the_norm() -> None:
    norm = Norm.read({"n.weight": np.full(WIDTH, 2.0), "n.shift": np.full(WIDTH, 3.0)}, "n")
    found = norm(RNG.standard_normal((5, WIDTH)).astype(np.float32) * 40)
    assert np.allclose(found.mean(axis=1), 3.0, atol=1e-4)
    assert np.allclose(found.std(axis=1), 2.0, atol=1e-4)


def test_texts_that_do_not_look_at_each_other_are_read_as_if_alone() -> None:
    one, other = (RNG.standard_normal((pieces, WIDTH)).astype(np.float32) for pieces in (40, 50))
    both, apart = np.concatenate((one, other)), np.concatenate((LAYER(one), LAYER(other)))
    assert LAYER(both, [Text(slice(0, 40)), Text(slice(40, 90))]).tobytes() == apart.tobytes()
    near = np.zeros(12, dtype=np.float32)
    assert LAYER(both, [Text(here=40, across=near)]).tobytes() == LAYER(both).tobytes()
    # What is held is rounded by the largest of both texts, so that they are not quite as if alone.
    assert np.abs(LAYER(both, [Text(here=40, across=near - 1e9)]) - apart).mean() < 0.01
    assert np.abs(LAYER(both) - apart).mean() > 0.05


def test_a_text_of_more_pieces_than_sums_of_whole_numbers_bear_is_refused() -> None:
    assert len(LAYER(np.ones((MOST_PIECES, WIDTH), dtype=np.float32))) == MOST_PIECES
    with pytest.raises(ValueError, match="257 pieces is too long"):
        LAYER(np.ones((MOST_PIECES + 1, WIDTH), dtype=np.float32))
