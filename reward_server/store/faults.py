"""Turns what a driver raises when the database cannot be used into `StoreUnavailable`.

Only trouble of the database itself counts: locked, full, read-only, damaged, gone. A broken constraint
or a wrong statement is a defect of ours and passes through unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from reward_server.errors import StoreUnavailable

_OUR_DEFECTS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
# Of a DBAPIError's kinds: what asyncpg knows no class of the DB-API for (a server that shuts down, a lock that was not
# given) is a plain one.
_LOCKED = ("55P03", "40P01")
_TROUBLE = (DBAPIError, PoolTimeout, OSError)


def is_trouble(error: BaseException) -> bool:
    """True if the database could not be used, as opposed to having been used wrongly."""
    return isinstance(error, _TROUBLE) and not isinstance(error, _OUR_DEFECTS)


def is_lock_wait(error: StoreUnavailable) -> bool:
    """True if it only was a lock that PostgreSQL did not give in time, or a deadlock that it ended."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError) and getattr(cause.orig, "sqlstate", None) in _LOCKED


@contextmanager
def store_faults() -> Iterator[None]:
    """Raise `StoreUnavailable` where the database failed, with the driver's error as its cause."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        if is_trouble(error):
            raise StoreUnavailable from error
        raise
