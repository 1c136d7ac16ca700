"""Figures against values known from elsewhere, and intervals that resample whole dialogues."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reward_server.fitting.reward_model.metrics import (
    Figure,
    Resamples,
    ece,
    human_ceiling,
    mse,
    pairwise,
    pearson,
    r2,
    spearman,
)

SOURCE = np.random.default_rng(0)
LABELS = np.round(SOURCE.random(80), 1)
PREDICTED = np.clip(LABELS + SOURCE.normal(0, 0.2, 80), 0, 1)


def test_correlations_agree_with_the_reference_library() -> None:
    assert spearman(PREDICTED, LABELS) == pytest.approx(stats.spearmanr(PREDICTED, LABELS).statistic)
    assert pearson(PREDICTED, LABELS) == pytest.approx(stats.pearsonr(PREDICTED, LABELS).statistic)


def test_predicting_the_mean_explains_nothing_though_its_mse_is_small() -> None:
    mean = np.full(80, LABELS.mean())
    assert r2(mean, LABELS) == pytest.approx(0.0)
    assert mse(mean, LABELS) == pytest.approx(LABELS.var())
    assert spearman(mean, LABELS) is None


def test_labels_that_do_not_vary_have_no_share_to_explain() -> None:
    assert r2(PREDICTED, np.full(80, 0.5)) is None
    assert pearson(PREDICTED, np.full(80, 0.5)) is None


def test_pairs_in_order_half_for_a_draw_and_without_human_ties() -> None:
    assert pairwise(np.array([1.0, -1.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0, 0.5])) == 0.5
    assert pairwise(np.array([-2.0, 3.0]), np.array([0.0, 1.0])) == 1.0
    assert pairwise(np.array([1.0]), np.array([0.5])) is None


def test_calibration_error_is_the_distance_of_means_in_bins() -> None:
    assert ece(LABELS, LABELS) == pytest.approx(0.0)
    assert ece(np.full(100, 0.9), np.full(100, 0.7)) == pytest.approx(0.2)
    sure, right = np.repeat([0.55, 0.95], 50), np.repeat([0.5, 0.75], 50)
    assert ece(sure, right) == pytest.approx(0.125)


def test_rows_of_one_dialogue_make_intervals_wider() -> None:
    """Copies of ten rows are ten rows, however many there are."""
    labels, predicted = np.tile(LABELS[:10], 8), np.tile(PREDICTED[:10], 8)
    by_dialogue = Resamples.of([str(n % 10) for n in range(80)]).figure(spearman, predicted, labels)
    by_row = Resamples.of([str(n) for n in range(80)]).figure(spearman, predicted, labels)
    assert by_dialogue is not None
    assert by_row is not None
    widths = [figure.high - figure.low for figure in (by_dialogue, by_row) if figure.high and figure.low]
    assert widths[0] > 1.5 * widths[1]


def test_intervals_hold_the_value_and_do_not_change_from_run_to_run() -> None:
    groups = [str(n % 20) for n in range(80)]
    first, second = (Resamples.of(groups).figure(r2, PREDICTED, LABELS) for _ in range(2))
    assert first == second
    assert first is not None
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.value < first.high


def test_the_calibration_error_lies_in_its_own_interval() -> None:
    """Chance adds to it, in resamples twice: their quantiles alone would leave it out."""
    source = np.random.default_rng(6)
    predicted = source.random(40)
    labels = predicted + source.normal(0, 0.2, 40)
    resamples = Resamples.of([str(n) for n in range(40)])
    drawn = [ece(predicted[rows], labels[rows]) for rows in resamples.rows]
    figure = resamples.figure(ece, predicted, labels)
    assert figure is not None
    assert figure.low is not None
    assert figure.high is not None
    assert figure.value < np.percentile(drawn, 2.5)
    assert 0.0 <= figure.low < figure.value < figure.high


def test_too_few_dialogues_have_a_value_without_an_interval() -> None:
    figure = Resamples.of(["a"] * 40 + ["b"] * 40).figure(r2, PREDICTED, LABELS)
    assert figure is not None
    assert figure.low is None
    assert set(figure.to_json()) == {"value"}


def test_one_person_against_the_others_is_the_ceiling() -> None:
    agreeing = [[label] * 3 for label in LABELS]
    groups = [str(n % 20) for n in range(80)]
    assert human_ceiling(agreeing, groups)["spearman"].value == pytest.approx(1.0)
    guessing = [list(row) for row in SOURCE.random((80, 3))]
    assert abs(human_ceiling(guessing, groups)["spearman"].value) < 0.3
    assert human_ceiling([[0.5]] * 80, groups) == {}


def test_small_figures_keep_digits_enough_to_differ() -> None:
    assert Figure(0.000123456).to_json() == {"value": 0.0001235}
    assert Figure(0.85432109, 3e-17, 0.0).to_json() == {"value": 0.8543, "low": 0.0, "high": 0.0}
