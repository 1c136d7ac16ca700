"""Places under names that hold so many at most: who takes one holds it until it is given back.

They lie in Redis, if there is one, else in this process; while Redis is lost each process counts its own. In Redis a
place is a lease: its holder renews it as long as it lives, and that of a replica that died runs out after `LEASE_S`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from reward_server.shared_state.redis_link import PREFIX, RedisLink, RedisLost

LEASE_S = 10.0
RENEW_S = 3.0

# A sorted set for each name: tokens of the holders, by the moment their lease runs out on Redis's clock.
_CLOCK = """
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""
_TAKE = f"""{_CLOCK}
for i, name in ipairs(KEYS) do
  redis.call('zremrangebyscore', name, '-inf', now)
  -- The token may have been renewed before it is taken: it does not count against itself.
  redis.call('zrem', name, ARGV[2])
  if redis.call('zcard', name) >= tonumber(ARGV[2 + i]) then return 0 end
end
for _, name in ipairs(KEYS) do
  redis.call('zadd', name, now + ARGV[1], ARGV[2])
  redis.call('pexpire', name, ARGV[1])
end
return 1
"""
_RENEW = f"""{_CLOCK}
for i, name in ipairs(KEYS) do
  redis.call('zadd', name, now + ARGV[1], ARGV[1 + i])
  redis.call('pexpire', name, ARGV[1])
end
return 1
"""
_END = """
for i, name in ipairs(KEYS) do redis.call('zrem', name, ARGV[i]) end
return 1
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """A place under each of these names."""

    names: tuple[str, ...]
    token: str = ""
    """Names the holder in Redis."""


class Leases(Protocol):
    """Hands out places."""

    async def take(self, limits: Mapping[str, int]) -> Lease | None:
        """A place under each name; None where one of them has no more."""

    def end(self, lease: Lease) -> None:
        """Give the places back."""


class LocalLeases:
    """In the process."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    async def take(self, limits: Mapping[str, int]) -> Lease | None:
        """As above."""
        if any(self._held[name] >= most for name, most in limits.items()):
            return None
        self._held.update(limits.keys())
        return Lease(tuple(limits))

    def end(self, lease: Lease) -> None:
        """As above."""
        self._held.subtract(lease.names)
        self._held = +self._held


class RedisLeases:
    """In Redis, and in the process besides, whose count is what holds while Redis is lost.

    What ends is told to Redis by `keep`, a moment later and many at once: no answer waits for it.
    """

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._local = LocalLeases()
        self._living: dict[str, Lease] = {}
        self._ended: list[Lease] = []
        self._woken = asyncio.Event()

    async def take(self, limits: Mapping[str, int]) -> Lease | None:
        """As above."""
        local = await self._local.take(limits)
        if local is None or not local.names:
            return local
        lease = replace(local, token=secrets.token_hex(8))
        # Before Redis is asked: a lease that it does not hear of now is told to it when it is back.
        self._living[lease.token] = lease
        values = (_lease_ms(), lease.token, *(str(most) for most in limits.values()))
        taken = False
        try:
            taken = bool(await self._link.run(_TAKE, [_in_redis(name) for name in lease.names], values))
        except RedisLost:
            taken = True
        finally:
            if not taken:
                self.end(lease)
        return lease if taken else None

    def end(self, lease: Lease) -> None:
        """As above."""
        self._local.end(lease)
        if self._living.pop(lease.token, None) is not None:
            self._ended.append(lease)
            self._woken.set()

    async def keep(self) -> None:
        """Renew what lives and tell what ended, until cancelled. One after the other: what ended is not renewed."""
        renew_at = time.monotonic() + RENEW_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, renew_at - time.monotonic())):
                    await self._woken.wait()
            self._woken.clear()
            ended, self._ended = self._ended, []
            await self._tell(_END, ended)
            if time.monotonic() >= renew_at:
                renew_at = time.monotonic() + RENEW_S
                await self._tell(_RENEW, list(self._living.values()), _lease_ms())

    async def _tell(self, script: str, leases: list[Lease], *first: str) -> None:
        """Those that Redis does not hear of run out there."""
        each = [(_in_redis(name), lease.token) for lease in leases for name in lease.names]
        if each:
            with suppress(RedisLost):
                await self._link.run(script, [name for name, _ in each], (*first, *(token for _, token in each)))


def _in_redis(name: str) -> str:
    return f"{PREFIX}places:{name}"


def _lease_ms() -> str:
    return str(round(LEASE_S * 1000))
