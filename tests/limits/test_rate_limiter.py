"""The limiter: as many as the plan says, and who waits as long as told gets through."""

from __future__ import annotations

import asyncio

import pytest

from reward_server.limits.rate_limiter import LocalRates, RateDecision, RateLimiter


class Time:
    """Replaces `time.time`, which the limiter's storage reads."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr("time.time", clock)
    return clock


async def hit(limiter: RateLimiter, times: int, per_minute: int = 60, key: str = "k") -> list[RateDecision]:
    return [await limiter.hit(key, per_minute) for _ in range(times)]


async def test_the_limit_is_exact_and_counted_down(clock: Time) -> None:
    decisions = await hit(RateLimiter(), 61)
    assert [decision.allowed for decision in decisions] == [True] * 60 + [False]
    assert [decision.remaining for decision in decisions] == [*range(59, -1, -1), 0]
    assert {decision.limit for decision in decisions} == {60}


async def test_many_at_once_get_no_more_than_the_limit(clock: Time) -> None:
    limiter = RateLimiter()
    decisions = await asyncio.gather(*(limiter.hit("k", 10) for _ in range(100)))
    assert sum(decision.allowed for decision in decisions) == 10


async def test_who_waits_as_long_as_told_gets_through_again_and_again(clock: Time) -> None:
    limiter = RateLimiter()
    clock.now += 17.3
    await hit(limiter, 60)
    for _ in range(200):
        decision = await limiter.hit("k", 60)
        if not decision.allowed:
            clock.now += decision.retry_after_s
            assert (await limiter.hit("k", 60)).allowed


async def test_the_reset_is_not_in_the_past_and_within_a_minute(clock: Time) -> None:
    limiter = RateLimiter()
    clock.now += 0.5
    for decision in await hit(limiter, 61):
        assert clock.now <= decision.reset_unix <= clock.now + 61
        assert 1 <= decision.retry_after_s <= 61


async def test_the_window_slides_so_a_minute_cannot_be_had_twice_around_its_end(clock: Time) -> None:
    limiter = RateLimiter()
    clock.now += 59.0
    await hit(limiter, 60)
    clock.now += 2.0
    allowed = sum(decision.allowed for decision in await hit(limiter, 60))
    assert allowed <= 2


async def test_a_refused_request_does_not_count(clock: Time) -> None:
    limiter = RateLimiter()
    await hit(limiter, 600)
    clock.now += 120
    assert all(decision.allowed for decision in await hit(limiter, 60))


async def test_keys_do_not_share_a_limit(clock: Time) -> None:
    limiter = RateLimiter()
    await hit(limiter, 3, per_minute=2, key="a")
    assert (await limiter.hit("b", 2)).allowed
    assert not (await limiter.hit("a", 2)).allowed


async def test_a_crowd_of_other_keys_clears_nobodys_count(clock: Time) -> None:
    """A limiter that holds so many keys and forgets the oldest lets an attacker wash a count away."""
    limiter = RateLimiter()
    await hit(limiter, 2, per_minute=2, key="victim")
    for number in range(12_000):
        await limiter.hit(f"other-{number}", 60)
    assert not (await limiter.hit("victim", 2)).allowed


async def test_who_waits_for_one_place_is_not_told_to_wait_a_whole_window(clock: Time) -> None:
    limiter = RateLimiter()
    for _ in range(60):
        await limiter.hit("k", 60)
        clock.now += 1.0
    decisions = await hit(limiter, 60)
    refused = next(decision for decision in decisions if not decision.allowed)
    assert refused.retry_after_s <= 2


async def test_a_limit_that_is_changed_holds_at_once(clock: Time) -> None:
    limiter = RateLimiter()
    await hit(limiter, 10, per_minute=60)
    assert not (await limiter.hit("k", 10)).allowed
    assert (await limiter.hit("k", 11)).remaining == 0


async def test_keys_that_nobody_uses_any_more_are_forgotten(clock: Time) -> None:
    rates = LocalRates()
    for number in range(100):
        rates.hit(f"key-{number}", 60)
    clock.now += 130
    rates.hit("another", 60)
    assert list(rates._counts) == ["another"]
