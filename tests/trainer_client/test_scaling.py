"""Scaling in a training run: exact, without jumps, without feedback on itself, the same after a restart."""

from __future__ import annotations

import json
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trainer_client
from trainer_client.scaling import AdaptiveScaler, NotWarmError

REWARDS = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40)


def warm(*rewards: float, **options: float) -> AdaptiveScaler:
    scaler = AdaptiveScaler(warmup=2, **options)  # type: ignore[arg-type]
    scaler.observe(rewards)
    return scaler


@given(REWARDS)
def test_statistics_are_exact_after_every_reward(rewards: list[float]) -> None:
    scaler = AdaptiveScaler(warmup=2)
    for count, reward in enumerate(rewards, 1):
        scaler.observe([reward])
        assert scaler.mean() == pytest.approx(statistics.fmean(rewards[:count]), abs=1e-6)
        assert scaler.std() == pytest.approx(statistics.pstdev(rewards[:count]), abs=1e-4)


def test_ninety_nine_tens_after_a_hundred_zeros_count_at_once() -> None:
    scaler = warm(*[0.0] * 100, *[10.0] * 99)
    assert scaler.mean() == pytest.approx(4.9749, abs=1e-4)


@given(REWARDS, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_scaling_keeps_the_order_and_the_bounds(rewards: list[float], a: float, b: float) -> None:
    scaler = warm(*rewards)
    low, high = scaler.scale(min(a, b)), scaler.scale(max(a, b))
    assert -5.0 <= low <= high <= 5.0


def test_during_the_warm_up_nothing_is_scaled_so_that_nothing_jumps() -> None:
    scaler = AdaptiveScaler(warmup=100)
    scaler.observe([0.2, 0.8] * 49)
    assert not scaler.is_warm()
    with pytest.raises(NotWarmError, match="98 rewards"):
        scaler.scale(0.2)
    scaler.observe([0.2, 0.8])
    assert scaler.is_warm()
    assert scaler.scale_all([0.2, 0.8]) == pytest.approx([-1.0, 1.0])


def test_keys_are_kept_apart() -> None:
    scaler = AdaptiveScaler(warmup=3)
    scaler.observe([1, 2, 3], key="small")
    scaler.observe([100, 200, 300], key="large")
    assert (scaler.mean("small"), scaler.mean("large")) == (2.0, 200.0)
    assert scaler.scale(3, "small") == pytest.approx(scaler.scale(300, "large"))
    assert not scaler.is_warm()
    with pytest.raises(NotWarmError):
        scaler.scale(1.0, "unknown")


def test_scaling_does_not_feed_back_on_what_it_scaled() -> None:
    scaler = AdaptiveScaler(warmup=2)
    generator = random.Random(0)
    for _ in range(1000):
        rewards = [generator.gauss(0.3, 0.1) for _ in range(8)]
        scaler.observe(rewards)
        scaler.scale_all(rewards)
    assert scaler.std() == pytest.approx(0.1, rel=0.05)
    assert scaler.scale(0.3) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_and_leaves_nothing_behind(wrong: float) -> None:
    scaler = warm(0.1, 0.3)
    before = scaler.state_dict()
    with pytest.raises(ValueError, match="finite"):
        scaler.observe([0.5, wrong])
    with pytest.raises(ValueError, match="finite"):
        scaler.scale(wrong)
    assert scaler.state_dict() == before


def test_equal_rewards_are_scaled_to_0() -> None:
    assert warm(0.7, 0.7, 0.7).scale(0.7) == 0.0


def test_an_outlier_is_cut() -> None:
    assert warm(0.0, 1.0).scale(1000.0) == 5.0
    assert warm(0.0, 1.0, clip=2.0).scale(-1000.0) == -2.0


def test_frozen_it_scales_alike_for_ever_and_takes_nothing_more() -> None:
    scaler = warm(0.0, 1.0)
    scaler.freeze()
    before = scaler.scale(0.8)
    with pytest.raises(RuntimeError, match="frozen"):
        scaler.observe([5.0])
    assert scaler.is_frozen
    assert scaler.scale(0.8) == before


def test_it_freezes_only_once_every_key_is_warm() -> None:
    scaler = AdaptiveScaler(warmup=2)
    with pytest.raises(NotWarmError, match="nothing was observed"):
        scaler.freeze()
    scaler.observe([0.1, 0.2], key="a")
    scaler.observe([0.1], key="b")
    with pytest.raises(NotWarmError, match="'b'"):
        scaler.freeze()
    assert not scaler.is_frozen


@pytest.mark.parametrize("frozen", [False, True])
def test_saved_and_loaded_it_goes_on_as_it_was(frozen: bool) -> None:
    scaler = AdaptiveScaler(warmup=2, clip=3.0)
    scaler.observe([0.1, 0.4, 0.35], key="a")
    if frozen:
        scaler.freeze()
    loaded = AdaptiveScaler.from_state_dict(json.loads(json.dumps(scaler.state_dict())))
    assert loaded.state_dict() == scaler.state_dict()
    assert loaded.is_frozen is frozen
    if not frozen:
        for each in (scaler, loaded):
            each.observe([0.9], key="a")
    assert loaded.scale(0.2, "a") == scaler.scale(0.2, "a")


@pytest.mark.parametrize(
    "damage",
    [{"format": 2}, {"keys": {"a": [1, 2]}}, {"keys": {"a": [3, math.nan, 1]}}, {"keys": {"a": [3, 0, -1]}},
     {"keys": 3}, {"warmup": 0}, {"clip": "wide"}],
)  # fmt: skip
def test_a_damaged_state_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not the state"):
        AdaptiveScaler.from_state_dict(warm(0.1, 0.2).state_dict() | damage)
    with pytest.raises(ValueError, match="not the state"):
        AdaptiveScaler.from_state_dict({})


@pytest.mark.parametrize("options", [{"warmup": 1}, {"clip": 0.0}, {"clip": math.nan}, {"clip": math.inf}])
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        AdaptiveScaler(**options)  # type: ignore[arg-type]


def test_the_package_offers_it() -> None:
    assert trainer_client.AdaptiveScaler is AdaptiveScaler
    assert trainer_client.NotWarmError is NotWarmError
