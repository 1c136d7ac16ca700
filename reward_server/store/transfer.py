"""A SQLite database into an empty one of PostgreSQL: all of it, or nothing.

One transaction holds the whole copy. Tables come in the order of their foreign keys, and each is read back before the
next: it must have as many rows as the source, and the same digest. Whatever stops the copy leaves the target empty, so
the same command can be run again. The rows of the source are only read, in one
transaction; its schema is brought up to date first. No server may run on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, func, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.store import postgres
from reward_server.store.backup_postgres import LOCK_WAIT_S, require_unused
from reward_server.store.dialects import one_at_a_time
from reward_server.store.engine import check_url, open_reading, sqlite_file
from reward_server.store.faults import store_faults
from reward_server.store.isolation import across_labs
from reward_server.store.migrate import migrate
from reward_server.store.occupancy import occupied
from reward_server.store.tables import metadata

Report = Callable[[str, int, int], None]
"""A table, how many of its rows are copied, and out of how many."""
BATCH_ROWS = 500
BATCH_BYTES = 4_000_000
"""Of text and files; a chunk of a file alone may have more."""
BUSY_TIMEOUT_S = 10.0
_READ_ROWS = 50
_MODULUS = 1 << 256


@dataclass
class Digest:
    """The number of rows and a digest of them that does not depend on their order: engines sort text differently."""

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[Any]) -> None:
        """Count a row."""
        digest = hashlib.sha256(repr(tuple(row)).encode("utf-8", "surrogatepass")).digest()
        self.rows += 1
        self.total = (self.total + int.from_bytes(digest)) % _MODULUS


async def transfer(source: str, target: str, report: Report) -> dict[str, int]:
    """Copy the database of one URL into that of the other; the rows of each table.

    Raises:
        ConfigurationError: the source is no SQLite database that is there, or a server runs on it; the target is not
            PostgreSQL, cannot be reached, is in use or holds data; or a row does not fit, or was not read back as it
            was written. The target is then as it was.
    """
    database = sqlite_file(source)
    if database is None:
        raise ConfigurationError("The settings name a PostgreSQL database already: unset LABS_DATABASE_URL")
    if sqlite_file(target) is not None:
        raise ConfigurationError("The target must be PostgreSQL, as in postgresql://labs@127.0.0.1/labs")
    if not database.exists():
        raise ConfigurationError(f"There is no database at {database}: name its folder with --data or LABS_DATA")
    with occupied(source):
        await migrate(source)
        await require_unused(target)
        await migrate(target)
        engine = open_reading(source, busy_timeout_s=BUSY_TIMEOUT_S)
        try:
            return await _copy(engine, target, report)
        finally:
            engine.dispose()


async def _copy(source: Engine, url: str, report: Report) -> dict[str, int]:
    engine = postgres.open_migrating(check_url(url), lock_wait_s=LOCK_WAIT_S)
    try:
        with store_faults(), source.connect() as origin, origin.begin():
            async with engine.begin() as target:
                # A server that starts meanwhile waits for it before it looks at the tables.
                await target.run_sync(one_at_a_time, "labs/migrate")
                await _require_empty(target)
                return {
                    table.name: await _copy_table(origin, target, table, report) for table in metadata.sorted_tables
                }
    except StoreUnavailable as error:
        told = "A database failed in the middle, and nothing was copied: look at PostgreSQL's log and run this again"
        raise ConfigurationError(told) from error
    finally:
        await engine.dispose()


async def _require_empty(target: AsyncConnection) -> None:
    for table in metadata.sorted_tables:
        if (await target.execute(_select(table).limit(1))).first() is not None:
            raise ConfigurationError(
                f"The target holds data already (table {table.name}), and nothing was copied: name an empty database"
            )


async def _copy_table(source: Connection, target: AsyncConnection, table: Table, report: Report) -> int:
    expected = source.execute(across_labs(select(func.count()).select_from(table))).scalar_one()
    written = Digest()
    report(table.name, 0, expected)
    for batch in _batches(source, table):
        try:
            await target.execute(insert(table), [dict(row._mapping) for row in batch])
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            raise ConfigurationError(
                f"PostgreSQL does not take a row of table {table.name}, and nothing was copied: {_reason(error)}"
            ) from error
        for row in batch:
            written.add(row)
        report(table.name, written.rows, expected)
    digest = Digest()
    read_back = await target.stream(_select(table).execution_options(yield_per=BATCH_ROWS))
    async for row in read_back:
        digest.add(row)
    if digest != written or written.rows != expected:
        raise ConfigurationError(
            f"Table {table.name} was not read back as it was written, and nothing was copied: "
            f"{expected} rows in SQLite, {digest.rows} in PostgreSQL"
        )
    return written.rows


def _batches(source: Connection, table: Table) -> Iterator[list[Row[Any]]]:
    batch: list[Row[Any]] = []
    size = 0
    for row in source.execute(_select(table).execution_options(yield_per=_READ_ROWS)):
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _select(table: Table) -> Any:
    return across_labs(select(table))


def _reason(error: DBAPIError) -> str:
    """The class of the driver's error; its words may hold what is in the row."""
    cause = None if error.orig is None else error.orig.__cause__
    return type(error if cause is None else cause).__name__
