"""Answers every request with an `Idempotency-Key` once: a retry waits for, or is given, the same answer.

Between replicas a lock makes the second wait for the first; where Redis is lost, the database decides whose answer is
kept, and the other one is given that.

The work runs in a task of its own, so a client that goes away neither loses nor halves it (scoring without a key, which
nobody can come back for, may be cancelled instead). The answer is kept in the very transaction that makes its effect
durable. Failures are not kept: whoever retries after one is served afresh.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.errors import Conflict, IdempotencyMismatch, LabsError, Stopped, Unavailable
from reward_server.logs.logger import get_logger
from reward_server.shared_state.locks import LocalLocks, LockBusy, Locks
from reward_server.store.records import StoredAnswer
from reward_server.store.store import Block, Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.store.writing import Writes, noting

log = get_logger(__name__)
T = TypeVar("T")
STOP_EVERY_S = 0.05
"""How often is looked whether what was being stored is, when the server stops."""
Body = dict[str, Any]
"""A response body without its `request_id`."""
Keep = Callable[[UnitOfWork, Body], Coroutine[Any, Any, None]]
"""Stores the answer; to be called in the transaction that stores its effect."""
_Look: TypeAlias = "Callable[[Block[StoredAnswer | None]], Awaitable[StoredAnswer | None]]"
Work = Callable[[Keep], Coroutine[Any, Any, Body]]
"""Does what a request asks for, keeps the answer with its effect if there is one, and returns it."""


def fingerprint(*parts: object) -> str:
    """A digest that is equal for equal JSON values."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


class DetachedWork:
    """Runs work that is finished even when whoever asked for it goes away, if it does not take for ever."""

    def __init__(self, limit_s: float | None = None) -> None:
        self._limit_s = limit_s
        self._tasks: dict[asyncio.Task[Any], Writes] = {}
        self._is_stopped = False

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin; the task is kept alive until it is done, or stopped (`Unavailable`) because it took too long."""
        writes = Writes()
        task = asyncio.create_task(self._limited(work, writes))
        self._tasks[task] = writes
        task.add_done_callback(self._done)
        return task

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Begin and wait; being cancelled stops the waiting, not the work."""
        return await self.outcome(self.start(work))

    async def outcome(self, task: asyncio.Task[T]) -> T:
        """Wait for work that was begun; being cancelled stops the waiting, unless the work is being stopped as well.

        Then only its outcome says whether it was stored, and it is there in a moment.
        """
        while True:
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.done() or not self._is_stopped:
                    raise

    async def drain(self, timeout_s: float) -> int:
        """Wait for what is running, and stop what still is after the timeout; how much that was."""
        if not self._tasks:
            return 0
        await asyncio.wait(self._tasks, timeout=timeout_s)
        return await self.stop()

    async def stop(self) -> int:
        """Stop what runs and take no more; what is being stored is waited for. How much was stopped."""
        self._is_stopped = True
        stopped: set[asyncio.Task[Any]] = set()
        while self._tasks:
            for task, writes in self._tasks.items():
                if task not in stopped and not writes.under_way:
                    task.cancel()
                    stopped.add(task)
            await asyncio.wait(self._tasks, timeout=STOP_EVERY_S)
        if stopped:
            log.warning("work_given_up", count=len(stopped))
        return len(stopped)

    async def _limited(self, work: Coroutine[Any, Any, T], writes: Writes) -> T:
        if self._is_stopped:
            work.close()
            raise Stopped
        try:
            async with asyncio.timeout(self._limit_s):
                with noting(writes):
                    return await work
        except TimeoutError:
            raise Unavailable("The response took longer than allowed; nothing was recorded.") from None
        except asyncio.CancelledError:
            if self._is_stopped:
                raise Stopped from None
            raise

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        # Nobody may be waiting any more; reading it keeps the event loop from reporting it as lost.
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, LabsError):
            log.error("work_failed", error=type(error).__name__)


@dataclass(frozen=True)
class _Running:
    fingerprint: str
    task: asyncio.Task[Body]


class Idempotency:
    """One answer per lab and key, for as long as answers are kept."""

    def __init__(self, store: Store, clock: Clock, outliving: DetachedWork, locks: Locks | None = None) -> None:
        self._store = store
        self._locks = LocalLocks() if locks is None else locks
        self._clock = clock
        self._outliving = outliving
        self._running: dict[tuple[str, str], _Running] = {}

    async def answer(
        self, lab: Lab, key: str | None, content: Callable[[], object], work: Work, *, outlives: bool = True
    ) -> Body:
        """The answer to a request; `work` runs unless an equal request with this key was or is being answered.

        `content` is all that makes requests equal; it is asked for only when there is a key. What an API key may use
        is part of it, so that no key gets an answer that another key of its lab was allowed to have. Without a key,
        work that does not outlive who asked for it is cancelled with them: nobody could come back for its answer.
        """
        if key is None:
            return await (self._outliving.run(work(_keep_nothing)) if outlives else work(_keep_nothing))
        digest = fingerprint(content(), lab.collections)
        running = self._running.get((lab.lab_id, key))
        if running is None:
            running = self._begin(lab.lab_id, key, digest, work)
        elif running.fingerprint != digest:
            raise IdempotencyMismatch
        return await self._outliving.outcome(running.task)

    def _begin(self, lab_id: str, key: str, digest: str, work: Work) -> _Running:
        slot = (lab_id, key)
        task = self._outliving.start(self._once(lab_id, key, digest, work))
        task.add_done_callback(lambda _: self._running.pop(slot, None))
        running = self._running[slot] = _Running(digest, task)
        return running

    async def _once(self, lab_id: str, key: str, digest: str, work: Work) -> Body:
        try:
            async with self._locks.hold(f"answer/{lab_id}/{fingerprint(key)}", digest):
                stored = await self._stored(self._store.read, lab_id, key, digest)
                return await self._work(lab_id, key, digest, work) if stored is None else stored
        except LockBusy:
            raise IdempotencyMismatch from None
        except Conflict:
            # Without a lock another replica was faster; what this one did was undone with the answer it did not keep.
            # Read as a writer: the faster one may still wait for its commit, which this then waits for, too.
            stored = await self._stored(self._store.write, lab_id, key, digest)
            if stored is None:
                raise
            return stored

    async def _stored(self, look: _Look, lab_id: str, key: str, digest: str) -> Body | None:
        stored = await look(lambda unit: unit.answers.get(lab_id, key, self._clock.now()))
        if stored is None:
            return None
        if stored.fingerprint != digest:
            raise IdempotencyMismatch
        return stored.body

    async def _work(self, lab_id: str, key: str, digest: str, work: Work) -> Body:
        kept = False

        async def keep(unit: UnitOfWork, body: Body) -> None:
            nonlocal kept
            kept = True
            now = self._clock.now()
            await unit.answers.put(
                StoredAnswer(lab_id=lab_id, key=key, fingerprint=digest, status=200, body=body, created_at=now)
            )

        body = await work(keep)
        if not kept:
            # It changed nothing: a turn that was answered before, or by a request that this one joined.
            await self._store.write(lambda unit: keep(unit, body))
        return body


async def _keep_nothing(_unit: UnitOfWork, _body: Body) -> None:
    """Without a key there is nothing to keep."""
