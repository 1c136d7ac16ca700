"""State that replicas share: in Redis where there is one, else within the process, with the same interfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from reward_server.auth.failed_keys import FailedKeys, LocalFailedKeys, RedisFailedKeys
from reward_server.limits.rate_limiter import RateLimiter
from reward_server.limits.token_bucket import LocalTokenBuckets, RedisTokenBuckets, TokenBuckets
from reward_server.shared_state.cache import Cache, LocalCache, RedisCache
from reward_server.shared_state.events import Events, LocalEvents, RedisEvents
from reward_server.shared_state.leases import Leases, LocalLeases, RedisLeases
from reward_server.shared_state.locks import LocalLocks, Locks, RedisLocks
from reward_server.shared_state.redis_link import DEADLINE_S, RedisLink


@dataclass(frozen=True)
class Shared:
    """Rates, budgets of the minute, leases, keys that are no good, locks, events, what is remembered for a while."""

    rates: RateLimiter
    locks: Locks
    events: Events
    cache: Cache
    compute_buckets: TokenBuckets
    leases: Leases
    failed_keys: FailedKeys
    link: RedisLink | None = None

    @classmethod
    def local(cls) -> Self:
        """For a server that is alone."""
        return cls(
            RateLimiter(),
            LocalLocks(),
            LocalEvents(),
            LocalCache(),
            LocalTokenBuckets(),
            LocalLeases(),
            LocalFailedKeys(),
        )

    @classmethod
    def through(
        cls, url: str, told: Callable[[bool], None] = lambda _lost: None, *, deadline_s: float = DEADLINE_S
    ) -> Self:
        """For replicas with a Redis with `deadline_s` to answer; `told` hears when it is lost and when it is back."""
        link = RedisLink(url, deadline_s=deadline_s, told=told)
        return cls(
            RateLimiter(link),
            RedisLocks(link),
            RedisEvents(link),
            RedisCache(link),
            RedisTokenBuckets(link),
            RedisLeases(link),
            RedisFailedKeys(link),
            link,
        )
