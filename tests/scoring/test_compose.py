"""Composite rewards: the arithmetic, and the std that is carried through it."""

from __future__ import annotations

import math
from math import isclose, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.scoring.compose import (
    RUBRIC_ALONE,
    PartValue,
    ScoringComposite,
    ScoringCompositePart,
    combine,
    composite_of,
)
from trainer_client import wire

COMBINES = ("weighted_sum", "min", "product", "gated")


def a_composite(how: str, *weights: float, at_least: float | None = None) -> ScoringComposite:
    parts: list[dict[str, Any]] = [{"judge": f"j{i}", "weight": weight} for i, weight in enumerate(weights)]
    if at_least is not None:
        parts[0]["at_least"] = at_least
    return composite_of(wire.Composite.model_validate({"combine": how, "parts": parts}))


def of(composite: ScoringComposite, *values: float | PartValue) -> PartValue:
    named = {f"j{i}": v if isinstance(v, PartValue) else PartValue(v) for i, v in enumerate(values)}
    return combine(composite, named)


def test_the_rubric_alone_is_the_rubric_to_the_last_bit() -> None:
    for value in (0.1, 1 / 3, 0.9999999999999999, 1.0):
        assert combine(RUBRIC_ALONE, {"rubric": PartValue(value, 0.25)}) == PartValue(value, 0.25)


def test_a_weighted_sum_is_normalised_by_its_weights() -> None:
    assert of(a_composite("weighted_sum", 3, 1), 0.8, 0.4).value == pytest.approx(0.7)
    assert of(a_composite("weighted_sum", 30, 10), 0.8, 0.4).value == pytest.approx(0.7)


def test_a_product_is_the_weighted_geometric_mean() -> None:
    assert of(a_composite("product", 1, 1), 0.9, 0.4).value == pytest.approx(0.6)
    assert of(a_composite("product", 2, 1), 0.8, 0.1).value == pytest.approx(0.4)
    assert of(a_composite("product", 5, 1), 0.9, 0.0).value == 0.0


def test_the_least_wins_whatever_its_weight() -> None:
    assert of(a_composite("min", 0, 1), 0.2, 0.7).value == 0.2


@pytest.mark.parametrize(
    ("gate", "others", "expected"),
    [
        (0.6, (0.9, 0.3), 0.75),  # open: 3:1 mean of the others, and no higher for a better gate
        (0.9, (0.9, 0.3), 0.75),
        (0.5999, (0.9, 0.3), 0.5999),  # closed: at most the gate
        (0.1, (0.9, 0.3), 0.1),
        (0.5, (0.2, 0.2), 0.2),  # closed, and the others are lower anyway
    ],
)
def test_a_gate_limits_until_it_is_reached(gate: float, others: tuple[float, float], expected: float) -> None:
    composite = a_composite("gated", 1, 3, 1, at_least=0.6)
    assert of(composite, gate, *others).value == pytest.approx(expected)


def test_parts_of_no_weight_are_heard_only_where_they_count() -> None:
    assert a_composite("weighted_sum", 1, 0).judges == ("j0",)
    assert a_composite("product", 0, 1).judges == ("j1",)
    assert a_composite("min", 1, 0).judges == ("j0", "j1")
    assert a_composite("gated", 0, 0, 1, at_least=0.5).judges == ("j0", "j2")


shares = st.floats(0.0, 1.0)


@given(st.sampled_from(COMBINES), st.lists(st.tuples(shares, shares, st.floats(0.1, 9.0)), min_size=2, max_size=4))
def test_it_stays_between_the_extremes_and_a_better_part_never_lowers_it(
    how: str, parts: list[tuple[float, float, float]]
) -> None:
    composite = a_composite(how, *(weight for _, _, weight in parts), at_least=0.5 if how == "gated" else None)
    lower = [min(a, b) for a, b, _ in parts]
    upper = [max(a, b) for a, b, _ in parts]
    low, high = of(composite, *lower).value, of(composite, *upper).value
    assert min(lower) - 1e-12 <= low <= max(lower) + 1e-12
    assert low <= high + 1e-12


