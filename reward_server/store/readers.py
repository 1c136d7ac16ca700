"""A few connections that only read, each on a thread of its own.

What a unit of work sees is the state at its first query, whatever is committed meanwhile. Threads start when
they are needed; whoever finds all of them busy waits, but not for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import StoreUnavailable
from reward_server.store.session import Session
from reward_server.store.thread import ConnectionThread

THREADS = 4
WAIT_S = 10.0


class Readers:
    """Lends reading connections."""

    def __init__(self, engine: Engine, *, threads: int = THREADS, wait_s: float = WAIT_S) -> None:
        self._engine = engine
        self._free = asyncio.Semaphore(threads)
        self._wait_s = wait_s
        self._idle: list[ConnectionThread] = []
        self._started: list[ConnectionThread] = []
        self._returning: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Session]:
        """A session that sees one state and cannot write."""
        if self._closed:
            raise StoreUnavailable
        thread = await self._take()
        session = Session(thread)
        try:
            yield session
        finally:
            # In a task of its own: the connection has to come back even if the reader was cancelled.
            task = asyncio.create_task(self._give_back(thread, session))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)
            await asyncio.shield(task)

    async def close(self) -> None:
        """Close every connection; nobody may be reading any more."""
        self._closed = True
        if self._returning:
            await asyncio.wait(self._returning)
        for thread in self._started:
            await thread.close()

    async def _take(self) -> ConnectionThread:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable from None
        if self._idle:
            return self._idle.pop()
        thread = ConnectionThread(self._engine, f"store-reader-{len(self._started)}")
        self._started.append(thread)
        return thread

    async def _give_back(self, thread: ConnectionThread, session: Session) -> None:
        try:
            await session.settle()
            if session.began:
                await thread.submit(Connection.rollback)
        except SQLAlchemyError:
            await thread.reset()
        finally:
            self._idle.append(thread)
            self._free.release()
