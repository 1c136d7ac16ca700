"""Brings a database to the schema of this version, or creates it.

Safe when several processes start at once: a lock (a file beside a SQLite database, an advisory lock in PostgreSQL)
lets one migrate and the others find it done. A revision is applied whole or not at all. A database that a newer
version has written is refused, not guessed at.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.store import postgres
from reward_server.store.dialects import lock_number
from reward_server.store.engine import check_url, open_migrating, sqlite_file, unwritable
from reward_server.store.faults import store_faults

LOCK_WAIT_S = 60.0
_POLL_S = 0.05
_WAITED = "Another process has been migrating the database for a minute."
_TAKE_LOCK = text("SELECT pg_advisory_xact_lock(:number)")
_LOCK_NOT_GIVEN = "55P03"

Action = Callable[[Config], None]


async def migrate(url: str, revision: str = "head") -> None:
    """Upgrade to a revision, creating the database and its directory where they are missing."""
    await _run(url, lambda config: command.upgrade(config, revision))


async def downgrade(url: str, revision: str) -> None:
    """Go back to an older revision; `base` is the empty database. What that drops, `drops` says."""
    await _run(url, lambda config: command.downgrade(config, revision))


async def require_known(url: str) -> None:
    """`ConfigurationError` if a newer version has written the database; changes nothing in it."""
    await _run(url, command.current)


async def check(url: str) -> None:
    """`ConfigurationError` if the tables in the code are not those that the revisions make."""
    await _run(url, command.check)


async def current(url: str) -> str | None:
    """The revision that the database has; None for an empty one."""
    at_revisions: list[str | None] = []
    await _run(url, lambda config: at_revisions.append(_revision_of(config)))
    return at_revisions[0]


def revisions() -> list[str]:
    """The revisions that this version knows, the oldest first."""
    return [script.revision for script in reversed(list(_scripts().walk_revisions()))]


def drops(revision: str, since: str | None = None) -> list[str]:
    """The losses of a downgrade to `revision`, the newest first: the `DROPS` of every revision that it undoes."""
    lost = []
    for script in _scripts().iterate_revisions(since or "head", revision):
        lost.append(f"{script.revision}: {script.module.DROPS}")
    return lost


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    # `check` reports on stdout; the outcome is enough.
    config = Config(stdout=io.StringIO())
    # The package form finds the scripts in a checkout and in an installed wheel alike.
    config.set_main_option("script_location", "migrations:")
    return config


def _revision_of(config: Config) -> str | None:
    return MigrationContext.configure(config.attributes["connection"]).get_current_revision()


async def _run(url: str, action: Action) -> None:
    await asyncio.to_thread(_run_blocking, url, action)


def _run_blocking(url: str, action: Action) -> None:
    try:
        if sqlite_file(url) is None:
            asyncio.run(_run_on_postgres(url, action))
        else:
            _run_on_sqlite(url, action)
    except CommandError as error:
        raise ConfigurationError(f"The database schema does not fit this version: {error}") from error


def _run_on_sqlite(url: str, action: Action) -> None:
    with _alone(url):
        engine = open_migrating(url, busy_timeout_s=LOCK_WAIT_S)
        with store_faults(), engine.begin() as connection:
            _apply(connection, action)
            if connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
                raise ConfigurationError("The migration would leave rows that refer to nothing; it was undone.")


async def _run_on_postgres(url: str, action: Action) -> None:
    engine = postgres.open_migrating(check_url(url), lock_wait_s=LOCK_WAIT_S)
    try:
        with store_faults():
            async with engine.begin() as connection:
                await connection.run_sync(_lock_and_apply, action)
    except StoreUnavailable as error:
        raise ConfigurationError(_postgres_trouble(error.__cause__)) from error
    finally:
        await engine.dispose()


def _postgres_trouble(cause: BaseException | None) -> str:
    """Advice about the failure; a driver's own words may hold the URL."""
    if isinstance(cause, DBAPIError) and getattr(cause.orig, "sqlstate", None) == _LOCK_NOT_GIVEN:
        return _WAITED
    return "PostgreSQL cannot be reached, or refuses this user: look at LABS_DATABASE_URL and at the server's log."


def _lock_and_apply(connection: Connection, action: Action) -> None:
    connection.execute(_TAKE_LOCK, {"number": lock_number("labs/migrate")})
    _apply(connection, action)


def _apply(connection: Connection, action: Action) -> None:
    config = _config()
    config.attributes["connection"] = connection
    action(config)


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """Keep other processes from migrating the same SQLite database meanwhile."""
    database = Path(str(sqlite_file(url)))
    try:
        lock = _lock(database)
    except OSError as error:
        raise unwritable(database, error) from error
    try:
        yield
    finally:
        # Closing releases the lock; so does the death of the process.
        os.close(lock)


def _lock(database: Path) -> int:
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(database.with_name(database.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # Made here, for its owner alone; SQLite gives its other files the same mode.
    os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                raise ConfigurationError(_WAITED) from None
            time.sleep(_POLL_S)
        else:
            return lock