# --- uncertainty -----------------------------------------------------------------------------------


def test_nothing_known_is_none_and_never_zero() -> None:
    for how in COMBINES:
        composite = a_composite(how, 1, 1, at_least=0.5 if how == "gated" else None)
        assert of(composite, 0.4, 0.8).std is None
        assert of(composite, PartValue(0.4, 0.1), 0.8).std is not None


def test_stds_add_as_squares_by_the_slope_of_their_part() -> None:
    known = of(a_composite("weighted_sum", 3, 1), PartValue(0.8, 0.1), PartValue(0.4, 0.2)).std
    assert known == pytest.approx(sqrt(0.075**2 + 0.05**2))
    # Geometric mean of 0.9 and 0.4: R = 0.6, slopes R/2v = 1/3 and 3/4.
    product = of(a_composite("product", 1, 1), PartValue(0.9, 0.03), PartValue(0.4, 0.04)).std
    assert product == pytest.approx(sqrt(0.01**2 + 0.03**2))


def test_at_zero_a_product_takes_the_rise_over_one_std() -> None:
    assert of(a_composite("product", 1, 1), PartValue(0.0, 0.04), 0.25).std == pytest.approx(sqrt(0.04 * 0.25))


def test_only_the_part_that_decides_is_unsure() -> None:
    assert of(a_composite("min", 1, 1), PartValue(0.4, 0.1), PartValue(0.8, 0.3)).std == 0.1
    assert of(a_composite("min", 1, 1), PartValue(0.4, 0.1), PartValue(0.4, 0.3)).std == 0.3
    gated = a_composite("gated", 1, 1, at_least=0.5)
    assert of(gated, PartValue(0.4, 0.1), PartValue(0.8, 0.3)).std == 0.1
    assert of(gated, PartValue(0.6, 0.1), PartValue(0.8, 0.3)).std == 0.3


def test_where_a_part_without_a_std_decides_there_is_none() -> None:
    assert of(a_composite("min", 1, 1), 0.4, PartValue(0.8, 0.3)).std is None
    assert of(a_composite("min", 1, 1), 0.8, PartValue(0.4, 0.3)).std == 0.3
    assert of(a_composite("product", 1, 1), 0.0, PartValue(0.8, 0.3)).std is None
    gated = a_composite("gated", 1, 1, at_least=0.5)
    assert of(gated, 0.4, PartValue(0.8, 0.3)).std is None
    assert of(gated, 0.6, PartValue(0.8, 0.3)).std == 0.3
    assert of(a_composite("min", 1, 1), PartValue(0.4, 0.0), PartValue(0.8, 0.3)).std == 0.0  # a judge may be certain
    assert of(a_composite("min", 1, 1), PartValue(0.4, 0.0), 0.8).std == 0.0


@given(st.sampled_from(("weighted_sum", "product")), shares, shares, st.floats(0.0, 0.01), st.floats(0.0, 0.01))
def test_the_slopes_are_those_of_the_reward(how: str, a: float, b: float, std_a: float, std_b: float) -> None:
    a, b = 0.2 + 0.6 * a, 0.2 + 0.6 * b
    composite, step = a_composite(how, 2, 1), 1e-6
    slope_a = (of(composite, a + step, b).value - of(composite, a - step, b).value) / (2 * step)
    slope_b = (of(composite, a, b + step).value - of(composite, a, b - step).value) / (2 * step)
    std = of(composite, PartValue(a, std_a), PartValue(b, std_b)).std
    assert std is not None
    assert isclose(std, math.hypot(slope_a * std_a, slope_b * std_b), rel_tol=1e-4, abs_tol=1e-9)


def test_a_composite_may_be_written_by_hand() -> None:
    by_hand = ScoringComposite("gated", (ScoringCompositePart("j0", at_least=0.5), ScoringCompositePart("j1", 2.0)))
    assert by_hand == a_composite("gated", 1, 2, at_least=0.5)
