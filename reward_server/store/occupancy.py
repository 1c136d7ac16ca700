"""One server to a SQLite database.

Commands may open it beside a server; a second server may not: limits, locks and shared answers of the first live in
its process, and the two would know nothing of each other.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from reward_server.errors import ConfigurationError
from reward_server.store.engine import sqlite_file


@contextmanager
def occupied(url: str) -> Iterator[None]:
    """Hold the database against other servers; `ConfigurationError` if one has it. PostgreSQL takes any number."""
    database = sqlite_file(url)
    if database is None:
        yield
        return
    held = os.open(database.with_name(database.name + ".server"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(held, str(database.parent))
        yield
    finally:
        # Closing lets go; so does the death of the process.
        os.close(held)


def _take(held: int, folder: str) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(held, 20).decode(errors="replace").strip() or "unknown"
        raise ConfigurationError(
            f"A server (process {pid}) runs on {folder} already: stop it, give this one another folder with --data, "
            "or use PostgreSQL for several servers"
        ) from None
    os.ftruncate(held, 0)
    os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
