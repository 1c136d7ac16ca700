"""Intervals: against numbers worked out by hand and by scipy, and how often they hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reward_server.agents.interval import Stratum, interval_of, mean_of


def stratum(*values: float) -> Stratum:
    return Stratum(len(values), float(np.mean(values)), float(np.mean(np.square(values))))


def test_of_one_scenario_it_is_students() -> None:
    values = [0.2, 0.4, 0.5, 0.3, 0.35]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = interval_of([stratum(*values)])
    assert found is not None
    assert found == pytest.approx((low, high))


def test_two_scenarios_of_equal_size_and_spread_have_the_degrees_of_freedom_of_both() -> None:
    a, b = [0.2, 0.3, 0.4], [0.5, 0.6, 0.7]
    found = interval_of([stratum(*a), stratum(*b)])
    # Each variance is .01, so the mean of two means of three has .01 / 6, with 2 + 2 degrees of freedom.
    half = stats.t.ppf(0.975, 4) * np.sqrt(0.01 / 6)
    assert found == pytest.approx((0.45 - half, 0.45 + half))


def test_one_seed_tells_no_spread_and_no_spread_is_a_point() -> None:
    assert interval_of([stratum(0.4), stratum(0.1, 0.2)]) is None
    assert interval_of([stratum(0.4, 0.4), stratum(0.2, 0.2)]) == pytest.approx((0.3, 0.3))


def test_a_large_scenario_weighs_as_much_as_a_small_one() -> None:
    assert mean_of([stratum(*[0.8] * 50), stratum(0.2)]) == pytest.approx(0.5)


def test_it_stays_where_rewards_are() -> None:
    found = interval_of([stratum(0.0, 0.9)])
    assert found == (0.0, 1.0)


def test_about_95_of_100_hold_the_mean_of_all_seeds() -> None:
    chance, held, tries = np.random.default_rng(0), 0, 1000
    truth = 0.5 * (0.3 + 0.6)
    for _ in range(tries):
        drawn = [chance.beta(3, 7, 8), chance.beta(6, 4, 5)]
        found = interval_of([stratum(*values) for values in drawn])
        assert found is not None
        held += found[0] <= truth <= found[1]
    assert 0.93 <= held / tries <= 0.97
