"""The retry policy alone: pauses, deadlines, `Retry-After`."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from trainer_client import BadRequest, DeadlineExceeded, RateLimited, RetryPolicy, Unavailable
from trainer_client.retry import Attempts, parse_retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def busy(retry_after_s: float | None = None) -> Unavailable:
    return Unavailable("busy", code="busy", retry_after_s=retry_after_s)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 2.5 ", 2.5),
        ("0", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("-3", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


def test_pauses_grow_to_the_ceiling_and_are_random_below_it() -> None:
    policy = RetryPolicy(attempts=100, deadline_s=None, first_pause_s=1.0, longest_pause_s=8.0)
    attempts = Attempts(policy, Clock(), random.Random(1))
    pauses = [attempts.pause_s(busy()) for _ in range(60)]
    for pause, ceiling in zip(pauses, [1.0, 2.0, 4.0, *[8.0] * 57], strict=True):
        assert 0.0 <= pause <= ceiling
    assert max(pauses) > 4.0
    assert len(set(pauses)) == 60


def test_a_servers_wait_is_the_least_wait() -> None:
    attempts = Attempts(RetryPolicy(attempts=9, first_pause_s=1.0), Clock(), random.Random(1))
    assert 10.0 <= attempts.pause_s(busy(10.0)) <= 11.0


def test_the_last_attempts_failure_is_raised() -> None:
    attempts = Attempts(RetryPolicy(attempts=2, first_pause_s=0.0), Clock(), random.Random(1))
    attempts.pause_s(busy())
    failure = RateLimited("slow down", code="rate_limited")
    with pytest.raises(RateLimited) as caught:
        attempts.pause_s(failure)
    assert caught.value is failure


def test_what_is_not_retryable_is_raised_at_once() -> None:
    attempts = Attempts(RetryPolicy(), Clock(), random.Random(1))
    with pytest.raises(BadRequest):
        attempts.pause_s(BadRequest("no", code="bad_request"))


def test_an_attempt_gets_what_is_left_of_the_deadline() -> None:
    clock = Clock()
    attempts = Attempts(RetryPolicy(attempt_timeout_s=10, deadline_s=15), clock, random.Random(1))
    assert attempts.timeout_s() == 10
    clock.now += 9
    assert attempts.timeout_s() == 6
    clock.now += 6
    with pytest.raises(DeadlineExceeded):
        attempts.timeout_s()


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"attempt_timeout_s": 0}, {"deadline_s": -1}, {"first_pause_s": -0.1}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must|cannot"):
        RetryPolicy(**wrong)  # type: ignore[arg-type]
