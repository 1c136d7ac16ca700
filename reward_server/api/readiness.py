"""Readiness of this server, dependency by dependency; the answer is kept for a moment.

Probes come without a key, and looking costs a write to the disk: however many ask, there is one look at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from reward_server.errors import StoreUnavailable
from reward_server.shared_state.redis_link import RedisLink, RedisLost
from reward_server.store.store import Store
from reward_server.telemetry.loop_lag import LoopLag

KEPT_S = 1.0
STORE_DEADLINE_S = 4.0
MOST_QUEUE_S = 30.0
"""The longest that some lab's work may wait for its turn to be scored."""
MOST_LAG_S = 5.0

OK = "ok"
REDIS = "redis"
"""Named where there is one; requests are served without it, too."""


class Queue(Protocol):
    """Work that waits for its turn."""

    @property
    def waiting_s(self) -> float:
        """The longest that somebody has waited for a turn."""


@dataclass
class ReadinessChecks:
    """Looks at what serving needs."""

    store: Store
    queue: Queue
    loop_lag: LoopLag
    fixed: Mapping[str, str]
    """What is known since the start: the word for each."""
    redis: RedisLink | None = None
    monotonic: Callable[[], float] = time.monotonic
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _seen: dict[str, str] = field(default_factory=dict)
    _seen_at: float = float("-inf")

    async def look(self) -> Mapping[str, str]:
        """One word for each dependency; `ok` if it is."""
        async with self._lock:
            if self.monotonic() - self._seen_at >= KEPT_S:
                self._seen = {
                    "store": await self._store_word(),
                    **self.fixed,
                    "scoring": OK if self.queue.waiting_s < MOST_QUEUE_S else "behind",
                    "event_loop": OK if self.loop_lag.worst_s < MOST_LAG_S else "late",
                }
                if self.redis is not None:
                    self._seen[REDIS] = await _redis_word(self.redis)
                self._seen_at = self.monotonic()
        return self._seen

    async def _store_word(self) -> str:
        try:
            async with asyncio.timeout(STORE_DEADLINE_S):
                await self.store.ping()
                await self.store.probe()
        except (StoreUnavailable, TimeoutError):
            return "unavailable"
        return OK


async def _redis_word(redis: RedisLink) -> str:
    try:
        await redis.ping()
    except RedisLost:
        return "lost"
    return OK
