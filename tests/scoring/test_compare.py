"""Comparing two rewards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.scoring.compare import ComparisonResult, compare

REWARDS = st.integers(min_value=0, max_value=10_000).map(lambda n: n / 10_000)
SWAPPED = {"a": "b", "b": "a", "tie": "tie"}


@given(REWARDS, REWARDS)
def test_swapping_the_sides_swaps_the_winner_and_nothing_else(a: float, b: float) -> None:
    one, other = compare(a, b), compare(b, a)
    assert other == ComparisonResult(SWAPPED[one.winner], one.margin)  # type: ignore[arg-type]
    assert 0.0 <= one.margin <= 1.0
    assert (one.winner == "tie") == (a == b) == (one.margin == 0.0)


@given(REWARDS)
def test_equal_rewards_tie_with_margin_zero(reward: float) -> None:
    assert compare(reward, reward) == ComparisonResult("tie", 0.0)


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        (0.9, 0.4, ComparisonResult("a", 0.5)),
        (0.4, 0.9, ComparisonResult("b", 0.5)),
        (0.3, 0.1 + 0.2, ComparisonResult("tie", 0.0)),
        (0.5, 0.5001, ComparisonResult("b", 0.0001)),
        (1.0, 0.0, ComparisonResult("a", 1.0)),
    ],
)
def test_the_margin_is_the_distance(a: float, b: float, outcome: ComparisonResult) -> None:
    assert compare(a, b) == outcome
