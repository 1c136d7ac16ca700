"""The one way repositories reach the database, for readers and for the writer.

They hand in functions over a plain SQLAlchemy connection; where those run is decided here. Work that has
begun is always waited for, even when the task that asked for it is cancelled: the connection, and with
it the transaction that others share, has to be left in a known state. After a failure the session takes
no more work; it can only be left.

A unit of work that waits for nothing but the store can run as a block: on the connection's thread, over a
`DirectSession`, in one trip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from reward_server.store.faults import store_faults
from reward_server.store.lane import Lane

Result = TypeVar("Result")


class Session(Protocol):
    """Does the work of one unit, piece by piece, in a transaction that somebody else will end."""

    async def run(self, work: Callable[[Connection], Result]) -> Result:
        """Have one piece of work done."""


class LaneSession:
    """A `Session` that hands each piece over to a lane, and waits for it."""

    def __init__(self, lane: Lane, *, begin: Callable[[Connection], object] | None = None) -> None:
        """`begin` runs just before the first piece of work, if there is any."""
        self._lane = lane
        self._begin = begin
        self._running: asyncio.Future[Any] | None = None
        self._usable = True

    async def run(self, work: Callable[[Connection], Result]) -> Result:
        """Run one piece of work on the lane's thread; return its result."""
        if not self._usable:
            raise RuntimeError("this unit of work is busy or over, or a part of it failed")
        self._usable = False
        begin, self._begin = self._begin, None
        running = self._lane.submit(work if begin is None else _both(begin, work))
        self._running = running
        with store_faults():
            result = await asyncio.shield(running)
        self._usable = True
        return result

    @property
    def began(self) -> bool:
        """True if any work was handed in."""
        return self._running is not None

    async def settle(self) -> None:
        """Refuse further work and wait for the piece that may still be running."""
        self._usable = False
        if self._running is None:
            return
        if not self._running.done():
            await asyncio.wait([self._running])
        # An abandoned failure is asked for by nobody; reading it keeps the event loop from reporting it.
        self._running.exception()


class DirectSession:
    """A `Session` for a block, which runs on the connection's thread: each piece is done at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._usable = True

    async def run(self, work: Callable[[Connection], Result]) -> Result:
        """Run one piece of work here and now; return its result."""
        if not self._usable:
            raise RuntimeError("this unit of work is over, or a part of it failed")
        self._usable = False
        with store_faults():
            result = work(self._connection)
        self._usable = True
        return result


def done_at_once(block: Coroutine[Any, Any, Result]) -> Result:
    """The result of a block that waits for nothing but calls over a `DirectSession`."""
    try:
        block.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    block.close()
    raise RuntimeError("a block waits for nothing but the store")


def _both(
    begin: Callable[[Connection], object], work: Callable[[Connection], Result]
) -> Callable[[Connection], Result]:
    def both(connection: Connection) -> Result:
        begin(connection)
        return work(connection)

    return both
