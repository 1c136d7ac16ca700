"""Addresses that send keys that are no good: after so many in a minute they are told to wait.

Good keys of the same address are not held up: whoever is behind the same proxy did nothing wrong. The counts lie in
Redis, if there is one, else in this process; while Redis is lost each process counts for itself.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from reward_server.auth.networks import network_of
from reward_server.errors import TooManyFailedKeys
from reward_server.shared_state.redis_link import PREFIX, RedisLink, RedisLost

MOST_PER_MINUTE = 20
WINDOW_S = 60.0
MOST_ADDRESSES = 10_000
"""Remembered in a process; the one that failed first is forgotten then."""

# The minute begins with the first failure, and ends by itself: Redis forgets the address then.
_COUNT = """
local count = redis.call('incr', KEYS[1])
if count == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end
return {count, redis.call('pttl', KEYS[1])}
"""


class FailedKeys(Protocol):
    """Counts by address; of IPv6 by the /64 that a host has."""

    async def failed(self, address: str) -> bool:
        """Count one; whether it is the one that uses up what the address had, once in a minute.

        Raises:
            TooManyFailedKeys: there were too many before.
        """


class LocalFailedKeys:
    """Of this process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    async def failed(self, address: str) -> bool:
        """As above."""
        now, network = self._monotonic(), network_of(address)
        began, count = self._seen.get(network, (now, 0))
        if now - began >= WINDOW_S:
            began, count = now, 0
        self._seen[network] = (began, count + 1)
        self._seen.move_to_end(network)
        if len(self._seen) > MOST_ADDRESSES:
            self._seen.popitem(last=False)
        return _is_last(count + 1, WINDOW_S - (now - began))


class RedisFailedKeys:
    """Of all replicas on a Redis; of this process while that is lost."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._local = LocalFailedKeys()

    async def failed(self, address: str) -> bool:
        """As above."""
        with suppress(RedisLost):
            count, left_ms = await self._link.run(
                _COUNT, (f"{PREFIX}failed_keys:{network_of(address)}",), (str(round(WINDOW_S * 1000)),)
            )
            return _is_last(int(count), int(left_ms) / 1000)
        return await self._local.failed(address)


def _is_last(count: int, left_s: float) -> bool:
    """True if this failure uses up what there was; `TooManyFailedKeys` beyond it."""
    if count > MOST_PER_MINUTE:
        raise TooManyFailedKeys(retry_after_s=max(0, math.floor(left_s)) + 1)
    return count == MOST_PER_MINUTE
