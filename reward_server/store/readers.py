"""A few connections that only read, each on a lane of its own.

What a unit of work sees is the state at its first query, whatever is committed meanwhile. Lanes are opened when
they are needed; whoever finds all of them busy waits, but not for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import StoreUnavailable
from reward_server.store.lane import Lane, OpenLane
from reward_server.store.session import Session

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
    async def unit(self) -> AsyncIterator[Session]:
        """A session that sees one state and cannot write."""
        if self._closed:
            raise StoreUnavailable
        self._busy += 1
        try:
            lane = await self._take()
            session = Session(lane)
            try:
                yield session
            finally:
                # In a task of its own: the connection has to come back even if the reader was cancelled.
                task = asyncio.create_task(self._give_back(lane, session))
                self._returning.add(task)
                task.add_done_callback(self._returning.discard)
                await asyncio.shield(task)
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

    async def _give_back(self, lane: Lane, session: Session) -> None:
        try:
            await session.settle()
            if session.began:
                await lane.submit(Connection.rollback)
        except (SQLAlchemyError, OSError):
            await lane.reset()
        finally:
            self._idle.append(lane)
            self._free.release()
