"""A few connections that only read, each on a lane of its own.

What a unit of work sees is the state at its first query, whatever is committed meanwhile. Lanes are opened when
they are needed; whoever finds all of them busy waits, but not for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import StoreUnavailable
from reward_server.store.faults import store_faults
from reward_server.store.lane import Lane, OpenLane
from reward_server.store.session import LaneSession

Result = TypeVar("Result")

LANES = 4
WAIT_S = 10.0


class Readers:
    """Lends reading connections."""

    def __init__(self, open_lane: OpenLane, *, lanes: int = LANES, wait_s: float = WAIT_S) -> None:
        self._open_lane = open_lane
        self._free = asyncio.Semaphore(lanes)
        self._wait_s = wait_s
        self._idle: list[Lane] = []
        self._started: list[Lane] = []
        self._returning: set[asyncio.Task[None]] = set()
        self._closed = False
        self._busy = 0

    @property
    def busy(self) -> int:
        """Units of work that hold or wait for a connection."""
        return self._busy

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[LaneSession]:
        """A session that sees one state and cannot write."""
        if self._closed:
            raise StoreUnavailable
        self._busy += 1
        try:
            lane = await self._take()
            session = LaneSession(lane)
            try:
                yield session
            finally:
                await self._give_back(lane, self._left(lane, session))
        finally:
            self._busy -= 1

    async def do(self, work: Callable[[Connection], Result]) -> Result:
        """Run a read-only function on one consistent state, in one trip to the connection; return its result."""
        if self._closed:
            raise StoreUnavailable
        self._busy += 1
        try:
            lane = await self._take()
            try:
                running = lane.submit(partial(_looked_at, work))
            except BaseException:
                self._put_back(lane)
                raise
            try:
                with store_faults():
                    result = await asyncio.shield(running)
            except BaseException:
                await self._give_back(lane, self._failed(lane, running))
                raise
            self._put_back(lane)
            return result
        finally:
            self._busy -= 1

    async def close(self) -> None:
        """Close every connection; nobody may be reading any more."""
        self._closed = True
        if self._returning:
            await asyncio.wait(self._returning)
        for lane in self._started:
            await lane.close()

    async def _take(self) -> Lane:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable from None
        if self._idle:
            return self._idle.pop()
        lane = self._open_lane(f"store-reader-{len(self._started)}")
        self._started.append(lane)
        return lane

    async def _give_back(self, lane: Lane, leaving: Coroutine[Any, Any, None]) -> None:
        """In a task of its own: the connection has to come back even if the reader was cancelled."""

        async def left() -> None:
            try:
                await leaving
            except (SQLAlchemyError, OSError):
                await lane.reset()
            finally:
                self._put_back(lane)

        task = asyncio.create_task(left())
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)
        await asyncio.shield(task)

    async def _left(self, lane: Lane, session: LaneSession) -> None:
        await session.settle()
        if session.began:
            await lane.submit(Connection.rollback)

    async def _failed(self, lane: Lane, running: asyncio.Future[Any]) -> None:
        """It may still run, for one who gave up waiting. After a fault the connection may be in any state."""
        await asyncio.wait([running])
        if isinstance(running.exception(), (StoreUnavailable, SQLAlchemyError, OSError)):
            await lane.reset()

    def _put_back(self, lane: Lane) -> None:
        self._idle.append(lane)
        self._free.release()


def _looked_at(work: Callable[[Connection], Result], connection: Connection) -> Result:
    try:
        return work(connection)
    finally:
        connection.rollback()
