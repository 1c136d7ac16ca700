"""Engines: how the database is opened.

SQLite runs in WAL mode with `synchronous=FULL`, so what was committed survives `kill -9` and a power cut.
There is one connection that writes and a few that only read; transactions begin explicitly, because the
driver's own rules begin one too late (a read that becomes a write can fail when it is half done).
Statements are not SQLite's own; what is, is in this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, event
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from reward_server.errors import ConfigurationError
from reward_server.store.columns import dump_json

READERS = 4
POOL_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Engines:
    """One engine with a single connection for writing, one for reading."""

    write: AsyncEngine
    read: AsyncEngine

    async def dispose(self) -> None:
        """Close every connection."""
        await self.read.dispose()
        await self.write.dispose()


def check_url(url: str) -> str:
    """The URL of a database this version can use, in the form the driver wants; the password is never repeated."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError("This is not a database URL.") from None
    if parsed.drivername not in ("sqlite", "sqlite+aiosqlite"):
        raise ConfigurationError(f"The database {parsed.drivername!r} is not supported; use sqlite.")
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        raise ConfigurationError("The database must be the path of a file, as in sqlite:////var/lib/labs/labs.sqlite.")
    return parsed.set(drivername="sqlite+aiosqlite").render_as_string(hide_password=False)


def sqlite_url(path: Path) -> str:
    """The URL of a database file, whatever characters are in its path."""
    return URL.create("sqlite", database=str(path.absolute())).render_as_string(hide_password=False)


def open_engines(url: str, *, busy_timeout_s: float) -> Engines:
    """Engines for a database that has been migrated already."""
    return Engines(
        write=_open(url, busy_timeout_s, begin="BEGIN IMMEDIATE", pool_size=1, query_only=False),
        read=_open(url, busy_timeout_s, begin="BEGIN", pool_size=READERS, query_only=True),
    )


def open_migration_engine(url: str, *, busy_timeout_s: float) -> AsyncEngine:
    """An engine for schema changes: SQLite rebuilds tables, so foreign keys are off while it does."""
    return _open(url, busy_timeout_s, begin="BEGIN IMMEDIATE", pool_size=1, query_only=False, foreign_keys=False)


def _open(
    url: str, busy_timeout_s: float, *, begin: str, pool_size: int, query_only: bool, foreign_keys: bool = True
) -> AsyncEngine:
    engine = create_async_engine(
        check_url(url),
        hide_parameters=True,
        json_serializer=dump_json,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_WAIT_S,
        connect_args={"timeout": busy_timeout_s},
    )
    pragmas = [f"foreign_keys={'ON' if foreign_keys else 'OFF'}", "synchronous=FULL"]
    pragmas.append("query_only=ON" if query_only else "journal_mode=WAL")

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # None stops the driver from beginning transactions by itself.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin_explicitly(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine
