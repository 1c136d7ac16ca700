"""Brings a database to the schema of this version, or creates it.

Safe when several processes start at once: a lock file beside the database lets one migrate and the others
find it done. A revision is applied whole or not at all. A database that a newer version has
written is refused, not guessed at.
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
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text

from reward_server.errors import ConfigurationError
from reward_server.store.engine import check_url, open_migrating
from reward_server.store.faults import store_faults

LOCK_WAIT_S = 60.0
_POLL_S = 0.05


async def migrate(url: str, revision: str = "head") -> None:
    """Upgrade to a revision, creating the database and its directory where they are missing."""
    await _run(url, lambda config: command.upgrade(config, revision))


async def downgrade(url: str, revision: str) -> None:
    """Go back to an older revision; `base` is the empty database."""
    await _run(url, lambda config: command.downgrade(config, revision))


async def require_known(url: str) -> None:
    """`ConfigurationError` if a newer version has written the database; changes nothing in it."""
    await _run(url, command.current)


async def check(url: str) -> None:
    """`ConfigurationError` if the tables in the code are not those that the revisions make."""
    await _run(url, command.check)


async def _run(url: str, action: Callable[[Config], None]) -> None:
    await asyncio.to_thread(_run_blocking, url, action)


def _run_blocking(url: str, action: Callable[[Config], None]) -> None:
    with _alone(url):
        engine = open_migrating(url, busy_timeout_s=LOCK_WAIT_S)
        try:
            with store_faults(), engine.begin() as connection:
                _apply(connection, action)
        except CommandError as error:
            raise ConfigurationError(f"The database schema does not fit this version: {error}") from error


def _apply(connection: Connection, action: Callable[[Config], None]) -> None:
    # `check` reports on stdout; the outcome is enough.
    config = Config(stdout=io.StringIO())
    # The package form finds the scripts in a checkout and in an installed wheel alike.
    config.set_main_option("script_location", "migrations:")
    config.attributes["connection"] = connection
    action(config)
    if connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
        raise ConfigurationError("The migration would leave rows that refer to nothing; it was undone.")


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """Keep other processes from migrating the same database meanwhile."""
    database = Path(str(check_url(url).database))
    try:
        lock = _lock(database)
    except OSError as error:
        raise ConfigurationError(
            f"{database.parent} cannot be written ({error.strerror}): give another folder with --data or LABS_DATA"
        ) from error
    try:
        yield
    finally:
        # Closing releases the lock; so does the death of the process.
        os.close(lock)


def _lock(database: Path) -> int:
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(database.with_name(database.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                raise ConfigurationError("Another process has been migrating the database for a minute.") from None
            time.sleep(_POLL_S)
        else:
            return lock
