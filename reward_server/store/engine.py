"""Chooses the database engine, and opens SQLite (`postgres` opens the other one).

SQLite runs in WAL mode with `synchronous=FULL`, so what was committed survives `kill -9` and a power cut.
Transactions begin explicitly, because the driver's own rules begin one too late (a read that becomes a
write can fail when it is half done). Statements are not SQLite's own; what is, is in this file.

The driver is the blocking one, on threads of ours (see `thread`): through aiosqlite a statement changes threads
four times, which made a stored turn cost three times the CPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from reward_server.errors import ConfigurationError
from reward_server.store.columns import dump_json
from reward_server.store.isolation import guard

POSTGRES = ("postgresql", "postgresql+asyncpg", "postgres")
"""All of them mean PostgreSQL through asyncpg."""


def check_url(url: str) -> URL:
    """The URL of a database this version can use; the error does not repeat it, it may hold a password."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError("This is not a database URL.") from None
    if parsed.drivername in POSTGRES:
        if not parsed.database:
            raise ConfigurationError("The URL must name a database, as in postgresql://labs@127.0.0.1/labs.")
        return parsed.set(drivername=POSTGRES[0])
    if parsed.drivername != "sqlite":
        raise ConfigurationError(f"The database {parsed.drivername!r} is not supported; use sqlite or postgresql.")
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        raise ConfigurationError("The database must be the path of a file, as in sqlite:////var/lib/labs/labs.sqlite.")
    return parsed


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for PostgreSQL."""
    parsed = check_url(url)
    return Path(str(parsed.database)) if parsed.drivername == "sqlite" else None


def unwritable(database: Path, error: OSError) -> ConfigurationError:
    """The error where nothing can be made beside a SQLite database."""
    return ConfigurationError(
        f"{database.parent} cannot be written ({error.strerror}): give another folder with --data or LABS_DATA"
    )


def sqlite_url(path: Path) -> str:
    """The URL of a database file, whatever characters are in its path."""
    return URL.create("sqlite", database=str(path.absolute())).render_as_string(hide_password=False)


def open_writing(url: str, *, busy_timeout_s: float) -> Engine:
    """An engine whose transactions hold the write lock from their beginning."""
    pragmas = ("foreign_keys=ON", "synchronous=FULL", "journal_mode=WAL")
    return _open(url, busy_timeout_s, begin="BEGIN IMMEDIATE", pragmas=pragmas)


def open_reading(url: str, *, busy_timeout_s: float) -> Engine:
    """An engine that cannot write."""
    return _open(url, busy_timeout_s, begin="BEGIN", pragmas=("query_only=ON",))


def open_migrating(url: str, *, busy_timeout_s: float) -> Engine:
    """An engine for schema changes: SQLite rebuilds tables, so foreign keys are off while it does."""
    pragmas = ("foreign_keys=OFF", "synchronous=FULL", "journal_mode=WAL")
    return _open(url, busy_timeout_s, begin="BEGIN IMMEDIATE", pragmas=pragmas)


def _open(url: str, busy_timeout_s: float, *, begin: str, pragmas: tuple[str, ...]) -> Engine:
    engine = create_engine(
        check_url(url),
        hide_parameters=True,
        json_serializer=dump_json,
        # Each thread keeps the one connection it opens; there is nothing to pool.
        poolclass=NullPool,
        connect_args={"timeout": busy_timeout_s},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # None stops the driver from beginning transactions by itself.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin_explicitly(connection: Connection) -> Any:
        connection.exec_driver_sql(begin)

    guard(engine)
    return engine
