"""One server to a SQLite database.

Commands may open it beside a server; a second server may not: limits, locks and shared answers of the first live in
its process, and the two would know nothing of each other.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from reward_server.errors import ConfigurationError
from reward_server.store.engine import sqlite_file, unwritable

LOOK_S = 0.02
"""How often one that waits looks whether the database is free."""


@contextmanager
def occupied(url: str) -> Iterator[None]:
    """Hold the database against other servers; `ConfigurationError` if one has it. PostgreSQL takes any number."""
    database = sqlite_file(url)
    if database is None:
        yield
        return
    held = _opened(database)
    try:
        if not _took(held):
            raise _is_occupied(database, os.read(held, 20).decode(errors="replace").strip() or "unknown")
        yield
    finally:
        # Closing lets go; so does the death of the process.
        os.close(held)


def occupant(url: str) -> int | None:
    """The process of the server that has the database; None if none has it, or if that cannot be seen.

    Looks at what the process has open: a lock, taken to find out, could be in the way of a server that starts.
    """
    database = sqlite_file(url)
    if database is None:
        return None
    lock = _lock_of(database)
    try:
        pid = int(lock.read_text())
        held = any(lock.samefile(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.exists())
    except (OSError, ValueError):
        return None
    return pid if held else None


def require_free(url: str) -> None:
    """`ConfigurationError` at once if a server can be seen that has the database; `occupied` decides."""
    database, pid = sqlite_file(url), occupant(url)
    if database is not None and pid is not None:
        raise _is_occupied(database, str(pid))


@asynccontextmanager
async def succeeding(url: str) -> AsyncIterator[None]:
    """Wait until no server has the database, and hold it from then on; of several that wait one gets it."""
    database = sqlite_file(url)
    if database is None:
        yield
        return
    held = _opened(database)
    try:
        # The system has no wait for it that can be broken off; a look costs microseconds.
        while not _took(held):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        yield
    finally:
        os.close(held)


def _is_occupied(database: Path, pid: str) -> ConfigurationError:
    return ConfigurationError(
        f"A server (process {pid}) runs on {database.parent} already: stop it, give this one another folder "
        "with --data, or use PostgreSQL for several servers"
    )


def _opened(database: Path) -> int:
    try:
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(_lock_of(database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(database, error) from error


def _lock_of(database: Path) -> Path:
    return database.with_name(database.name + ".server")


def _took(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    os.ftruncate(held, 0)
    os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
    return True
