"""One writer for the process: units of work run one after the other and share a commit.

Whoever waits while another unit of work runs joins the same transaction, each behind a SAVEPOINT of
its own, so a failed one takes nobody along. Nobody is told "done" before the COMMIT that holds his work
has returned. Because only this task begins, ends and commits, a cancelled caller can neither leave a
transaction open nor interrupt one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import StoreUnavailable
from reward_server.store.lane import Lane
from reward_server.store.session import Session

GROUP_LIMIT = 64
"""Units of work in one commit: enough to spread the cost of an fsync, few enough that nobody waits long."""

UNSURE = "The database failed while it stored this. Send the same request again: what was stored is answered, once."
"""A server that goes away during COMMIT does not say whether it was done."""


class Writer:
    """Hands the writing connection to one unit of work after the other."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._queue: asyncio.Queue[_Ticket | None] = asyncio.Queue()
        self._holder: asyncio.Task[Any] | None = None
        self._closed = False
        self._task = asyncio.create_task(self._serve(), name="store-writer")

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Session]:
        """A session whose work is durable when the block has been left, or not there at all."""
        if self._closed:
            raise StoreUnavailable
        if self._holder is asyncio.current_task():
            raise RuntimeError("a unit of work inside a unit of work would wait for itself")
        ticket = _Ticket()
        self._queue.put_nowait(ticket)
        try:
            session = await ticket.granted
            self._holder = asyncio.current_task()
            yield session
        except BaseException:
            self._leave(ticket, keep=False)
            raise
        self._leave(ticket, keep=True)
        await asyncio.shield(ticket.committed)

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        if not self._closed:
            self._closed = True
            self._queue.put_nowait(None)
        await self._task

    def _leave(self, ticket: _Ticket, *, keep: bool) -> None:
        if self._holder is asyncio.current_task():
            self._holder = None
        if not ticket.finished.done():
            ticket.finished.set_result(keep)

    async def _serve(self) -> None:
        try:
            while (ticket := await self._queue.get()) is not None:
                await self._serve_group(ticket)
        finally:
            self._closed = True
            self._refuse_queued()

    async def _serve_group(self, first: _Ticket) -> None:
        group = [first]
        committing = False
        try:
            await self._lane.submit(_begin)
            await self._fill(group)
            committing = True
            await self._lane.submit(Connection.commit)
        except (SQLAlchemyError, OSError) as error:
            await self._lane.reset()
            for ticket in group:
                ticket.refuse(error, UNSURE if committing else None)
            # They have waited as long as this group and would fail the same way, one timeout after the other.
            self._refuse_queued(error)
        else:
            for ticket in group:
                ticket.confirm()

    async def _fill(self, group: list[_Ticket]) -> None:
        """Run units of work until nobody waits; those to be dropped leave no trace in the transaction."""
        if not await self._run(group[0], Session(self._lane)):
            # It was alone so far and had no savepoint: everything there is to undo is its own.
            await self._lane.submit(Connection.rollback)
            return
        while len(group) < GROUP_LIMIT and (ticket := self._next_waiting()) is not None:
            group.append(ticket)
            session = Session(self._lane, begin=_savepoint)
            if not await self._run(ticket, session) and session.began:
                await self._lane.submit(_undo_to_savepoint)

    async def _run(self, ticket: _Ticket, session: Session) -> bool:
        """Let one caller work; whether the work is to be kept."""
        if ticket.granted.cancelled():
            return False
        ticket.granted.set_result(session)
        try:
            return await ticket.finished
        finally:
            await session.settle()

    def _next_waiting(self) -> _Ticket | None:
        if self._queue.empty():
            return None
        ticket = self._queue.get_nowait()
        if ticket is None:
            # The sentinel of `close`: it has to be seen by the serving loop.
            self._queue.put_nowait(None)
        return ticket

    def _refuse_queued(self, cause: BaseException | None = None) -> None:
        while (ticket := self._next_waiting()) is not None:
            ticket.refuse(cause)


class _Ticket:
    """One unit of work, from joining the queue to the commit."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.granted: asyncio.Future[Session] = loop.create_future()
        self.finished: asyncio.Future[bool] = loop.create_future()
        """True if the work is to be kept."""
        self.committed: asyncio.Future[None] = loop.create_future()

    def confirm(self) -> None:
        if not self.committed.done():
            self.committed.set_result(None)

    def refuse(self, cause: BaseException | None = None, message: str | None = None) -> None:
        """Fail whatever the caller is waiting for, with an error object of his own."""
        waited_for: asyncio.Future[Any] = self.committed if self.granted.done() else self.granted
        if not waited_for.done():
            error = StoreUnavailable(message)
            error.__cause__ = cause
            waited_for.set_exception(error)
            # The caller may be gone; reading it keeps the event loop from reporting it.
            waited_for.exception()


def _begin(connection: Connection) -> None:
    connection.begin()


# Savepoints are not released one by one: COMMIT ends them all, and two statements less is a fifth of a turn's cost.
# Those of one name stack; ROLLBACK TO undoes the work since the last one.
def _savepoint(connection: Connection) -> None:
    connection.exec_driver_sql("SAVEPOINT unit")


def _undo_to_savepoint(connection: Connection) -> None:
    connection.exec_driver_sql("ROLLBACK TO SAVEPOINT unit")
