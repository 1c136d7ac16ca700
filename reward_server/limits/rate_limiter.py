"""Requests per minute and key, over a sliding window.

A refused request is not counted, so a client that waits as long as it is told gets through. The counts live in
Redis, if there is one, else in this process; while Redis is lost each process counts for itself.

What counts is the present minute and as much of the one before as the window still covers: two numbers for each key.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import RedisStorage, Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from reward_server.shared_state.redis_link import PREFIX, RedisLink, RedisLost


@dataclass(frozen=True, slots=True)
class RateDecision:
    """The decision on a request, and what the client is told about its limit."""

    allowed: bool
    limit: int
    remaining: int
    reset_unix: int
    """When the next request becomes free, in whole Unix seconds."""
    retry_after_s: int


MINUTE_S = 60


@dataclass(slots=True)
class _Count:
    """Of a key's requests: in a minute since 1970, and in the one before."""

    minute: int
    present: int = 0
    before: int = 0

    def move_to(self, minute: int) -> None:
        """Time has gone on."""
        if minute != self.minute:
            self.before = self.present if minute == self.minute + 1 else 0
            self.minute, self.present = minute, 0


class LocalRates:
    """Counts in this process. (The memory of `limits` looks at every key there is at each request of one.)"""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._tidied = 0
        """The minute in which keys were last forgotten that nobody used any more."""

    def hit(self, key_id: str, per_minute: int) -> RateDecision:
        """Count a request of this key, if its limit allows one more."""
        now = time.time()
        minute, gone_s = int(now // MINUTE_S), now % MINUTE_S
        self._tidy(minute)
        count = self._counts.setdefault(key_id, _Count(minute))
        count.move_to(minute)
        left_s = MINUTE_S - gone_s
        used = math.floor(count.before * left_s / MINUTE_S) + count.present
        allowed = used < per_minute
        count.present += allowed
        # A place becomes free when the next of the minute before leaves the window; else when this minute is over.
        next_s = left_s % (MINUTE_S / count.before) if count.before else left_s
        return _decision(per_minute, per_minute - used - 1, now + next_s, allowed=allowed)

    def _tidy(self, minute: int) -> None:
        if minute != self._tidied:
            self._tidied = minute
            self._counts = {key: count for key, count in self._counts.items() if minute - count.minute < 2}


class RateLimiter:
    """Counts requests."""

    def __init__(self, link: RedisLink | None = None) -> None:
        self._link = link
        self._local = LocalRates()
        self._shared = None if link is None else SlidingWindowCounterRateLimiter(_in_redis(link))

    async def hit(self, key_id: str, per_minute: int) -> RateDecision:
        """Count a request of this key, if its limit allows one more."""
        if self._link is not None and self._shared is not None:
            shared = self._shared
            with suppress(RedisLost):
                return await self._link.ask(lambda _redis: _hit(shared, key_id, per_minute))
        return self._local.hit(key_id, per_minute)


async def _hit(strategy: SlidingWindowCounterRateLimiter, key_id: str, per_minute: int) -> RateDecision:
    item = _per_minute(per_minute)
    allowed = await strategy.hit(item, key_id)
    stats = await strategy.get_window_stats(item, key_id)
    return _decision(per_minute, stats.remaining, stats.reset_time, allowed=allowed)


def _decision(per_minute: int, remaining: int, free_at: float, *, allowed: bool) -> RateDecision:
    return RateDecision(
        allowed=allowed,
        limit=per_minute,
        remaining=remaining if allowed else 0,
        reset_unix=math.ceil(free_at),
        # Rounded up and past the moment itself: a client that comes back exactly then must not be refused.
        retry_after_s=max(0, math.floor(free_at - time.time())) + 1,
    )


def _in_redis(link: RedisLink) -> Storage:
    pool: Any = link.client.connection_pool
    # The URL decides nothing: the pool is the link's own, with its patience.
    return RedisStorage("async+redis://", implementation="redispy", key_prefix=f"{PREFIX}rate", connection_pool=pool)


@lru_cache(maxsize=1024)
def _per_minute(amount: int) -> RateLimitItem:
    return RateLimitItemPerMinute(amount)
