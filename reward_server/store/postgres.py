"""PostgreSQL: how it is opened, and lanes on asyncpg connections.

The functions that repositories hand in run unchanged over SQLAlchemy's asyncio layer (`run_sync`). Nothing here waits
for ever: a lock is waited for shorter than PostgreSQL takes to look for deadlocks, so that of two replicas in each
other's way one gives up one unit of work instead of a whole group; statements and connecting have a deadline, so a
server that hangs is an error like one that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import URL, Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from reward_server.store.columns import dump_json
from reward_server.store.isolation import guard

LOCK_WAIT_S = 0.5
STATEMENT_S = 3.0
CONNECT_S = 3.0
DRIVER = "postgresql+asyncpg"

Result = TypeVar("Result")


def open_writing(url: URL) -> AsyncEngine:
    """An engine whose commits are on disk when they return, whatever the server's default is."""
    return _open(url, settings={"lock_timeout": _ms(LOCK_WAIT_S), "synchronous_commit": "on"})


def open_reading(url: URL) -> AsyncEngine:
    """An engine that cannot write, and whose transactions see one state."""
    engine = _open(url, settings={"lock_timeout": _ms(LOCK_WAIT_S)})
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def open_migrating(url: URL, *, lock_wait_s: float) -> AsyncEngine:
    """An engine for schema changes, which may take as long as they need once they have their lock."""
    return _open(url, settings={"lock_timeout": _ms(lock_wait_s)}, statement_s=None)


def _open(url: URL, *, settings: dict[str, str], statement_s: float | None = STATEMENT_S) -> AsyncEngine:
    arguments: dict[str, Any] = {
        "timeout": CONNECT_S,
        "command_timeout": statement_s,
        "server_settings": {"application_name": "labs", "timezone": "UTC", **settings},
    }
    engine = create_async_engine(
        _as_asyncpg_wants_it(url),
        hide_parameters=True,
        json_serializer=dump_json,
        # Each lane keeps the one connection it opens; there is nothing to pool.
        poolclass=NullPool,
        connect_args=arguments,
    )
    guard(engine.sync_engine)
    return engine


def _as_asyncpg_wants_it(url: URL) -> URL:
    """The URL with what other drivers call `sslmode` under asyncpg's name."""
    wanted = url.set(drivername=DRIVER)
    mode = wanted.query.get("sslmode")
    return wanted if mode is None else wanted.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))


class TaskLane:
    """A lane on an asyncpg connection, which is opened when it is first needed."""

    def __init__(self, engine: AsyncEngine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._turn = asyncio.Lock()
        self._connection: AsyncConnection | None = None
        self._driver: Any = None
        self._closed = False

    def submit(self, work: Callable[[Connection], Result]) -> asyncio.Future[Result]:
        """Have this done next, in a task of its own that nobody cancels."""
        return asyncio.create_task(self._do(work), name=self._name)

    async def reset(self) -> None:
        """Forget the connection, whatever state it is in."""
        async with self._turn:
            await self._drop()

    async def close(self) -> None:
        """Close the connection."""
        if not self._closed:
            self._closed = True
            await self.reset()
            await self._engine.dispose()

    async def _do(self, work: Callable[[Connection], Result]) -> Result:
        async with self._turn:
            if self._is_stale():
                await self._drop()
            if self._connection is None:
                self._connection = await self._engine.connect()
                self._driver = (await self._connection.get_raw_connection()).driver_connection
            return await self._connection.run_sync(work)

    def _is_stale(self) -> bool:
        """True if the server has gone since the last work: then a new connection, and nobody needs to know."""
        return self._connection is not None and self._driver.is_closed() and not self._connection.in_transaction()

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Saying goodbye to a server that is gone or hangs fails, and does not matter.
            with suppress(SQLAlchemyError, OSError):
                await connection.invalidate()
                await connection.close()
