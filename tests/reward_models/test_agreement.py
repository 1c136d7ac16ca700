"""Figures of agreement, held against other implementations and worked examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from reward_server.reward_models.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    levels_of,
    nearest,
    pairwise_accuracy,
    position_consistency,
    repeat_std,
    spearman,
)

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("levels", [2, 3, 5])
def test_kappa_is_that_of_another_implementation(levels: int, quadratic: bool) -> None:
    a = GENERATOR.integers(0, levels, 200)
    b = np.where(GENERATOR.random(200) < 0.6, a, GENERATOR.integers(0, levels, 200))
    other = cohen_kappa_score(a, b, labels=list(range(levels)), weights="quadratic" if quadratic else None)
    assert cohen_kappa(a, b, levels, quadratic=quadratic) == pytest.approx(other)


def test_kappa_of_chance_is_0_of_equals_1_and_of_one_class_undefined() -> None:
    same = np.array([0, 1] * 20)
    assert cohen_kappa(same, same, 2) == 1.0
    assert cohen_kappa(same, np.array([0, 0, 1, 1] * 10), 2) == pytest.approx(0.0)
    assert math.isnan(cohen_kappa(np.zeros(5, dtype=np.intp), np.zeros(5, dtype=np.intp), 2))


def test_rank_correlation_is_that_of_another_implementation_with_ties_too() -> None:
    a = GENERATOR.integers(0, 5, 100).astype(np.float64)
    b = a + GENERATOR.normal(size=100).round(1)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert spearman(a, -a) == pytest.approx(-1.0)
    assert math.isnan(spearman(a, np.ones(100)))


def test_few_labels_are_levels_and_many_are_cut_in_the_middle() -> None:
    assert levels_of(np.array([1.0, 0.0, 0.5, 0.5])).tolist() == [0.0, 0.5, 1.0]
    assert levels_of(GENERATOR.random(50)).tolist() == [0.0, 1.0]
    assert nearest(np.array([0.1, 0.3, 0.8, 0.25]), np.array([0.0, 0.5, 1.0])).tolist() == [0, 1, 2, 0]


def test_a_tie_is_half_right_and_pairs_without_a_human_winner_do_not_count() -> None:
    margins = np.array([0.2, -0.2, 0.0, 0.5])
    assert pairwise_accuracy(margins, np.array([1.0, 1.0, 0.0, 0.5])) == pytest.approx(0.5)
    assert math.isnan(pairwise_accuracy(margins, np.full(4, 0.5)))


def test_a_judge_that_always_names_the_first_is_never_consistent() -> None:
    # Named by where the sides stood at first: "a" in the first order, "b" once they are swapped.
    assert position_consistency(["a", "a"], ["b", "b"]) == 0.0
    assert position_consistency(["a", "b", "tie"], ["a", "b", "a"]) == pytest.approx(2 / 3)
    assert math.isnan(position_consistency([], []))


def test_repeats_of_a_steady_judge_have_no_spread() -> None:
    assert repeat_std(np.array([[0.5, 0.5], [0.2, 0.2]])) == 0.0
    assert repeat_std(np.array([[0.0, 1.0], [0.5, 0.5]])) == pytest.approx(0.5)


def test_alpha_is_that_of_the_papers_example() -> None:
    """Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section C: four raters with gaps, nominal."""
    raters = ["123321412...", "12332241253.".replace("53.", "5.3"), ".3332342251.", "12332441251."]
    units = zip(*raters, strict=True)
    counts = np.array([[unit.count(level) for level in "12345"] for unit in units], dtype=np.float64)
    assert krippendorff_alpha(counts) == pytest.approx(0.743, abs=5e-4)


def test_alpha_of_equals_is_1_and_of_one_class_or_one_rater_undefined() -> None:
    assert krippendorff_alpha(np.array([[2.0, 0.0], [0.0, 3.0]])) == 1.0
    assert np.isnan(krippendorff_alpha(np.array([[2.0, 0.0], [3.0, 0.0]])))
    assert np.isnan(krippendorff_alpha(np.array([[1.0, 0.0], [0.0, 1.0]])))
