"""Figures of reliability: right where the truth is known, and independent of the order of rows."""

from __future__ import annotations

import numpy as np
import pytest

from reward_server.errors import InvalidRequest
from reward_server.reward_models.reliability import (
    binomial,
    bootstrap,
    calibration_error,
    coverage,
    equal_mass_bins,
    expected_calibration_error,
    gaussian_nll,
    less_random,
    resampled,
    risk_coverage,
    sharpness,
)

GENERATOR = np.random.default_rng(0)
MEAN = GENERATOR.normal(size=4000)
STD = 0.2 + GENERATOR.random(4000)
LABELS = MEAN + STD * GENERATOR.normal(size=4000)


def test_honest_intervals_cover_what_they_promise() -> None:
    found = coverage(MEAN, STD, LABELS)
    assert [each.level for each in found] == [0.5, 0.8, 0.9, 0.95]
    for each in found:
        assert each.share.low < each.level < each.share.high
        assert each.n == 4000


@pytest.mark.parametrize(("stretch", "too_wide"), [(0.5, False), (2.0, True)])
def test_intervals_that_are_too_narrow_or_too_wide_are_found_out(stretch: float, too_wide: bool) -> None:
    for each in coverage(MEAN, stretch * STD, LABELS):
        assert (each.share.low > each.level) if too_wide else (each.share.high < each.level)


def test_a_share_has_its_exact_interval() -> None:
    # Clopper & Pearson for 8 of 10.
    found = binomial(8, 10)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, 0.4439, 0.9748), abs=1e-4)
    assert (binomial(0, 5).low, binomial(5, 5).high) == (0.0, 1.0)
    assert binomial(0, 5).high == pytest.approx(0.5218, abs=1e-4)


def test_risk_falls_with_coverage_where_the_uncertainty_is_useful() -> None:
    errors = np.abs(LABELS - MEAN)
    useful, useless = risk_coverage(STD, errors), risk_coverage(GENERATOR.random(4000), errors)
    assert useful.oracle < useful.aurc < useful.random
    assert useless.aurc == pytest.approx(useless.random, rel=0.05)
    assert less_random(STD, errors) == pytest.approx(useful.aurc - useful.random)
    assert useful.risk[-1] == pytest.approx(errors.mean())
    assert useful.coverage[[0, -1]].tolist() == [1 / 4000, 1.0]


def test_equal_uncertainties_do_not_depend_on_the_order_of_rows() -> None:
    errors = np.array([0.0, 1.0, 0.0, 1.0])
    assert risk_coverage(np.ones(4), errors).aurc == risk_coverage(np.ones(4), errors[::-1]).aurc == 0.5


def test_the_likelihood_is_best_at_the_true_spread() -> None:
    best = gaussian_nll(MEAN, STD, LABELS)
    assert best < gaussian_nll(MEAN, 0.7 * STD, LABELS)
    assert best < gaussian_nll(MEAN, 1.4 * STD, LABELS)
    assert gaussian_nll(np.zeros(1), np.ones(1), np.zeros(1)) == pytest.approx(0.9189, abs=1e-4)
    assert sharpness(np.array([1.0, 3.0])) == 2.0


def test_the_calibration_error_is_the_distance_of_prediction_and_outcome() -> None:
    predicted = np.concatenate([np.full(50, 0.2), np.full(50, 0.8)])
    observed = np.concatenate([np.arange(50) < 20, np.arange(50) < 35]).astype(np.float64)
    assert expected_calibration_error(predicted, observed) == pytest.approx(0.5 * 0.2 + 0.5 * 0.1)
    order = GENERATOR.permutation(100)
    assert expected_calibration_error(predicted[order], observed[order]) == pytest.approx(0.15)


def test_bins_hold_about_as_many_rows_and_equal_predictions_share_one() -> None:
    assert [each.n for each in equal_mass_bins(GENERATOR.random(1000), np.ones(1000))] == [100] * 10
    [low, high] = equal_mass_bins(np.repeat([0.1, 0.9], 50), np.repeat([0.0, 1.0], 50))
    assert (low.n, low.predicted, low.observed) == (50, pytest.approx(0.1), 0.0)
    assert (high.n, high.predicted, high.observed) == (50, pytest.approx(0.9), 1.0)


def test_the_interval_of_the_error_holds_the_error_and_shrinks_with_rows() -> None:
    def width(n: int) -> float:
        predicted = np.random.default_rng(1).random(n)
        observed = (np.random.default_rng(2).random(n) < predicted).astype(np.float64)
        found = calibration_error(predicted, observed, [str(k) for k in range(n)])
        assert 0.0 <= found.low <= found.value <= found.high
        return found.high - found.low

    assert width(4000) < width(200) / 2


def test_resampling_draws_whole_dialogues() -> None:
    values = np.repeat([0.0, 1.0], 50)
    alone = bootstrap(lambda rows: float(values[rows].mean()), [str(k) for k in range(100)])
    together = bootstrap(lambda rows: float(values[rows].mean()), [str(k // 50) for k in range(100)])
    assert alone.high - alone.low < 0.25
    assert (together.low, together.value, together.high) == (0.0, 0.5, 1.0)


def test_resampling_is_the_same_every_time_and_in_any_order() -> None:
    groups = [f"d{k // 3}" for k in range(30)]
    values = GENERATOR.random(30)
    order = GENERATOR.permutation(30)
    one = resampled(lambda rows: float(values[rows].mean()), groups, draws=20)
    other = resampled(lambda rows: float(values[order][rows].mean()), [groups[k] for k in order], draws=20)
    assert one == pytest.approx(other)


def test_draws_without_a_value_do_not_count() -> None:
    found = bootstrap(lambda rows: float("nan") if rows[0] == 0 else 1.0, ["a", "b", "c"], draws=50)
    assert (found.low, found.high) == (1.0, 1.0)


@pytest.mark.parametrize("wrong", [np.array([np.nan, 1.0]), np.ones(3), np.ones(0)])
def test_what_is_no_number_or_of_another_length_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InvalidRequest, match="finite"):
        risk_coverage(wrong, np.ones(2))
    with pytest.raises(InvalidRequest, match="finite"):
        coverage(np.ones(2), np.ones(2), wrong)
