"""A job that rests is taken by nobody before its time, and loses no attempt, on both engines."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reward_server.jobs.durable.service import document
from reward_server.store.job_items import Hold
from reward_server.store.job_records import Claim, ItemOutcome, ItemState, JobStatus
from reward_server.store.store import Store
from tests.store.builders import NOW
from tests.store.test_job_purge import LAB, a_job

UNTIL = NOW + timedelta(minutes=5)


async def claimed(store: Store, token: str, later: timedelta = timedelta()) -> Claim | None:
    now = NOW + later
    async with store.transaction() as unit:
        return await unit.job_items.claim(Hold(token, now + timedelta(seconds=15), 2), ["evaluate"], now)


async def test_what_rests_is_taken_again_in_time_with_the_same_attempt(store_on_both: Store) -> None:
    store = store_on_both
    async with store.transaction() as unit:
        await unit.jobs.add(replace(a_job(1), total=3))
    claim = await claimed(store, "a")
    assert claim is not None
    async with store.transaction() as unit:
        await unit.job_items.record(claim, [ItemOutcome(index=0, state=ItemState.DONE, result={})], NOW)
        await unit.job_items.rest(claim, NOW, UNTIL, "compute_exhausted")
    async with store.reading() as unit:
        row = await unit.jobs.get(LAB, "job_1")
    assert row is not None
    assert (row.status, row.rests_until, row.rests_for) == (JobStatus.QUEUED, UNTIL, "compute_exhausted")
    assert row.done == 1
    assert "eta_s" not in document(replace(row, started_at=NOW), NOW)
    assert await claimed(store, "b", timedelta(minutes=4)) is None
    # What nobody has begun is not held up by what was put aside.
    again = await claimed(store, "c", timedelta(minutes=5))
    assert again is not None
    assert again.attempts == {2: 1}
    last = await claimed(store, "d", timedelta(minutes=5))
    assert last is not None
    assert last.attempts == {1: 1}
    assert (again.job.status, again.job.rests_until, again.job.rests_for) == (JobStatus.RUNNING, None, None)


async def test_a_job_that_was_cancelled_does_not_rest(store_on_both: Store) -> None:
    store = store_on_both
    async with store.transaction() as unit:
        await unit.jobs.add(replace(a_job(1), total=3))
    claim = await claimed(store, "a")
    assert claim is not None
    async with store.transaction() as unit:
        await unit.jobs.cancel(LAB, "job_1", NOW)
        await unit.job_items.rest(claim, NOW, UNTIL, "compute_exhausted")
        row = await unit.jobs.get(LAB, "job_1")
    assert row is not None
    assert (row.status, row.rests_for) == (JobStatus.CANCELLED, None)


async def test_a_worker_that_lost_its_items_does_not_have_the_job_rest(store_on_both: Store) -> None:
    store = store_on_both
    async with store.transaction() as unit:
        await unit.jobs.add(replace(a_job(1), total=2))
    late = await claimed(store, "a")
    assert late is not None
    assert await claimed(store, "b", timedelta(minutes=1)) is not None
    async with store.transaction() as unit:
        await unit.job_items.rest(late, NOW, UNTIL, "compute_exhausted")
        row = await unit.jobs.get(LAB, "job_1")
    assert row is not None
    assert (row.status, row.rests_until) == (JobStatus.RUNNING, None)
