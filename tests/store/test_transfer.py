"""A SQLite database in PostgreSQL: every row as it was, or nothing at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, BigInteger, Boolean, Column, Date, Float, Integer, LargeBinary, insert, select
from sqlalchemy.types import TypeEngine

from benchmarks.real_servers import PostgresServer
from reward_server.errors import ConfigurationError
from reward_server.store.columns import UtcDateTime
from reward_server.store.engine import check_url, open_reading, open_writing, sqlite_url
from reward_server.store.isolation import across_labs
from reward_server.store.migrate import check
from reward_server.store.occupancy import occupied
from reward_server.store.postgres import open_reading as open_postgres
from reward_server.store.store import Store
from reward_server.store.tables import metadata
from reward_server.store.transfer import BATCH_ROWS, transfer

Rows = dict[str, list[tuple[Any, ...]]]

ODD = {"z": 1, "a": [None, "ü\u2028\t\\N", 0.1, 1e-17], "deep": {"b": 1, "a": 2}}
EACH = 3
MANY = BATCH_ROWS + 1
"""More labs than a batch has."""
FIXED = {"status": "complete", "state": "dead"}
"""What a constraint asks for."""


def value(column: Column[Any], number: int) -> Any:
    kinds: list[tuple[type[TypeEngine[Any]], Any]] = [
        (Boolean, number % 2 == 1),
        (BigInteger, 2**62 + number),
        (Integer, number),
        (Float, 0.1 + number),
        (LargeBinary, bytes([0, 255, number % 256])),
        (JSON, ODD),
        (UtcDateTime, datetime(2026, 11, 21, 9, 30, 15, 123456, tzinfo=UTC) + timedelta(days=number)),
        (Date, date(2026, 11, 21) + timedelta(days=number)),
    ]
    if column.nullable and number == 0:
        return None
    text = FIXED.get(column.name, f"r{number}")
    return next((made for kind, made in kinds if isinstance(column.type, kind)), text)


@pytest.fixture
def source(url: str) -> str:
    """A database with rows of every table, the first of each with nothing where there may be nothing."""
    engine = open_writing(url, busy_timeout_s=1.0)
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            count = MANY if table.name == "lab" else EACH
            rows = [{column.name: value(column, number) for column in table.c} for number in range(count)]
            connection.execute(insert(table), rows)
    engine.dispose()
    return url


async def in_postgres(url: str) -> Rows:
    engine = open_postgres(check_url(url))
    async with engine.connect() as connection:
        found = {
            table.name: sorted(map(tuple, await connection.execute(across_labs(select(table)))), key=repr)
            for table in metadata.sorted_tables
        }
    await engine.dispose()
    return found


def in_sqlite(url: str) -> Rows:
    with open_reading(url, busy_timeout_s=1.0).connect() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(across_labs(select(table)))), key=repr)
            for table in metadata.sorted_tables
        }


def unheard(_table: str, _done: int, _total: int) -> None:
    pass


async def test_every_row_of_every_table_arrives_as_it_was(source: str, postgres: PostgresServer) -> None:
    target = postgres.new_database("moved")
    told: list[tuple[str, int, int]] = []
    rows = await transfer(source, target, lambda *what: told.append(what))
    before, after = in_sqlite(source), await in_postgres(target)
    assert repr(after) == repr(before)  # `==` does not see the order of keys, or that True is not 1
    assert rows == {name: len(found) for name, found in before.items()}
    assert rows["lab"] == MANY
    assert [what for what in told if what[0] == "lab"] == [
        ("lab", 0, MANY),
        ("lab", BATCH_ROWS, MANY),
        ("lab", MANY, MANY),
    ]
    await check(target)


async def test_a_database_that_holds_something_is_refused(source: str, postgres_url: str) -> None:
    await transfer(source, postgres_url, unheard)
    once = await in_postgres(postgres_url)
    with pytest.raises(ConfigurationError, match=r"holds data already \(table \w+\), and nothing was copied"):
        await transfer(source, postgres_url, unheard)
    assert await in_postgres(postgres_url) == once


async def test_a_server_on_either_database_is_refused(source: str, postgres_url: str) -> None:
    with occupied(source), pytest.raises(ConfigurationError, match="stop it"):
        await transfer(source, postgres_url, unheard)
    store = await Store.open(postgres_url)
    await store.ping()
    with pytest.raises(ConfigurationError, match="stop all servers"):
        await transfer(source, postgres_url, unheard)
    await store.close()
    assert not any((await in_postgres(postgres_url)).values())


async def test_a_row_that_does_not_fit_leaves_nothing_and_the_same_command_works_later(
    source: str, postgres_url: str
) -> None:
    async def rename(name: str) -> None:
        with open_writing(source, busy_timeout_s=1.0).begin() as connection:
            connection.exec_driver_sql("UPDATE webhook SET url = ? WHERE webhook_id = 'r1'", (name,))

    await rename("secret\0word")
    with pytest.raises(ConfigurationError, match="a row of table webhook") as refused:
        await transfer(source, postgres_url, unheard)
    assert "secret" not in refused.value.message
    assert not any((await in_postgres(postgres_url)).values())
    await rename("https://example.org")
    assert (await transfer(source, postgres_url, unheard))["webhook"] == EACH


CHANGED = """
    CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := 'other'; RETURN NEW; END $$;
    CREATE TRIGGER other BEFORE INSERT ON lab FOR EACH ROW WHEN (NEW.lab_id = 'r2') EXECUTE FUNCTION other();
"""
LOST = """
    CREATE FUNCTION lost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER lost BEFORE INSERT ON lab FOR EACH ROW WHEN (NEW.lab_id = 'r2') EXECUTE FUNCTION lost();
"""


@pytest.mark.parametrize("harm", [CHANGED, LOST])
async def test_what_is_not_read_back_as_it_was_written_is_not_kept(
    source: str, postgres: PostgresServer, postgres_url: str, harm: str
) -> None:
    postgres.sql(harm, postgres_url.rsplit("/", 1)[1])
    with pytest.raises(ConfigurationError, match="Table lab was not read back as it was written"):
        await transfer(source, postgres_url, unheard)
    assert not any((await in_postgres(postgres_url)).values())


async def test_a_copy_that_is_broken_off_leaves_nothing(source: str, postgres_url: str) -> None:
    def stop(table: str, done: int, _total: int) -> None:
        if (table, done) == ("lab", BATCH_ROWS):
            raise LookupError

    with pytest.raises(LookupError):
        await transfer(source, postgres_url, stop)
    assert not any((await in_postgres(postgres_url)).values())


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda folder, there, target: transfer(target, target, unheard), "unset LABS_DATABASE_URL"),
        (lambda folder, there, target: transfer(there, there, unheard), "must be PostgreSQL"),
        (lambda folder, there, target: transfer(sqlite_url(folder / "none"), target, unheard), "There is no database"),
        (lambda folder, there, target: transfer(there, f"{target}_none", unheard), "PostgreSQL cannot be reached"),
    ],
)
async def test_what_cannot_be_copied_is_said(
    url: str, postgres_url: str, tmp_path: Path, work: Callable[[Path, str, str], Awaitable[object]], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        await work(tmp_path, url, postgres_url)
