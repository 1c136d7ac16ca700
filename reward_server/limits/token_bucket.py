"""Token buckets, one for each lab, that fill with characters steadily up to a minute's worth.

A request may take more than is left, which the lab then owes: however large a request may be, there comes a time for
it. The buckets lie in Redis, if there is one, else in this process; while Redis is lost each process has its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from reward_server.shared_state.redis_link import PREFIX, RedisLink, RedisLost

MINUTE_S = 60.0
FORGET_BEYOND = 10_000
"""Labs; those whose bucket is full again are forgotten then, which changes nothing for them: debts are kept."""

# Keys of one lab may have plans of their own: each fills the lab's bucket at its own pace when it is used, so what it
# holds is worked out anew at every charge, a refused one too. Redis forgets a bucket when it would be full again.
# Redis's clock counts, which all replicas share.
_CHARGE = """
local clock = redis.call('time')
local now = clock[1] + clock[2] / 1000000
local most, characters, minute = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('hmget', KEYS[1], 'level', 'seen')
local level, seen = tonumber(kept[1] or most), tonumber(kept[2] or now)
level = math.min(most, level + math.max(0, now - seen) * most / minute)
local found = level
if level > 0 then level = level - characters end
redis.call('hset', KEYS[1], 'level', string.format('%.6f', level), 'seen', string.format('%.6f', now))
redis.call('pexpire', KEYS[1], math.ceil((most - level) * minute / most * 1000) + 1000)
return string.format('%.6f', found)
"""


class TokenBuckets(Protocol):
    """Token buckets of all labs."""

    async def charge(self, lab_id: str, most: int, characters: int) -> int:
        """Take characters from a bucket that holds so many at most; 0, or the seconds to wait where there are none."""


@dataclass(slots=True)
class _Bucket:
    most: int
    level: float
    seen_s: float

    def level_at(self, now: float) -> float:
        """The level by then, filling at the pace of its last charge."""
        return min(float(self.most), self.level + (now - self.seen_s) * self.most / MINUTE_S)


class LocalTokenBuckets:
    """Token buckets in this process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._buckets: dict[str, _Bucket] = {}

    async def charge(self, lab_id: str, most: int, characters: int) -> int:
        """As above."""
        now = self._monotonic()
        bucket = self._buckets.get(lab_id)
        if bucket is None:
            self._forget_full(now)
            bucket = self._buckets[lab_id] = _Bucket(most, float(most), now)
        bucket.most = most
        bucket.level = level = bucket.level_at(now)
        bucket.seen_s = now
        if level > 0:
            bucket.level -= characters
        return _wait_s(level, most)

    def _forget_full(self, now: float) -> None:
        if len(self._buckets) >= FORGET_BEYOND:
            self._buckets = {
                name: bucket for name, bucket in self._buckets.items() if bucket.level_at(now) < bucket.most
            }


class RedisTokenBuckets:
    """Token buckets in Redis; in this process while that is lost."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._local = LocalTokenBuckets()

    async def charge(self, lab_id: str, most: int, characters: int) -> int:
        """As above."""
        values = (str(most), str(characters), str(MINUTE_S))
        with suppress(RedisLost):
            return _wait_s(float(await self._link.run(_CHARGE, (f"{PREFIX}minute:{lab_id}",), values)), most)
        return await self._local.charge(lab_id, most, characters)


def _wait_s(level: float, most: int) -> int:
    """Until there is something in a bucket that holds this."""
    return 0 if level > 0 else math.floor(-level * MINUTE_S / most) + 1
