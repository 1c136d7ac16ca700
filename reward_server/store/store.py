"""The store: where everything durable goes in and comes out.

`transaction()` gives a unit of work that is on disk when its block has been left, or leaves no trace;
`reading()` gives a consistent, read-only view. Nothing slow may happen inside a `transaction()` block:
all other writers of the process wait for it. Schema changes are not made here (see `migrate`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from reward_server.errors import ConfigurationError
from reward_server.store.answers import Answers
from reward_server.store.comparisons import Comparisons
from reward_server.store.engine import Engines, open_engines
from reward_server.store.episodes import Episodes
from reward_server.store.evaluations import Evaluations
from reward_server.store.faults import is_trouble, store_faults
from reward_server.store.keys import Keys
from reward_server.store.session import Session
from reward_server.store.writer import Writer

BUSY_TIMEOUT_S = 2.5
"""How long to wait for another process that holds the database."""


class UnitOfWork:
    """The repositories of one transaction."""

    def __init__(self, session: Session) -> None:
        self.keys = Keys(session)
        self.episodes = Episodes(session)
        self.evaluations = Evaluations(session)
        self.comparisons = Comparisons(session)
        self.answers = Answers(session)


class Store:
    """One database."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._writer = Writer(engines.write)

    @classmethod
    async def open(cls, url: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Self:
        """Open a database that has been migrated."""
        engines = open_engines(url, busy_timeout_s=busy_timeout_s)
        try:
            await _require_schema(engines)
        except BaseException:
            await engines.dispose()
            raise
        return cls(engines)

    async def close(self) -> None:
        """Finish queued writes and close every connection."""
        await self._writer.close()
        await self._engines.dispose()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[UnitOfWork]:
        """Write: all of it is durable when the block has been left, or none of it happened."""
        async with self._writer.unit() as session:
            yield UnitOfWork(session)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        """Read one consistent state; waits for no writer."""
        with store_faults():
            connection = await self._engines.read.connect()
        session = Session(connection)
        try:
            yield UnitOfWork(session)
        finally:
            await asyncio.shield(asyncio.ensure_future(_leave(session, connection)))

    async def ping(self) -> None:
        """`StoreUnavailable` if the database cannot be read."""
        async with self.reading() as work:
            await work.keys.count()


async def _leave(session: Session, connection: AsyncConnection) -> None:
    await session.settle()
    await connection.close()


async def _require_schema(engines: Engines) -> None:
    try:
        async with engines.read.connect() as connection:
            await connection.execute(text("SELECT version_num FROM alembic_version"))
    except SQLAlchemyError as error:
        if is_trouble(error):
            raise ConfigurationError("The database cannot be read, or has not been migrated.") from error
        raise
