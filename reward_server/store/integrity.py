"""Checks that a database is whole: its own check of pages and indexes, and of rows that refer to others."""

from __future__ import annotations

from sqlalchemy import Connection, text

from reward_server.store.engine import check_url, open_reading, sqlite_file
from reward_server.store.faults import store_faults
from reward_server.store.postgres import open_reading as open_reading_postgres

BUSY_TIMEOUT_S = 2.5
SOUND = "ok"
_MOST_SAID = 3

_BROKEN_INDEXES = text(
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace"
)
_TABLES = text("SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = current_schema()")


async def damage(url: str) -> list[str]:
    """The damage of the database, in its own words; empty if there is none.

    SQLite looks at every page. PostgreSQL has no such look of its own: every row of every table is read, which fails on
    pages whose checksum is wrong, and indexes that are not valid are named.
    """
    if sqlite_file(url) is not None:
        engine = open_reading(url, busy_timeout_s=BUSY_TIMEOUT_S)
        with store_faults(), engine.connect() as connection:
            return _sqlite(connection)
    asynchronous = open_reading_postgres(check_url(url))
    try:
        with store_faults():
            async with asynchronous.connect() as connected:
                return await connected.run_sync(_postgres)
    finally:
        await asynchronous.dispose()


def _sqlite(connection: Connection) -> list[str]:
    reports = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(3)")]
    broken = [
        f"{row[0]} row {row[1]} refers to nothing" for row in connection.exec_driver_sql("PRAGMA foreign_key_check")
    ]
    return [report for report in reports if report != SOUND] + broken[:_MOST_SAID]


def _postgres(connection: Connection) -> list[str]:
    for (table,) in connection.execute(_TABLES).all():
        # Every value is read, not only counted.
        connection.exec_driver_sql(f"SELECT count(t::text) FROM {table} AS t")  # noqa: S608 (quoted by the database)
    return [f"the index {name} is not valid" for (name,) in connection.execute(_BROKEN_INDEXES).all()]
