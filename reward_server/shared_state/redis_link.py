"""The one way to Redis: bounded in time, and out of the way while Redis is lost.

Whoever asks gets an answer or `RedisLost` within `LABS_REDIS_DEADLINE_S`. After a failure nothing is asked for two
seconds, so that a Redis that hangs holds up one request in two seconds for that long, and the others not at all; the
first answer after that ends it. What to do meanwhile is decided by whoever asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from reward_server.errors import ConfigurationError
from reward_server.logs.logger import get_logger

if TYPE_CHECKING:
    from redis.asyncio import Redis

DEADLINE_S = 0.25
REST_S = 2.0
PREFIX = "labs:"
"""Of every key and channel: a Redis may serve others, too."""

T = TypeVar("T")
log = get_logger(__name__)


class RedisLost(Exception):  # noqa: N818 (it says what has happened)
    """Redis does not answer, or has not answered a moment ago."""


class RedisLink:
    """A client that gives up quickly."""

    def __init__(
        self,
        url: str,
        *,
        deadline_s: float = DEADLINE_S,
        told: Callable[[bool], None] = lambda _lost: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`deadline_s` is the longest wait for an answer; `told` hears whether Redis is lost, whenever that changes."""
        self.client: Redis = _client(url, deadline_s)
        self._told = told
        self._monotonic = monotonic
        self._rest_until = 0.0
        self._lost = False

    async def ask(self, question: Callable[[Redis], Awaitable[T]]) -> T:
        """Ask Redis; `RedisLost` if it does not answer."""
        from redis.exceptions import RedisError

        if self._monotonic() < self._rest_until:
            raise RedisLost
        cancelled = _cancelled_since()
        try:
            answer = await question(self.client)
        except (RedisError, OSError) as error:
            if cancelled():
                raise asyncio.CancelledError from error
            self._rest_until = self._monotonic() + REST_S
            self._note(lost=True)
            raise RedisLost from error
        if cancelled():
            raise asyncio.CancelledError
        self._note(lost=False)
        return answer

    async def ping(self) -> None:
        """`RedisLost` if it does not answer."""
        await self.ask(lambda redis: redis.echo("labs"))

    async def run(self, script: str, names: Sequence[str], values: Sequence[str]) -> Any:
        """Run a Lua script on these keys and values, in one go; `RedisLost` if Redis does not answer."""
        return await self.ask(lambda redis: redis.eval(script, len(names), *names, *values))

    @property
    def lost(self) -> bool:
        """True if the last question was not answered."""
        return self._lost

    async def close(self) -> None:
        """Close the connections."""
        await self.client.aclose()

    def _note(self, *, lost: bool) -> None:
        if lost is self._lost:
            return
        self._lost = lost
        self._told(lost)
        # Not the error: its text may hold the URL.
        (log.warning if lost else log.info)("redis_lost" if lost else "redis_back")


def _cancelled_since() -> Callable[[], bool]:
    """The test that the task has been cancelled since now: the driver may answer, or fail, instead of ending."""
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    return lambda: task is not None and task.cancelling() > before


def check_redis_url(url: str) -> None:
    """`ConfigurationError` if it is none; the error does not repeat it, it may hold a password."""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigurationError("This is not a URL of Redis, such as redis://127.0.0.1:6379/0.")


def _client(url: str, deadline_s: float) -> Redis:
    """One that waits briefly, and does not try again by itself."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    check_redis_url(url)
    return Redis.from_url(
        url,
        socket_timeout=deadline_s,
        socket_connect_timeout=deadline_s,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
    )
