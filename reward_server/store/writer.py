"""One writer for the process: units of work run one after the other and share a commit.

Whoever waits while another unit of work runs joins the same transaction, each behind a SAVEPOINT of
its own, so a failed one takes nobody along. Nobody is told "done" before the COMMIT that holds his work
has returned. Because only this task begins, ends and commits, a cancelled caller can neither leave a
transaction open nor interrupt one.

A block, which is one function (`do`), costs less: the blocks of a group run in one trip to the connection, from BEGIN
to COMMIT.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from reward_server.errors import StoreUnavailable
from reward_server.store.faults import store_faults
from reward_server.store.lane import Lane
from reward_server.store.session import LaneSession

Result = TypeVar("Result")
Kind = TypeVar("Kind", "_Ticket", "_Block")

GROUP_LIMIT = 64
"""Units of work in one commit: enough to spread the cost of an fsync, few enough that nobody waits long."""

UNSURE = "The database failed while it stored this. Send the same request again: what was stored is answered, once."
"""A server that goes away during COMMIT does not say whether it was done."""


class Writer:
    """Hands the writing connection to one unit of work after the other."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._queue: deque[_Ticket | _Block] = deque()
        self._woken = asyncio.Event()
        self._holder: asyncio.Task[Any] | None = None
        self._closed = False
        self._task = asyncio.create_task(self._serve(), name="store-writer")

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[LaneSession]:
        """A session whose work is durable when the block has been left, or not there at all."""
        if self._closed:
            raise StoreUnavailable
        if self._holder is asyncio.current_task():
            raise RuntimeError("a unit of work inside a unit of work would wait for itself")
        ticket = _Ticket()
        self._enqueue(ticket)
        try:
            session = await ticket.granted
            self._holder = asyncio.current_task()
            yield session
        except BaseException:
            self._leave(ticket, keep=False)
            raise
        self._leave(ticket, keep=True)
        await asyncio.shield(ticket.committed)

    async def do(self, work: Callable[[Connection], Result]) -> Result:
        """Run a function in a transaction; return its result once that is durable."""
        if self._closed:
            raise StoreUnavailable
        block = _Block(work)
        self._enqueue(block)
        with store_faults():
            result: Result = await block.committed
        return result

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        self._closed = True
        self._woken.set()
        await self._task

    def _enqueue(self, ticket: _Ticket | _Block) -> None:
        self._queue.append(ticket)
        self._woken.set()

    def _leave(self, ticket: _Ticket, *, keep: bool) -> None:
        if self._holder is asyncio.current_task():
            self._holder = None
        if not ticket.finished.done():
            ticket.finished.set_result(keep)

    async def _serve(self) -> None:
        try:
            while (ticket := await self._next()) is not None:
                await (self._serve_blocks(ticket) if isinstance(ticket, _Block) else self._serve_group(ticket))
        finally:
            self._closed = True
            self._refuse_queued()

    async def _next(self) -> _Ticket | _Block | None:
        """The unit that waits longest, when there is one; None when nobody will come any more."""
        while not self._queue and not self._closed:
            self._woken.clear()
            await self._woken.wait()
        return self._queue.popleft() if self._queue else None

    async def _serve_blocks(self, first: _Block) -> None:
        group = [first]
        while len(group) < GROUP_LIMIT and (block := self._next_waiting(_Block)) is not None:
            group.append(block)
        # Nobody waits any more for what was cancelled before it began.
        group = [job for job in group if not job.committed.done()]
        if not group:
            return
        trip = _Trip([job.work for job in group])
        try:
            outcomes = await self._lane.submit(trip.run)
        except (SQLAlchemyError, OSError) as error:
            await self._lane.reset()
            for job in group:
                job.refuse(error, UNSURE if trip.committing else None)
            self._refuse_queued(error)
        else:
            for job, outcome in zip(group, outcomes, strict=True):
                job.confirm(outcome)
        finally:
            # Only where this task is ended from outside is anybody left to be told; the trip may go on.
            for job in group:
                job.refuse(message=UNSURE)

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
        if not await self._run(group[0], LaneSession(self._lane)):
            # It was alone so far and had no savepoint: everything there is to undo is its own.
            await self._lane.submit(Connection.rollback)
            return
        while len(group) < GROUP_LIMIT and (ticket := self._next_waiting(_Ticket)) is not None:
            group.append(ticket)
            session = LaneSession(self._lane, begin=_savepoint)
            if not await self._run(ticket, session) and session.began:
                await self._lane.submit(_undo_to_savepoint)

    async def _run(self, ticket: _Ticket, session: LaneSession) -> bool:
        """Let one caller work; whether the work is to be kept."""
        if ticket.granted.cancelled():
            return False
        ticket.granted.set_result(session)
        try:
            return await ticket.finished
        finally:
            await session.settle()

    def _next_waiting(self, kind: type[Kind]) -> Kind | None:
        """The next in the queue, if it is of this kind: those of one kind share a transaction."""
        first = self._queue[0] if self._queue else None
        if not isinstance(first, kind):
            return None
        self._queue.popleft()
        return first

    def _refuse_queued(self, cause: BaseException | None = None) -> None:
        while self._queue:
            self._queue.popleft().refuse(cause)


class _Ticket:
    """One unit of work, from joining the queue to the commit."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.granted: asyncio.Future[LaneSession] = loop.create_future()
        self.finished: asyncio.Future[bool] = loop.create_future()
        """True if the work is to be kept."""
        self.committed: asyncio.Future[None] = loop.create_future()

    def confirm(self) -> None:
        if not self.committed.done():
            self.committed.set_result(None)

    def refuse(self, cause: BaseException | None = None, message: str | None = None) -> None:
        """Fail whatever the caller is waiting for, with an error object of his own."""
        _refuse(self.committed if self.granted.done() else self.granted, cause, message)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a function, or the error that it raised."""

    value: Any = None
    error: Exception | None = None


class _Block:
    """A unit of work that is one function: a block."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.committed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def confirm(self, outcome: _Outcome) -> None:
        if self.committed.done():
            return
        if outcome.error is None:
            self.committed.set_result(outcome.value)
        else:
            self.committed.set_exception(outcome.error)

    def refuse(self, cause: BaseException | None = None, message: str | None = None) -> None:
        """Fail it, with an error object of its own."""
        _refuse(self.committed, cause, message)


class _Trip:
    """A group of blocks and the commit that they share, on the connection's thread."""

    def __init__(self, works: Sequence[Callable[[Connection], Any]]) -> None:
        self._works = works
        self.committing = False

    def run(self, connection: Connection) -> list[_Outcome]:
        """One outcome each; those that failed leave no trace, and take nobody along."""
        connection.begin()
        outcomes = [self._outcome(work, connection) for work in self._works]
        self.committing = True
        connection.commit()
        return outcomes

    def _outcome(self, work: Callable[[Connection], Any], connection: Connection) -> _Outcome:
        is_alone = len(self._works) == 1
        if not is_alone:
            _savepoint(connection)
        try:
            return _Outcome(work(connection))
        except Exception as error:  # noqa: BLE001 (handed to whoever waits)
            if is_alone:
                connection.rollback()
            else:
                _undo_to_savepoint(connection)
            return _Outcome(error=error)


def _refuse(waited_for: asyncio.Future[Any], cause: BaseException | None, message: str | None) -> None:
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
