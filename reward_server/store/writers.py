"""Writers side by side, where the database takes several: whoever comes is sent to the one with the least to do.

SQLite has one writer at a time, so one `Writer` there. PostgreSQL flushes the commits of several connections together
and needs a round trip for every statement, which side by side cost their time once. Each writer still shares a commit
between those who wait for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection

from reward_server.store.lane import Lane
from reward_server.store.session import LaneSession
from reward_server.store.writer import Writer

Result = TypeVar("Result")


class Writers:
    """Hands out units of work."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._writers = [Writer(lane) for lane in lanes]
        self._queued: Counter[Writer] = Counter()
        self._inside: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[LaneSession]:
        """A session whose work is durable when the block has been left, or not there at all."""
        with self._least_busy() as writer:
            task = asyncio.current_task()
            self._inside.add(task)
            try:
                async with writer.unit() as session:
                    yield session
            finally:
                self._inside.discard(task)

    async def do(self, work: Callable[[Connection], Result]) -> Result:
        """Run a function in a transaction; return its result once that is durable."""
        with self._least_busy() as writer:
            return await writer.do(work)

    @contextmanager
    def _least_busy(self) -> Iterator[Writer]:
        if asyncio.current_task() in self._inside:
            raise RuntimeError("a unit of work inside a unit of work may wait for itself")
        writer = min(self._writers, key=lambda candidate: self._queued[candidate])
        self._queued[writer] += 1
        try:
            yield writer
        finally:
            self._queued[writer] -= 1

    @property
    def waiting(self) -> int:
        """Units of work that run or wait to."""
        return sum(self._queued.values())

    async def close(self) -> None:
        """Finish what is queued, then close every connection."""
        for writer in self._writers:
            await writer.close()
        for lane in self._lanes:
            await lane.close()
