"""The time of day, handed in so that expiry and limits can be tested without waiting.

All moments are timezone-aware and in UTC. Durations are not measured here: use `time.monotonic`.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, time, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The present moment, aware and in UTC."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present moment."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        """The moment it was last moved to."""
        return self._now

    def advance(self, step: timedelta) -> None:
        """Move it by `step`."""
        self._now += step


def to_iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a `Z`, as the wire wants it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def next_midnight(now: datetime) -> datetime:
    """The moment when the next day (UTC) begins."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)


def until_midnight_s(now: datetime) -> int:
    """Seconds until the next day (UTC), rounded up."""
    return max(1, math.ceil((next_midnight(now) - now).total_seconds()))
