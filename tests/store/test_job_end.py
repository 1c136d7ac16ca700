"""How a job ends: completed where an item has a result, failed where none has; whoever listens is always told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from reward_server.auth.lab import Lab
from reward_server.clock import ManualClock
from reward_server.jobs.kinds import JobItem, Record, Work, failed, succeeded
from reward_server.jobs.worker import JobWorker, WorkerTimings
from reward_server.limits.usage import UsageMeter
from reward_server.store.job_claims import LOST, MAX_ATTEMPTS, ItemLease
from reward_server.store.job_records import JobRow, JobStatus
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics
from tests.store.builders import NOW
from tests.store.test_job_purge import LAB, a_job

LEASE = timedelta(seconds=15)


class Nothing:
    """A kind that has nothing to do."""

    slice_size = 1
    whole = None

    async def check(self, lab: Lab, params: JsonObject) -> None:
        raise AssertionError

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        raise AssertionError


async def held(store: Store, moment: timedelta = timedelta()) -> list[int]:
    """Items that a worker takes at a moment."""
    async with store.transaction() as unit:
        hold = ItemLease("token", NOW + moment + LEASE, 10)
        claim = (await unit.job_items.claim(hold, ["evaluate"], NOW + moment)).claim
    return [] if claim is None else claim.indexes


@pytest.mark.parametrize(
    ("wrong", "status", "error"),
    [
        ([0, 1], JobStatus.FAILED, "None of the 2 items has a result; the last to end: Item 1 is odd."),
        ([0], JobStatus.COMPLETED, None),
        ([], JobStatus.COMPLETED, None),
    ],
)
async def test_a_job_without_any_result_has_failed(
    store_on_both: Store, wrong: list[int], status: JobStatus, error: str | None
) -> None:
    async with store_on_both.transaction() as unit:
        await unit.jobs.add(replace(a_job(1), total=2))
        claim = (await unit.job_items.claim(ItemLease("token", NOW + LEASE, 10), ["evaluate"], NOW)).claim
        assert claim is not None
        outcomes = [
            failed(each, "odd", f"Item {each} is odd.") if each in wrong else succeeded(each, {}) for each in (0, 1)
        ]
        row = await unit.job_items.record(claim, outcomes, NOW)
        assert (row.status, row.error) == (status, error)
        assert not await unit.jobs.resume(LAB, "job_1")
        assert await unit.jobs.get(LAB, "job_1") == row


async def test_a_job_whose_workers_were_all_lost_has_failed_and_is_told(store_on_both: Store) -> None:
    async with store_on_both.transaction() as unit:
        await unit.jobs.add(a_job(1))
    for attempt in range(MAX_ATTEMPTS):
        assert await held(store_on_both, 2 * attempt * LEASE) == [0]
    told: list[JobRow] = []

    async def hear(_: UnitOfWork, job: JobRow) -> None:
        told.append(job)

    clock, metrics = ManualClock(NOW + timedelta(hours=1)), Metrics()
    await JobWorker(
        store=store_on_both,
        kinds={"evaluate": Nothing()},
        clock=clock,
        metrics=metrics,
        pace=WorkerTimings(),
        usage=UsageMeter(store_on_both, clock),
        finished=[hear],
    ).drain()
    assert [(job.status, job.dead, job.error) for job in told] == [(JobStatus.FAILED, 1, LOST["message"])]
    ended = metrics.registry.get_sample_value("labs_jobs_finished_total", {"type": "evaluate", "status": "failed"})
    assert ended == 1
