"""PostgreSQL's part of `backup`: tables out and in with COPY, over the driver that the server uses anyway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncConnection

from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.store import postgres
from reward_server.store.engine import check_url
from reward_server.store.faults import store_faults

VERSION_TABLE = "alembic_version"
LOCK_WAIT_S = 10.0

_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = 'labs' AND pid <> pg_backend_pid()"
)
_NUMBERED = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 "
    "AND (is_identity = 'YES' OR column_default LIKE 'nextval(%')"
)


async def copy_out(url: str, folder: Path) -> tuple[str | None, dict[str, list[str]]]:
    """One file for each table, all of one moment; their revision, and the columns of each."""
    async with _connected(url) as connection:
        tables: dict[str, list[str]] = await connection.run_sync(_tables)
        await connection.rollback()
        driver = await _driver(connection)
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            there = await driver.fetchval(f"SELECT to_regclass('{VERSION_TABLE}') IS NOT NULL")
            revision = await driver.fetchval(f"SELECT version_num FROM {VERSION_TABLE}") if there else None  # noqa: S608
            for table, columns in tables.items():
                await driver.copy_from_table(table, columns=columns, output=_file(folder, table))
    return revision, tables


async def require_unused(url: str) -> None:
    """`ConfigurationError` if a server uses the database."""
    async with _connected(url) as connection:
        await _require_unused(await _driver(connection))


async def _require_unused(driver: Any) -> None:
    if await driver.fetchval(_OTHERS):
        raise ConfigurationError("A server uses this database: stop all servers and workers first")


async def make_room(url: str, tables: Sequence[str], *, force: bool) -> None:
    """Drop our tables; `ConfigurationError` if a server uses them, or if they hold something and `force` is not set."""
    async with _connected(url) as connection:
        present: dict[str, list[str]] = await connection.run_sync(_tables)
        await connection.rollback()
        driver = await _driver(connection)
        await _require_unused(driver)
        filled = [name for name in present if await driver.fetchval(f"SELECT EXISTS (SELECT FROM {_quoted(name)})")]  # noqa: S608
        if filled and not force:
            raise ConfigurationError(
                "The database holds data: --force replaces it with the backup, and what it holds is lost"
            )
        async with driver.transaction():
            for name in {*present, *tables, VERSION_TABLE}:
                await driver.execute(f"DROP TABLE IF EXISTS {_quoted(name)} CASCADE")


async def copy_in(url: str, folder: Path, tables: Mapping[str, Sequence[str]]) -> None:
    """Fill tables that are there and empty: all of them, or none."""
    async with _connected(url) as connection:
        present: dict[str, list[str]] = await connection.run_sync(_tables)
        await connection.rollback()
        driver = await _driver(connection)
        async with driver.transaction():
            # A revision may have put rows of its own there.
            for table in reversed(present):
                await driver.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608
            for table in present:
                if table in tables:
                    await driver.copy_to_table(table, columns=list(tables[table]), source=_file(folder, table))
                    await _count_on(driver, table)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[AsyncConnection]:
    engine = postgres.open_migrating(check_url(url), lock_wait_s=LOCK_WAIT_S)
    try:
        with store_faults():
            async with engine.connect() as connection:
                yield connection
    except StoreUnavailable as error:
        raise ConfigurationError("PostgreSQL cannot be reached, or refuses this: look at its log") from error
    finally:
        await engine.dispose()


async def _driver(connection: AsyncConnection) -> Any:
    return (await connection.get_raw_connection()).driver_connection


def _tables(connection: Connection) -> dict[str, list[str]]:
    """Our tables with their columns; those that others refer to come first."""
    inspector = inspect(connection)
    ordered = [name for name, _ in inspector.get_sorted_table_and_fkc_names() if name not in (None, VERSION_TABLE)]
    return {name: [column["name"] for column in inspector.get_columns(name)] for name in ordered if name}


async def _count_on(driver: Any, table: str) -> None:
    """Numbers that the database gives go on behind those that are there."""
    for (column,) in await driver.fetch(_NUMBERED, table):
        name = _quoted(column)
        await driver.execute(
            f"SELECT setval(pg_get_serial_sequence('{_quoted(table)}', '{column}'), "  # noqa: S608
            f"(SELECT coalesce(max({name}), 0) + 1 FROM {_quoted(table)}), false)"
        )


def _file(folder: Path, table: str) -> str:
    return str(folder / f"{table}.copy")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
