"""Word that replicas send each other. It may get lost: what matters is in the database a moment later, too."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from reward_server.shared_state.redis_link import PREFIX, REST_S, RedisLink, RedisLost

KEY_CHANGED = "key-changed"
"""With the id of a key that was revoked."""
LAB_CHANGED = "lab-changed"
"""With the id of a lab that has other limits now."""
DATA_DELETED = "data-deleted"
"""With the id of a lab whose conversations were deleted, all or those that were too old."""

Hear = Callable[[str], None]


class Events(Protocol):
    """Topics with short texts."""

    def hear(self, topic: str, hear: Hear) -> None:
        """Have this called with every text of the topic, whichever replica sent it."""

    async def tell(self, topic: str, text: str) -> None:
        """Send a text to everybody who hears this topic."""


class LocalEvents:
    """Within one process."""

    def __init__(self) -> None:
        self._hearers: dict[str, list[Hear]] = defaultdict(list)

    def hear(self, topic: str, hear: Hear) -> None:
        """As above."""
        self._hearers[topic].append(hear)

    async def tell(self, topic: str, text: str) -> None:
        """As above."""
        for hear in self._hearers[topic]:
            hear(text)


class RedisEvents(LocalEvents):
    """Through Redis's publish and subscribe; within the process while Redis is lost."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__()
        self._link = link

    async def tell(self, topic: str, text: str) -> None:
        """As above."""
        await super().tell(topic, text)
        with suppress(RedisLost):
            await self._link.ask(lambda redis: redis.publish(f"{PREFIX}{topic}", text))

    async def listen(self) -> None:
        """Hear what others tell, until cancelled; connects again as often as it takes."""
        from redis.exceptions import RedisError

        while True:
            with suppress(RedisError, OSError):
                await self._listen()
            await asyncio.sleep(REST_S)

    async def _listen(self) -> None:
        # Not told to ignore what is no message: it would give None for the answer to a ping, as for silence.
        async with self._link.client.pubsub() as channel:
            await channel.psubscribe(f"{PREFIX}*")
            while True:
                message = await channel.get_message(timeout=REST_S)
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    # The driver takes being cancelled while it waits for a timeout of its own.
                    raise asyncio.CancelledError
                if message is None:
                    await channel.ping()
                elif message["type"] == "pmessage":
                    topic = message["channel"].removeprefix(PREFIX)
                    for hear in self._hearers[topic]:
                        hear(message["data"])
