"""The policy of retries: when a call is tried again, and how long it waits. The one place that decides.

Both clients send through an `Attempts`: it hands out the time an attempt may take and answers a
failure with a pause, or raises it. A call keeps its idempotency key over all attempts, so trying
again never costs a second turn. Only errors marked `retryable` are tried again.
"""

from __future__ import annotations

import email.utils
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum

from trainer_client.errors import DeadlineExceeded, LabsError


class NotGiven(Enum):
    """The type of an argument that was left out, where None means something."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN = NotGiven.NOT_GIVEN


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of one logical call."""

    attempts: int = 8
    """How often a request is sent at most."""
    attempt_timeout_s: float | None = 60.0
    """How long one attempt may take, from connecting to the last byte. None: as long as the whole call."""
    deadline_s: float | None = 300.0
    """How long the whole call may take, pauses included. None: no limit."""
    first_pause_s: float = 0.2
    """Upper end of the first random pause; doubles with every failure."""
    longest_pause_s: float = 20.0
    """Upper end of any random pause. A server's `Retry-After` may ask for more."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts must be at least 1")
        if any(limit is not None and limit <= 0 for limit in (self.attempt_timeout_s, self.deadline_s)):
            raise ValueError("timeouts must be positive")
        if self.first_pause_s < 0 or self.longest_pause_s < 0:
            raise ValueError("pauses cannot be negative")

    def changed(
        self,
        timeout: float | NotGiven | None = NOT_GIVEN,
        max_retries: int | None = None,
        deadline_s: float | NotGiven | None = NOT_GIVEN,
    ) -> RetryPolicy:
        """The same with other limits. A longer `timeout` stretches the deadline, so that every attempt may use it."""
        policy = self if max_retries is None else replace(self, attempts=max_retries + 1)
        if not isinstance(timeout, NotGiven):
            policy = replace(policy, attempt_timeout_s=timeout)
            if timeout is None:
                policy = replace(policy, deadline_s=None)
            elif policy.deadline_s is not None:
                policy = replace(policy, deadline_s=max(policy.deadline_s, timeout * policy.attempts))
        return policy if isinstance(deadline_s, NotGiven) else replace(policy, deadline_s=deadline_s)


class Attempts:
    """The attempts of one logical call."""

    def __init__(self, policy: RetryPolicy, clock: Callable[[], float], random_source: random.Random) -> None:
        self._policy = policy
        self._clock = clock
        self._random = random_source
        self._failures = 0
        self._ends_at = None if policy.deadline_s is None else clock() + policy.deadline_s

    @property
    def failures(self) -> int:
        """The number of failures so far."""
        return self._failures

    def timeout_s(self) -> float | None:
        """Seconds the next attempt may take; raises when the call's deadline has passed."""
        if self._ends_at is None:
            return self._policy.attempt_timeout_s
        left = self._ends_at - self._clock()
        if left <= 0:
            raise DeadlineExceeded("The call's deadline has passed.", code="deadline_exceeded")
        longest = self._policy.attempt_timeout_s
        return left if longest is None else min(longest, left)

    def pause_s(self, failure: LabsError) -> float:
        """Seconds to wait before the next attempt; raises `failure` when there is to be none."""
        self._failures += 1
        if not failure.retryable or self._failures >= self._policy.attempts:
            raise failure
        ceiling = min(self._policy.longest_pause_s, self._policy.first_pause_s * 2.0 ** (self._failures - 1))
        # Full jitter; on top of Retry-After too, so that a hundred episodes told to wait do not return as one.
        pause = (failure.retry_after_s or 0.0) + self._random.uniform(0.0, ceiling)
        if self._ends_at is not None and self._clock() + pause >= self._ends_at:
            raise failure
        return pause


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from a `Retry-After` header: a number of seconds or an HTTP date. Nonsense is None."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
