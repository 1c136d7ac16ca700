"""The few statements that SQLite and PostgreSQL spell differently."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

Upsert: TypeAlias = "postgresql.Insert | sqlite.Insert"

_LOCK = text("SELECT pg_advisory_xact_lock(:number)")


class json_texts(FunctionElement[str]):  # noqa: N801 (a function of SQL)
    """The entries of a JSON list of texts, as rows with the column `value`; none if the list is NULL."""

    inherit_cache = True


@compiles(json_texts)
def _of_postgresql(element: json_texts, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text({compiler.process(element.clauses, **options)})"


@compiles(json_texts, "sqlite")
def _of_sqlite(element: json_texts, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


def upsert(connection: Connection, table: Table) -> Upsert:
    """An INSERT that knows `on_conflict_…`."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def one_at_a_time(connection: Connection, name: str) -> None:
    """Until this transaction ends, whoever comes here with this name waits; on SQLite every writer does anyway."""
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK, {"number": lock_number(name)})


def lock_number(name: str) -> int:
    """The number of an advisory lock: 63 bits of a hash, the same in every process."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def write_nothing(connection: Connection) -> None:
    """Change the database without changing anything in it: a commit that has to reach the disk all the same."""
    if connection.dialect.name != "sqlite":
        # A transaction with a number is logged when it ends.
        connection.exec_driver_sql("SELECT pg_current_xact_id()")
        return
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    connection.exec_driver_sql(f"PRAGMA user_version = {int(version)}")
