"""A lane: one database connection, and the order in which work is done on it.

Units of work, readers and the writer know lanes alone; whether a lane is a thread (SQLite) or a task (PostgreSQL) is
decided where the store is opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

Result = TypeVar("Result")


class Lane(Protocol):
    """Runs functions over a plain connection, one after the other, each to its end."""

    def submit(self, work: Callable[[Connection], Result]) -> asyncio.Future[Result]:
        """Have this done next; cancelling whoever waits does not interrupt it."""

    async def reset(self) -> None:
        """Undo what was not committed and forget the connection; the next work opens another."""

    async def close(self) -> None:
        """Close for good; closing again does nothing."""


OpenLane = Callable[[str], Lane]
"""Makes a lane; its name shows in thread lists and in the database's own list of connections."""
