"""What a lab may have read in a minute, and how many of its requests may be in work."""

from __future__ import annotations

import pytest

from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.errors import ComputeExhausted, TooManyAtOnce
from reward_server.limits import token_bucket as minutes
from reward_server.limits.compute_budget import ComputeBudget
from reward_server.limits.concurrency_limit import LabConcurrencyLimit
from reward_server.limits.token_bucket import MINUTE_S, LocalTokenBuckets
from reward_server.shared_state.leases import LocalLeases
from reward_server.store.records import LabLimitsRow

STANDARD = Lab(lab_id="acme", key_id="k", per_minute=60)
OTHER = Lab(lab_id="zenith", key_id="z", per_minute=60)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_standard_plan_has_room_for_64_episodes_of_12_turns_a_minute() -> None:
    budget = ComputeBudget(LocalTokenBuckets(Time()))
    for _ in range(64 * 12):
        await budget.charge(STANDARD, 1_000)


async def test_who_took_more_than_there_was_waits_until_it_is_paid_back() -> None:
    time = Time()
    budget = ComputeBudget(LocalTokenBuckets(time))
    await budget.charge(STANDARD, 1_500_000)
    with pytest.raises(ComputeExhausted) as refused:
        await budget.charge(STANDARD, 1)
    await budget.charge(OTHER, 1)
    assert refused.value.retry_after_s == 31
    time.now = 31.0
    await budget.charge(STANDARD, 1)


async def test_a_bucket_is_forgotten_when_it_is_full_and_no_debt_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minutes, "FORGET_BEYOND", 2)
    time = Time()
    buckets = LocalTokenBuckets(time)
    await buckets.charge("owes", 1_000, 10_000)
    await buckets.charge("took little", 1_000, 10)
    time.now = MINUTE_S + 1
    await buckets.charge("newcomer", 1_000, 1)
    assert set(buckets._buckets) == {"owes", "newcomer"}
    assert await buckets.charge("owes", 1_000, 1) > 400


async def test_plans_differ_and_development_has_no_limit() -> None:
    assert STANDARD.characters_per_minute == 1_000_000
    assert Lab(lab_id="a", key_id="k", per_minute=300).characters_per_minute == 5_000_000
    assert Lab(lab_id="a", key_id="k", per_minute=1).characters_per_minute == 1_000_000
    budget = ComputeBudget(LocalTokenBuckets(Time()))
    for _ in range(3):
        await budget.charge(DEVELOPMENT_LAB, 10**9)


async def test_a_lab_holds_three_quarters_of_the_places_and_gets_them_back() -> None:
    places = LabConcurrencyLimit(4, LocalLeases())
    held = [await places.enter(STANDARD) for _ in range(3)]
    with pytest.raises(TooManyAtOnce):
        await places.enter(STANDARD)
    await places.enter(OTHER)
    places.leave(held.pop())
    await places.enter(STANDARD)


async def test_a_lab_and_a_key_may_have_fewer_places() -> None:
    places = LabConcurrencyLimit(100, LocalLeases())
    narrow = Lab(lab_id="acme", key_id="k", per_minute=60, limits=LabLimitsRow(concurrency=2), concurrency=1)
    wide = Lab(lab_id="acme", key_id="w", per_minute=60, limits=LabLimitsRow(concurrency=2))
    held = await places.enter(narrow)
    with pytest.raises(TooManyAtOnce):
        await places.enter(narrow)
    await places.enter(wide)
    with pytest.raises(TooManyAtOnce):
        await places.enter(wide)
    places.leave(held)
    await places.enter(wide)
