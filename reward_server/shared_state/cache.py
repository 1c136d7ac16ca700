"""A cache that replicas share for a while. Nothing here is the only copy of anything."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from reward_server.shared_state.redis_link import PREFIX, RedisLink, RedisLost

MAX_ENTRIES = 10_000


class Cache(Protocol):
    """Short texts by name."""

    async def get(self, name: str) -> str | None:
        """The text under this name, unless it has run out or was forgotten."""

    async def put(self, name: str, text: str, lifetime_s: float) -> None:
        """Remember a text for so long."""


class LocalCache:
    """In the process; the oldest go first when it is full."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._entries: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def get(self, name: str) -> str | None:
        """As above."""
        found = self._entries.get(name)
        return None if found is None or self._monotonic() >= found[0] else found[1]

    async def put(self, name: str, text: str, lifetime_s: float) -> None:
        """As above."""
        self._entries[name] = (self._monotonic() + lifetime_s, text)
        self._entries.move_to_end(name)
        if len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)


class RedisCache:
    """In Redis; empty while Redis is lost."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def get(self, name: str) -> str | None:
        """As above."""
        try:
            found = await self._link.ask(lambda redis: redis.get(f"{PREFIX}cache:{name}"))
        except RedisLost:
            return None
        return None if found is None else str(found)

    async def put(self, name: str, text: str, lifetime_s: float) -> None:
        """As above."""
        with suppress(RedisLost):
            await self._link.ask(lambda redis: redis.set(f"{PREFIX}cache:{name}", text, px=round(lifetime_s * 1000)))
