"""The store: where everything durable goes in and comes out.

`transaction()` gives a unit of work that is on disk when its block has been left, or leaves no trace;
`reading()` gives a consistent, read-only view. `write` and `read` do the same for a block, a function that waits for
nothing but the store: it runs on the connection's thread, in one trip there and back. Turns, batches, evaluations and
key look-ups take blocks. Nothing slow may happen inside a `transaction()` or a block that writes: all other writers of
the process wait for it. Schema changes are not made here (see `migrate`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self, TypeAlias, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.store import postgres
from reward_server.store.dialects import write_nothing
from reward_server.store.engine import check_url, open_reading, open_writing, sqlite_file
from reward_server.store.lane import Lane, OpenLane
from reward_server.store.readers import Readers
from reward_server.store.session import DirectSession, done_at_once
from reward_server.store.thread import ConnectionThread
from reward_server.store.turn_writes import Also, Played, TurnWrites
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.store.writers import Writers
from reward_server.store.writing import writing

Result = TypeVar("Result")
Block: TypeAlias = "Callable[[UnitOfWork], Coroutine[Any, Any, Result]]"
_File: TypeAlias = tuple[int, int]
"""Device and number: a file that was moved away or replaced has others."""

BUSY_TIMEOUT_S = 2.5
"""How long to wait for another process that holds the database."""

POSTGRES_WRITERS = 8
"""Connections that write to PostgreSQL."""

GROUPS_AT_ONCE = 2
"""Groups of turns that are written to PostgreSQL at a time: one is flushed to the disk while the next is sent."""


class Store:
    """One database."""

    def __init__(self, url: str, writing: Sequence[Lane], readers: Readers) -> None:
        self._url = url
        self._file: _File | None = None
        self._writers = Writers(writing)
        self._readers = readers
        self._turns = TurnWrites(self.write, min(len(writing), GROUPS_AT_ONCE))

    @classmethod
    async def open(cls, url: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Self:
        """Open a database that has been migrated."""
        writing, reading = _lanes(url, busy_timeout_s)
        count = 1 if sqlite_file(url) else POSTGRES_WRITERS
        store = cls(url, [writing(f"store-writer-{number}") for number in range(count)], Readers(reading))
        try:
            await store.ping()
            store._file = await asyncio.to_thread(_file_of, url)
        except (StoreUnavailable, SQLAlchemyError) as error:
            await store.close()
            raise ConfigurationError("The database cannot be read, or has not been migrated.") from error
        return store

    async def close(self) -> None:
        """Finish queued writes and close every connection."""
        await self._turns.close()
        await self._writers.close()
        await self._readers.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[UnitOfWork]:
        """Write: all of it is durable when the block has been left, or none of it happened."""
        with writing():
            async with self._writers.unit() as session:
                yield UnitOfWork(session)

    async def append_turns(self, turns: Sequence[Played], also: Also | None = None) -> None:
        """Write turns of several episodes and what belongs to them, all or none; durable when this returns.

        Turns of other requests share the commit.

        Raises:
            TurnInProgress: an episode is not where its turn began; somebody else was faster.
        """
        with writing():
            await self._turns.append(turns, also)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        """Read one consistent state; waits for no writer."""
        async with self._readers.unit() as session:
            yield UnitOfWork(session)

    async def write(self, block: Block[Result]) -> Result:
        """Do what a block of store calls does, and return what it returns; durable then, or not there at all."""
        with writing():
            return await self._writers.do(partial(_done, block))

    async def read(self, block: Block[Result]) -> Result:
        """Run a block of store calls in one consistent state; waits for no writer."""
        return await self._readers.do(partial(_done, block))

    @property
    def has_one_server(self) -> bool:
        """True if no other server writes what this one does: a file has one at a time (`occupancy`)."""
        return sqlite_file(self._url) is not None

    @property
    def waiting(self) -> int:
        """Units of work that hold or wait for a writing connection, and turns that wait to be written."""
        return self._writers.waiting + self._turns.waiting

    @property
    def reading_now(self) -> int:
        """Units of work that hold or wait for a reading connection."""
        return self._readers.busy

    async def ping(self) -> None:
        """`StoreUnavailable` if the database cannot be read."""
        async with self.reading() as work:
            await work.keys.count()

    async def probe(self) -> None:
        """`StoreUnavailable` if the database cannot be written, or its file is no longer where it was opened."""
        if await asyncio.to_thread(_file_of, self._url) != self._file:
            raise StoreUnavailable
        async with self._writers.unit() as session:
            await session.run(write_nothing)


def _done(block: Block[Result], connection: Connection) -> Result:
    """Run a block on the connection's thread."""
    return done_at_once(block(UnitOfWork(DirectSession(connection))))


def _file_of(url: str) -> _File | None:
    try:
        file = sqlite_file(url)
        stat = file.stat() if file else None
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino) if stat else None


def _lanes(url: str, busy_timeout_s: float) -> tuple[OpenLane, OpenLane]:
    """The functions that open connections which write, and which read."""
    if sqlite_file(url) is None:
        to_write, to_read = postgres.open_writing(check_url(url)), postgres.open_reading(check_url(url))
        return partial(postgres.TaskLane, to_write), partial(postgres.TaskLane, to_read)
    writing, reading = (open_with(url, busy_timeout_s=busy_timeout_s) for open_with in (open_writing, open_reading))
    return partial(ConnectionThread, writing), partial(ConnectionThread, reading)
