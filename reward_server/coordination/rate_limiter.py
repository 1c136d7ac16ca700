"""Requests per minute and key, over a sliding window.

A refused request is not counted, so a client that waits as long as it is told gets through. The counts live in
this process; another storage of the `limits` package can be handed in to share them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter


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

    def __init__(self, storage: Storage | None = None) -> None:
        self._strategy = SlidingWindowCounterRateLimiter(MemoryStorage() if storage is None else storage)

    async def hit(self, key_id: str, per_minute: int) -> Decision:
        """Count a request of this key, if its limit allows one more."""
        item = _per_minute(per_minute)
        allowed = await self._strategy.hit(item, key_id)
        stats = await self._strategy.get_window_stats(item, key_id)
        return Decision(
            allowed=allowed,
            limit=per_minute,
            remaining=stats.remaining if allowed else 0,
            reset_unix=math.ceil(stats.reset_time),
            # Rounded up and past the moment itself: a client that comes back exactly then must not be refused.
            retry_after_s=max(0, math.floor(stats.reset_time - time.time())) + 1,
        )


@lru_cache(maxsize=1024)
def _per_minute(amount: int) -> RateLimitItem:
    return RateLimitItemPerMinute(amount)
