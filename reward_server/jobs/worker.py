"""A worker: takes slices of items under a lease, has them done, keeps the lease meanwhile, and never gives up.

Several workers may run, in the server and as processes of their own (`labs worker`). One that is killed loses its
lease after a while, and others take its items. An item that failed in passing waits longer after every attempt; after
`MAX_ATTEMPTS` it is dead, and its lab may have it retried.

A job whose lab has used up its day waits for the next one. It is looked at again now and then, because the operator may
give the lab more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from reward_server.auth.lab import Lab
from reward_server.auth.request_context import set_request_context
from reward_server.auth.scopes import Scope
from reward_server.clock import Clock, next_midnight
from reward_server.errors import (
    BudgetExhausted,
    BudgetTooSmall,
    ComputeExhausted,
    LabsError,
    LeaseLost,
    StoreUnavailable,
)
from reward_server.jobs.kinds import JobItem, JobKind, Work, failed, failed_by, passing_codes
from reward_server.limits.fair_threads import working_for
from reward_server.limits.usage import UsageMeter
from reward_server.logs.logger import get_logger
from reward_server.store.job_claims import MAX_ATTEMPTS, ItemLease
from reward_server.store.job_records import Claim, ItemOutcome, ItemState, JobRow
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics

BEATS = 3
"""Heartbeats in the time of a lease."""
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 60.0
REST = timedelta(minutes=5)
"""The longest until a job is looked at again whose lab has used up its day."""

CONVERSATIONS = {"evaluate": 1, "compare": 2, "rescore": 1}
"""That are scored for an item."""
JOB = "job"
"""In the audit log, where the address of a request would be."""
log = get_logger(__name__)
Finished = Callable[[UnitOfWork, JobRow], Awaitable[None]]
"""Hears of a job that is over, in the transaction that ends it: what it writes is there if and only if the end is."""


@dataclass(frozen=True)
class WorkerTimings:
    """The intervals of a worker."""

    lease_s: float = 15.0
    poll_s: float = 1.0
    slice_deadline_s: float = 300.0


class JobWorker:
    """One of those that do jobs."""

    def __init__(
        self,
        *,
        store: Store,
        kinds: Mapping[str, JobKind],
        clock: Clock,
        metrics: Metrics,
        pace: WorkerTimings,
        usage: UsageMeter,
        finished: Sequence[Finished] = (),
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._clock = clock
        self._metrics = metrics
        self._pace = pace
        self._usage = usage
        self._finished = finished
        self._passing = passing_codes()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There is something to do."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled; what is in hand then is given back."""
        while True:
            try:
                claim = await self._claim()
            except StoreUnavailable:
                claim = None
            if claim is None:
                await self._rest()
            else:
                await self._serve(claim)

    async def drain(self) -> None:
        """Work until there is nothing to take."""
        while (claim := await self._claim()) is not None:
            await self._serve(claim)

    async def _claim(self) -> Claim | None:
        self._woken.clear()
        now = self._clock.now()
        most = max(kind.slice_size for kind in self._kinds.values())
        async with self._store.transaction() as unit:
            hold = ItemLease(secrets.token_hex(16), now + timedelta(seconds=self._pace.lease_s), most)
            taken = await unit.job_items.claim(hold, list(self._kinds), now)
            for job in taken.lost:
                await self._tell_finished(unit, job)
        return taken.claim

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pace.poll_s):
                await self._woken.wait()

    async def _serve(self, claim: Claim) -> None:
        working = asyncio.create_task(self._work(claim))
        beating = asyncio.create_task(self._beat(claim))
        try:
            await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _stopped(working, beating)
            await self._give_back(claim)
            raise
        await _stopped(working, beating)

    async def _beat(self, claim: Claim) -> None:
        """Keep the lease; returns when it is lost."""
        while True:
            await asyncio.sleep(self._pace.lease_s / BEATS)
            until = self._clock.now() + timedelta(seconds=self._pace.lease_s)
            try:
                async with self._store.transaction() as unit:
                    if not await unit.job_items.extend(claim, until):
                        return
            except StoreUnavailable:
                log.warning("job_heartbeat_missed", job=claim.job.job_id)

    async def _work(self, claim: Claim) -> None:
        job, kind = claim.job, self._kinds[claim.job.type]
        try:
            set_request_context(lab_of(job), JOB)
            with working_for(job.lab_id):
                deadline_s = self._pace.slice_deadline_s if kind.whole is None else kind.whole.deadline_s
                async with asyncio.timeout(deadline_s):
                    await self._require_some_of_the_day(job)
                    if kind.whole is not None:
                        await self._go_on(claim)
                    items = await self._items(claim)
                    read, note = partial(self._read, job), partial(self._note, claim)
                    work = Work(lab_of(job), job.params, job.job_id, job.file_id, note, read)
                    # A whole file is counted as its kind reads it.
                    sizes = {} if kind.whole is not None else {item.index: len(item.line) for item in items}
                    unpaid: list[ItemOutcome] = []
                    await kind.run(work, items, self._recorder(claim, unpaid, sizes))
            if unpaid:
                await self._have_it_rest(claim, BudgetExhausted.code)
        except BudgetTooSmall as error:
            await self._failed_by(claim, error)
        except (BudgetExhausted, ComputeExhausted) as error:
            await self._have_it_rest(claim, error.code)
        except LeaseLost:
            log.info("job_lease_lost", job=job.job_id)
        except StoreUnavailable:
            # The lease runs out, and they are taken again.
            log.warning("job_items_not_recorded", job=job.job_id)
        except TimeoutError:
            await self._failed(claim, "unavailable", "It took longer than allowed.")
        except LabsError as error:
            await self._failed_by(claim, error)
        except Exception as error:  # noqa: BLE001 (the job boundary)
            # The message may quote a conversation, so only the kind is kept.
            log.error("job_failed", job=job.job_id, error=type(error).__name__)  # noqa: TRY400
            await self._failed(claim, LabsError.code, LabsError.default_message)

    async def _items(self, claim: Claim) -> list[JobItem]:
        if self._kinds[claim.job.type].whole is not None:
            # Such a kind reads the whole file itself, if it has one.
            return [JobItem(index, claim.attempts[index], b"") for index in claim.indexes]
        async with self._store.reading() as unit:
            lines = await unit.files.lines(claim.job.lab_id, claim.job.file_id, claim.indexes)
        return [JobItem(index, claim.attempts[index], lines[index]) for index in claim.indexes]

    async def _require_some_of_the_day(self, job: JobRow) -> None:
        """`ComputeExhausted` where the lab has had as much text read today as it may."""
        async with self._store.reading() as unit:
            lab = await unit.labs.get(job.lab_id)
        most = None if lab is None else lab.limits.characters_per_day
        if most is not None and await self._usage.read_today(job.lab_id) >= most:
            raise ComputeExhausted

    def _read(self, job: JobRow, characters: int, *, turns: int = 0) -> None:
        self._usage.count(job.lab_id, turns=turns, characters=characters)

    async def _have_it_rest(self, claim: Claim, reason: str) -> None:
        """Let items without an outcome wait for the lab's next day; the attempt does not count."""
        now = self._clock.now()
        log.info("job_rests", job=claim.job.job_id, reason=reason)
        with suppress(StoreUnavailable):
            async with self._store.transaction() as unit:
                await unit.job_items.rest(claim, now, min(now + REST, next_midnight(now)), reason)

    async def _go_on(self, claim: Claim) -> None:
        """A whole file waits for text alone, of which there is some again: it is being done, however long it takes."""
        if claim.job.rests_for is not None:
            async with self._store.transaction() as unit:
                await unit.job_items.go_on(claim)

    async def _note(self, claim: Claim, noted: JsonObject) -> None:
        with suppress(StoreUnavailable):
            async with self._store.transaction() as unit:
                await unit.job_items.note(claim, noted)

    def _recorder(
        self, claim: Claim, unpaid: list[ItemOutcome], sizes: Mapping[int, int]
    ) -> Callable[[UnitOfWork, Sequence[ItemOutcome]], Awaitable[None]]:
        """Records outcomes but those for which the lab had no budget left, which are put aside.

        An item's characters (`sizes`) count once, when it is over: one that waits may be looked at any number of times.
        """

        async def record(unit: UnitOfWork, outcomes: Sequence[ItemOutcome]) -> None:
            now = self._clock.now()
            unpaid.extend(outcome for outcome in outcomes if _is_unpaid(outcome))
            judged = [self._judged(claim, outcome) for outcome in outcomes if not _is_unpaid(outcome)]
            if not judged:
                return
            job = await unit.job_items.record(claim, judged, now)
            for outcome in judged:
                self._metrics.job_items.labels(job.type, outcome.state.value).inc()
            done = sum(outcome.state is ItemState.DONE for outcome in judged)
            read = sum(sizes.get(outcome.index, 0) for outcome in judged if outcome.state is not ItemState.WAITING)
            self._usage.count(job.lab_id, evaluations=done * CONVERSATIONS.get(job.type, 0), characters=read)
            if not job.is_open:
                await self._tell_finished(unit, job)

        return record

    async def _tell_finished(self, unit: UnitOfWork, job: JobRow) -> None:
        for hear in self._finished:
            await hear(unit, job)
        self._metrics.jobs_finished.labels(job.type, job.status.value).inc()
        counts = {"done": job.done, "failed": job.failed, "dead": job.dead}
        log.info("job_finished", job=job.job_id, status=job.status.value, **counts)

    def _judged(self, claim: Claim, outcome: ItemOutcome) -> ItemOutcome:
        """A failure in passing waits for the next attempt; after the last one it is dead.

        What no day of the lab has room for is dead at once: only a higher limit helps, and then it may be retried.
        """
        code = (outcome.result or {}).get("code")
        if outcome.state is not ItemState.FAILED or code not in self._passing:
            return outcome
        attempt = claim.attempts[outcome.index]
        if attempt >= MAX_ATTEMPTS or code == BudgetTooSmall.code:
            return replace(outcome, state=ItemState.DEAD)
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1))
        return ItemOutcome(
            index=outcome.index,
            state=ItemState.WAITING,
            result=None,
            not_before=self._clock.now() + timedelta(seconds=wait),
        )

    async def _failed(self, claim: Claim, code: str, message: str) -> None:
        await self._record_alone(claim, [failed(index, code, message) for index in claim.indexes])

    async def _failed_by(self, claim: Claim, error: LabsError) -> None:
        await self._record_alone(claim, [failed_by(index, error) for index in claim.indexes])

    async def _record_alone(self, claim: Claim, outcomes: Sequence[ItemOutcome]) -> None:
        with suppress(LeaseLost, StoreUnavailable):
            async with self._store.transaction() as unit:
                await self._recorder(claim, [], {})(unit, outcomes)

    async def _give_back(self, claim: Claim) -> None:
        with suppress(StoreUnavailable):
            async with self._store.transaction() as unit:
                await unit.job_items.release(claim, self._clock.now())


def _is_unpaid(outcome: ItemOutcome) -> bool:
    return outcome.state is ItemState.FAILED and (outcome.result or {}).get("code") == BudgetExhausted.code


def lab_of(job: JobRow) -> Lab:
    """The lab as its key was when it submitted the job; a job has no rate of its own."""
    return Lab(
        lab_id=job.lab_id,
        key_id=job.key_id,
        per_minute=None,
        collections=job.collections,
        full_scores=job.full_scores,
        scopes=frozenset(Scope(name) for name in job.scopes),
    )


async def _stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
