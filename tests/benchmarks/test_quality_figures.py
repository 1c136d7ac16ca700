"""Figures against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.quality.asking import summary
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import auc, auc_of, beaten, fold_of, folds_of, macro_f1, share, wins
from benchmarks.quality.preferences import calibrated
from reward_server.judges.pairwise import PairwisePreference
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.reliability import FigureInterval

pytestmark = pytest.mark.slow


def test_a_tie_is_half_a_win() -> None:
    assert wins(np.array([2.0, 0.0, -1.0])).tolist() == [1.0, 0.5, 0.0]


def test_auc_counts_pairs() -> None:
    # Positives .9, .5; negatives .5, .1: three pairs right, one tied.
    assert auc(np.array([0.9, 0.5, 0.5, 0.1]), np.array([1.0, 1.0, 0.0, 0.0])) == pytest.approx(3.5 / 4)


def test_auc_of_one_class_is_undefined() -> None:
    assert np.isnan(auc(np.array([1.0, 2.0]), np.array([1.0, 1.0])))


def test_auc_agrees_with_a_count_of_all_pairs() -> None:
    generator = np.random.default_rng(4)
    scores, labels = generator.integers(0, 6, 80).astype(float), (generator.random(80) < 0.4).astype(float)
    differences = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    assert auc(scores, labels) == pytest.approx(((differences > 0) + 0.5 * (differences == 0)).mean())


def test_macro_f1_is_the_mean_of_both_classes() -> None:
    # Yes: 1 hit of 2 found and 1 wanted: 2/3. No: 2 hits of 2 found and 3 wanted: 4/5.
    assert macro_f1(np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(
        (2 / 3 + 4 / 5) / 2
    )


def test_intervals_are_wider_where_rows_share_a_dialogue() -> None:
    values = np.repeat([0.0, 1.0], 50)
    alone = share(values, [str(row) for row in range(100)])
    together = share(values, [str(row // 10) for row in range(100)])
    assert alone.value == together.value == 0.5
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_the_interval_of_an_auc_holds_it() -> None:
    generator = np.random.default_rng(6)
    labels = (generator.random(120) < 0.5).astype(float)
    found = auc_of(labels + generator.normal(size=120), labels, [str(row // 4) for row in range(120)])
    assert 0.5 < found.low < found.value < found.high < 1.0


def test_no_dialogue_lies_on_both_sides_of_a_fold() -> None:
    groups = [f"dialogue {row % 13}" for row in range(60)]
    seen: list[int] = []
    for train, held_out in folds_of(groups):
        assert not {groups[row] for row in train} & {groups[row] for row in held_out}
        seen += held_out.tolist()
    assert sorted(seen) == list(range(60))


def test_folds_do_not_depend_on_the_order_of_rows() -> None:
    groups = [f"dialogue {row % 13}" for row in range(60)]
    folds = [{groups[row] for row in held_out} for _, held_out in folds_of(groups)]
    backwards = [{groups[::-1][row] for row in held_out} for _, held_out in folds_of(groups[::-1])]
    assert folds == backwards


def test_a_fold_by_hash_stays() -> None:
    assert [fold_of(name) for name in ("a", "b", "c", "d")] == [fold_of(name) for name in ("a", "b", "c", "d")]
    assert {fold_of(str(number)) for number in range(100)} == set(range(5))
    assert any(fold_of(str(number), salt="x") != fold_of(str(number)) for number in range(20))


def test_beaten_says_whether_the_interval_leaves_room() -> None:
    assert beaten(FigureInterval(0.7, 0.65, 0.75), 0.6) == "yes"
    assert beaten(FigureInterval(0.7, 0.55, 0.75), 0.6) == "yes, inside the interval"
    assert beaten(FigureInterval(0.6, 0.55, 0.65), 0.6) == "no"
    assert beaten(FigureInterval(0.6004, 0.59, 0.65), 0.6) == "no"


def test_a_temperature_cools_margins_that_are_too_sure() -> None:
    generator = np.random.default_rng(5)
    margins = np.where(generator.random(400) < 0.65, 1.0, -1.0) * 6.0 * generator.random(400)
    found = calibrated(margins, [str(row // 2) for row in range(400)])

    def loss(chances: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(-np.log(np.where(found.observed > 0.5, chances, 1.0 - chances)).mean())

    assert loss(found.after) < loss(found.before)
    assert np.abs(found.after - 0.5).max() < np.abs(found.before - 0.5).max()


def test_answers_that_are_missing_are_neither_wins_nor_losses() -> None:
    pairs = [Pair(Conversation(()), Conversation(()), name) for name in "abcd"]
    answers = [PairwisePreference("a", True), PairwisePreference("b", True), PairwisePreference("tie", False), None]
    found = summary(pairs, answers)
    assert (found.n, found.failed) == (4, 1)
    assert isinstance(found.accuracy, FigureInterval)
    assert found.accuracy.value == pytest.approx(0.5)
    assert isinstance(found.consistency, FigureInterval)
    assert found.consistency.value == pytest.approx(2 / 3)


def test_a_model_that_never_answers_has_no_figure() -> None:
    found = summary([Pair(Conversation(()), Conversation(()), "a")], [None])
    assert (found.failed, found.accuracy, found.consistency) == (1, "-", "-")
