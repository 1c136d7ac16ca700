"""What a lab may have read in a minute, and how many of its requests may be in work."""

from __future__ import annotations

import pytest

from reward_server.coordination.compute_budget import ComputeBudget
from reward_server.coordination.lab import DEVELOPMENT_LAB, Lab
from reward_server.coordination.places import LabPlaces
from reward_server.errors import ComputeExhausted, TooManyAtOnce
from reward_server.store.records import Limits

STANDARD = Lab(lab_id="acme", key_id="k", per_minute=60)
OTHER = Lab(lab_id="zenith", key_id="z", per_minute=60)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_standard_plan_has_room_for_64_episodes_of_12_turns_a_minute() -> None:
    budget = ComputeBudget(Time())
    for _ in range(64 * 12):
        budget.charge(STANDARD, 1_000)


def test_who_took_more_than_there_was_waits_until_it_is_paid_back() -> None:
    time = Time()
    budget = ComputeBudget(time)
    budget.charge(STANDARD, 1_500_000)
    with pytest.raises(ComputeExhausted) as refused:
        budget.charge(STANDARD, 1)
    budget.charge(OTHER, 1)
    assert refused.value.retry_after_s == 31
    time.now = 31.0
    budget.charge(STANDARD, 1)


def test_plans_differ_and_development_has_no_limit() -> None:
    assert STANDARD.characters_per_minute == 1_000_000
    assert Lab(lab_id="a", key_id="k", per_minute=300).characters_per_minute == 5_000_000
    assert Lab(lab_id="a", key_id="k", per_minute=1).characters_per_minute == 1_000_000
    budget = ComputeBudget(Time())
    for _ in range(3):
        budget.charge(DEVELOPMENT_LAB, 10**9)


def test_a_lab_holds_three_quarters_of_the_places_and_gets_them_back() -> None:
    places = LabPlaces(4)
    for _ in range(3):
        places.enter(STANDARD)
    with pytest.raises(TooManyAtOnce):
        places.enter(STANDARD)
    places.enter(OTHER)
    places.leave(STANDARD)
    places.enter(STANDARD)


def test_a_lab_and_a_key_may_have_fewer_places() -> None:
    places = LabPlaces(100)
    narrow = Lab(lab_id="acme", key_id="k", per_minute=60, limits=Limits(concurrency=2), concurrency=1)
    wide = Lab(lab_id="acme", key_id="w", per_minute=60, limits=Limits(concurrency=2))
    places.enter(narrow)
    with pytest.raises(TooManyAtOnce):
        places.enter(narrow)
    places.enter(wide)
    with pytest.raises(TooManyAtOnce):
        places.enter(wide)
    places.leave(narrow)
    places.enter(wide)
