"""The emphasis of kinds of features: learned from training rows, held near what it was, of use to the heads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import check_grad

from reward_server.fitting.reward_model import emphasis as module
from reward_server.fitting.reward_model.emphasis import EmphasisRows, factors, learned_emphasis
from reward_server.reward_models.features import EMPHASIS, KINDS
from reward_server.reward_models.heads import Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.uncertainty import fit_preferences

TELLING, NOISE = 3, 300
KIND_OF: NDArray[np.intp] = np.repeat([0, 1], [TELLING, NOISE])
EVEN: Matrix = np.ones(TELLING + NOISE, dtype=np.float32)


def drawn(n: int, seed: int = 0) -> tuple[Matrix, Matrix]:
    """Rows of which the first few columns tell the value."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, TELLING + NOISE)).astype(np.float32)
    values = rows[:, :TELLING].sum(1) + generator.normal(size=n) * 0.5
    return rows, values.astype(np.float32)


def labelled(rows: Matrix, labels: Matrix) -> ExampleMatrices:
    nobody, nothing = np.zeros((0, rows.shape[1]), np.float32), np.zeros(0, np.float32)
    return ExampleMatrices(rows, labels[:, None], nobody, nobody, nothing, nothing)


def compared(n: int, seed: int = 0) -> ExampleMatrices:
    """Pairs of which the one of the higher value was preferred."""
    (first, value), (second, other) = drawn(n, seed), drawn(n, seed + 100)
    won = (value > other)[:, None]
    chosen, rejected = np.where(won, first, second), np.where(won, second, first)
    ones = np.ones(n, np.float32)
    return ExampleMatrices(first[:0], value[:0, None], chosen, rejected, ones, ones)


@pytest.mark.parametrize("train", [labelled(*drawn(120)), compared(120)], ids=["labels", "pairs"])
def test_the_kind_that_tells_may_be_used_more_freely(train: ExampleMatrices) -> None:
    found = learned_emphasis(train, EVEN, KIND_OF)
    assert found[0] > 2.0 * found[-1] > 0.0
    assert len(set(found[:TELLING])) == len(set(found[TELLING:])) == 1


def test_a_head_with_learned_emphasis_orders_unseen_pairs_better() -> None:
    train, unseen = compared(120), compared(600, seed=7)

    def right(emphasis: Matrix) -> float:
        head = fit_preferences(train.chosen - train.rejected, emphasis=emphasis)
        return float((head.predict(unseen.chosen - unseen.rejected).mean > 0).mean())

    assert right(learned_emphasis(train, EVEN, KIND_OF)) > right(EVEN) + 0.05


def test_rows_keep_their_average_length_so_that_the_same_penalties_fit() -> None:
    rows, values = drawn(120)
    found = learned_emphasis(labelled(rows, values), 2.0 * EVEN, KIND_OF)
    assert float((found**2).sum()) == pytest.approx(4.0 * len(EVEN), rel=1e-5)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        drawn(module.MIN_ROWS - 1),
        (drawn(60)[0], np.full(60, 0.5, np.float32)),
        (drawn(60)[0], np.full(60, np.nan, np.float32)),
        (np.zeros((60, TELLING + NOISE), np.float32), drawn(60)[1]),
    ],
    ids=["few rows", "equal labels", "no overall label", "equal features"],
)
def test_where_nothing_can_be_told_the_emphasis_stays(rows: Matrix, labels: Matrix) -> None:
    np.testing.assert_array_equal(learned_emphasis(labelled(rows, labels), EVEN, KIND_OF), EVEN)


def test_one_kind_alone_stays_as_it_is() -> None:
    np.testing.assert_array_equal(learned_emphasis(labelled(*drawn(60)), EVEN, np.zeros_like(KIND_OF)), EVEN)


def test_a_kind_that_never_varies_gets_the_prior() -> None:
    rows, values = drawn(120)
    rows[:, TELLING : TELLING + 5] = 0.0
    kinds = KIND_OF.copy()
    kinds[TELLING : TELLING + 5] = 2
    evidence = EmphasisRows(rows.astype(np.float64), values.astype(np.float64))
    assert factors([evidence], kinds)[2] == pytest.approx(1.0)


def test_only_so_many_rows_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, values = (part.astype(np.float64) for part in drawn(200))
    monkeypatch.setattr(module, "MOST_ROWS", 50)
    np.testing.assert_array_equal(
        factors([EmphasisRows(rows, values)], KIND_OF), factors([EmphasisRows(rows[::4], values[::4])], KIND_OF)
    )


def test_the_slope_of_the_evidence_is_right() -> None:
    generator = np.random.default_rng(3)
    parts = []
    for n in (20, 30):
        rows = generator.normal(size=(3, n, 4))
        parts.append((rows @ rows.transpose(0, 2, 1) / 12.0, generator.normal(size=n)))
    point = generator.normal(size=7) * 0.5
    assert check_grad(lambda x: module._loss(x, parts)[0], lambda x: module._loss(x, parts)[1], point) < 1e-4


def test_every_block_of_features_is_of_one_kind() -> None:
    assert sorted(name for names in KINDS for name in names) == sorted(EMPHASIS)
