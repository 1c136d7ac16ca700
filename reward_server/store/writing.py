"""Notes that a piece of work is storing something at this moment: it is not cut short when the server stops.

What is handed to the database may be stored, whatever becomes of who waits for it. Only its outcome says so, and the
answer has to be that outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Writes:
    """The writes that a piece of work, and all that it started, has handed to the database and not heard of again."""

    def __init__(self) -> None:
        self.under_way = 0


_WRITES: ContextVar[Writes | None] = ContextVar("writes", default=None)


@contextmanager
def noting(writes: Writes) -> Iterator[None]:
    """Note what is written in this block, by this task and those it starts."""
    token = _WRITES.set(writes)
    try:
        yield
    finally:
        _WRITES.reset(token)


@contextmanager
def writing() -> Iterator[None]:
    """Something is handed to the database, until the block is left."""
    writes = _WRITES.get()
    if writes is None:
        yield
        return
    writes.under_way += 1
    try:
        yield
    finally:
        writes.under_way -= 1
