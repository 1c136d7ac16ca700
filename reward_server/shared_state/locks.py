"""Locks that replicas share, each with a ticket that says what the holder is doing.

Whoever wants a lock for the same thing waits for the holder and then finds its result; whoever wants it for another
thing is refused at once. Locks save work, they keep nothing safe: that two never both store a turn or an answer is
the database's business. So while Redis is lost nobody waits for anybody.

A holder in Redis renews its lock as long as it lives; the lock of one that died runs out after `LEASE_S`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol

from reward_server.shared_state.redis_link import PREFIX, RedisLink, RedisLost

LEASE_S = 10.0
RENEW_S = 3.0
POLL_S = (0.02, 0.25)
"""The first and the longest pause between looks at a lock that somebody holds."""

_RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


class LockBusy(Exception):  # noqa: N818 (it says what is the case)
    """Somebody holds the lock for another thing."""


class Locks(Protocol):
    """Hands out locks by name."""

    def hold(self, name: str, ticket: str) -> AbstractAsyncContextManager[None]:
        """Hold it for the block, after waiting for whoever does the same; `LockBusy` if somebody does another thing."""


class LocalLocks:
    """Of a process that is alone: what shares its work joins before it comes here, so nobody ever waits."""

    @asynccontextmanager
    async def hold(self, name: str, ticket: str) -> AsyncIterator[None]:
        """Nobody else is there."""
        yield


class RedisLocks:
    """Locks in Redis."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    @asynccontextmanager
    async def hold(self, name: str, ticket: str) -> AsyncIterator[None]:
        """As above; without a lock where Redis is lost."""
        key, value = f"{PREFIX}lock:{name}", f"{ticket} {secrets.token_hex(8)}"
        if not await self._take(key, value, ticket):
            yield
            return
        renewing = asyncio.create_task(self._renew(key, value))
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            with suppress(RedisLost):
                await self._link.ask(lambda redis: redis.eval(_RELEASE, 1, key, value))

    async def _take(self, key: str, value: str, ticket: str) -> bool:
        """True if the lock is ours; False where Redis is lost."""
        pause, longest = POLL_S
        try:
            while not await self._link.ask(lambda redis: redis.set(key, value, nx=True, px=round(LEASE_S * 1000))):
                holder = await self._link.ask(lambda redis: redis.get(key))
                if holder is not None and str(holder).split(" ", 1)[0] != ticket:
                    raise LockBusy
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)
        except RedisLost:
            return False
        return True

    async def _renew(self, key: str, value: str) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with suppress(RedisLost):
                await self._link.ask(lambda redis: redis.eval(_RENEW, 1, key, value, round(LEASE_S * 1000)))
