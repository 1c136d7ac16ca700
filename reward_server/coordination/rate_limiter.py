"""Requests per minute and key, over a sliding window.

A refused request is not counted, so a client that waits as long as it is told gets through. The counts live in
Redis, if there is one, else in this process; while Redis is lost each process counts for itself.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from reward_server.coordination.redis_link import PREFIX, Lost, RedisLink


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request may pass, and what the client is told about its limit."""

    allowed: bool
    limit: int
    remaining: int
    reset_unix: int
    """When the next request becomes free, in whole Unix seconds."""
    retry_after_s: int


class RateLimiter:
    """Counts requests."""

    def __init__(self, link: RedisLink | None = None) -> None:
        self._link = link
        self._local = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = None if link is None else SlidingWindowCounterRateLimiter(_in_redis(link))

    async def hit(self, key_id: str, per_minute: int) -> Decision:
        """Count a request of this key, if its limit allows one more."""
        if self._link is not None and self._shared is not None:
            shared = self._shared
            with suppress(Lost):
                return await self._link.ask(lambda _redis: _hit(shared, key_id, per_minute))
        return await _hit(self._local, key_id, per_minute)


async def _hit(strategy: SlidingWindowCounterRateLimiter, key_id: str, per_minute: int) -> Decision:
    item = _per_minute(per_minute)
    allowed = await strategy.hit(item, key_id)
    stats = await strategy.get_window_stats(item, key_id)
    return Decision(
        allowed=allowed,
        limit=per_minute,
        remaining=stats.remaining if allowed else 0,
        reset_unix=math.ceil(stats.reset_time),
        # Rounded up and past the moment itself: a client that comes back exactly then must not be refused.
        retry_after_s=max(0, math.floor(stats.reset_time - time.time())) + 1,
    )


def _in_redis(link: RedisLink) -> Storage:
    pool: Any = link.client.connection_pool
    # The URL decides nothing: the pool is the link's own, with its patience.
    return RedisStorage("async+redis://", implementation="redispy", key_prefix=f"{PREFIX}rate", connection_pool=pool)


@lru_cache(maxsize=1024)
def _per_minute(amount: int) -> RateLimitItem:
    return RateLimitItemPerMinute(amount)
