"""A copy of a database that is in use, as files in a folder, and back; what the files mean, `Contents` says.

SQLite is copied by its online backup: one state, however many write meanwhile. PostgreSQL's tables are copied in one
read-only transaction, in its own text format, so no tools of the same version are needed. Bringing back makes the
tables anew with the revisions of the copy; the next start of a server goes on from there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from reward_server.errors import ConfigurationError
from reward_server.store import backup_postgres
from reward_server.store.backup_postgres import VERSION_TABLE
from reward_server.store.engine import sqlite_file
from reward_server.store.migrate import migrate, revisions
from reward_server.store.occupancy import occupied

SQLITE, POSTGRES = "sqlite", "postgresql"
_FILE = "database.sqlite"
_COMPANIONS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Contents:
    """The contents of a copy."""

    engine: str
    revision: str
    tables: dict[str, list[str]]
    """The columns of each table in the order of its file; empty for SQLite, which is one file."""


async def copy_out(url: str, folder: Path) -> Contents:
    """Write a copy into an empty folder. Raises `ConfigurationError` where there is nothing to copy."""
    database = sqlite_file(url)
    if database is not None and not database.exists():
        raise ConfigurationError(f"There is no database at {database}: name its folder with --data or LABS_DATA")
    if database is None:
        revision, tables = await backup_postgres.copy_out(url, folder)
    else:
        revision, tables = await asyncio.to_thread(_copy_sqlite, database, folder / _FILE), {}
    if revision is None:
        raise ConfigurationError("The database is empty: there is nothing to back up")
    return Contents(POSTGRES if database is None else SQLITE, revision, tables)


async def copy_in(url: str, folder: Path, contents: Contents, *, force: bool) -> None:
    """Make the database what the copy says.

    Raises:
        ConfigurationError: the copy is of another engine or of a newer version; a server runs on the database; or the
            database holds something, and `force` is not set.
    """
    database = sqlite_file(url)
    engine = POSTGRES if database is None else SQLITE
    if contents.engine != engine:
        raise ConfigurationError(f"The backup is of {contents.engine}, and the settings name a {engine} database")
    if contents.revision not in revisions():
        raise ConfigurationError("The backup was made by a newer version of Labs: install that one, or a later one")
    if database is None:
        await backup_postgres.make_room(url, list(contents.tables), force=force)
        await migrate(url, contents.revision)
        await backup_postgres.copy_in(url, folder, contents.tables)
        return
    if database.exists() and not force:
        raise ConfigurationError(f"{database} exists: --force replaces it with the backup, and what it holds is lost")
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with occupied(url):
        await asyncio.to_thread(_put_sqlite, folder / _FILE, database)


@asynccontextmanager
async def alone(url: str) -> AsyncIterator[None]:
    """No server uses the database; `ConfigurationError` if one does. SQLite takes none meanwhile, either."""
    if sqlite_file(url) is None:
        await backup_postgres.require_unused(url)
        yield
        return
    with occupied(url):
        yield


def _copy_sqlite(database: Path, copy: Path) -> str | None:
    """The revision that the copy has."""
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    source, target = sqlite3.connect(f"file:{database}?mode=ro", uri=True), sqlite3.connect(copy)
    try:
        source.backup(target)
        tables = [name for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if VERSION_TABLE not in tables:
            return None
        revision_row = target.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if revision_row is None else str(revision_row[0])
    except sqlite3.Error as error:
        raise ConfigurationError(f"{database} cannot be copied: ./labs doctor says what is wrong with it") from error
    finally:
        source.close()
        target.close()


def _put_sqlite(copy: Path, database: Path) -> None:
    draft = database.with_name(f"{database.name}.restoring")
    shutil.copyfile(copy, draft)
    draft.chmod(0o600)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    # A write-ahead log of the old database would be read into the new one.
    for companion in _COMPANIONS:
        database.with_name(database.name + companion).unlink(missing_ok=True)
    draft.replace(database)
