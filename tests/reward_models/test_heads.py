"""Heads as plain linear maps: cutting, chances, and independence of the batch."""

from __future__ import annotations

import numpy as np
import pytest

from reward_server.reward_models.heads import Heads, Link, sigmoid


def heads(link: Link = "identity", width: int = 300) -> Heads:
    source = np.random.default_rng(0)
    return Heads(
        names=("score", "tone"),
        centre=source.normal(size=width).astype(np.float32),
        scale=np.full(width, 9.0, dtype=np.float32),
        weights=source.normal(size=(2, width)).astype(np.float32),
        bias=np.array([0.5, 0.2], dtype=np.float32),
        sharpness=3.0,
        link=link,
    )


def rows(count: int, width: int = 300) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, width)).astype(np.float32)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 64])
def test_a_row_is_the_same_in_any_batch(count: int) -> None:
    everything = rows(64)
    together = heads().raw(everything[:count])
    alone = [heads().raw(everything[n : n + 1])[0] for n in range(count)]
    assert together.tobytes() == np.array(alone).tobytes()


def test_outputs_are_cut_not_squashed() -> None:
    raw = np.array([[-0.2, 0.0], [0.4, 0.6], [1.0, 1.7]])
    np.testing.assert_array_equal(heads().valued(raw), [[0.0, 0.0], [0.4, 0.6], [1.0, 1.0]])
    np.testing.assert_allclose(heads("preference").valued(raw), 1 / (1 + np.exp(-3.0 * raw)))


def test_a_chance_follows_the_difference_of_the_overall_head() -> None:
    a, b = rows(5), rows(10)[5:]
    model = heads()
    difference = model.raw(a)[:, 0] - model.raw(b)[:, 0]
    np.testing.assert_allclose(model.chances(a, b), 1 / (1 + np.exp(-3.0 * difference)))
    np.testing.assert_allclose(model.chances(a, a), 0.5)


def test_the_logistic_function_does_not_overflow() -> None:
    with np.errstate(over="raise"):
        np.testing.assert_array_equal(sigmoid(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])


def test_no_rows_are_no_values() -> None:
    assert heads().values(rows(0)).shape == (0, 2)
