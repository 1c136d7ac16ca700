"""A job that rests is taken by nobody before its time, and loses no attempt, on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from reward_server.jobs.service import document
from reward_server.store.job_claims import ItemLease
from reward_server.store.job_records import Claim, ItemOutcome, ItemState, JobRow, JobStatus
from reward_server.store.store import Store
from tests.store.builders import NOW
from tests.store.test_job_purge import LAB, a_job

WAIT = timedelta(minutes=5)
WAITS = (JobStatus.QUEUED, NOW + WAIT, "budget_exhausted")
GOES_ON = (JobStatus.RUNNING, None, None)
Standing = tuple[JobStatus, object, object]


async def queued(store: Store, total: int) -> Claim:
    """A job of so many items, two of which a worker has taken."""
    async with store.transaction() as unit:
        await unit.jobs.add(replace(a_job(1), total=total))
    return await taken(store, "a")


async def claimed(store: Store, token: str, later: timedelta = timedelta()) -> Claim | None:
    now = NOW + later
    async with store.transaction() as unit:
        return (await unit.job_items.claim(ItemLease(token, now + timedelta(seconds=15), 2), ["evaluate"], now)).claim


async def taken(store: Store, token: str, later: timedelta = timedelta()) -> Claim:
    claim = await claimed(store, token, later)
    assert claim is not None
    return claim


async def rest(store: Store, claim: Claim, later: timedelta = timedelta()) -> None:
    async with store.transaction() as unit:
        await unit.job_items.rest(claim, NOW + later, NOW + later + WAIT, "budget_exhausted")


async def record(store: Store, claim: Claim, state: ItemState, indexes: Sequence[int]) -> None:
    async with store.transaction() as unit:
        await unit.job_items.record(claim, [ItemOutcome(index=each, state=state, result={}) for each in indexes], NOW)


async def job(store: Store) -> JobRow:
    async with store.reading() as unit:
        row = await unit.jobs.get(LAB, "job_1")
    assert row is not None
    return row


async def standing(store: Store) -> Standing:
    row = await job(store)
    return row.status, row.rests_until, row.rests_for


async def test_what_rests_is_taken_again_in_time_with_the_same_attempt(store_on_both: Store) -> None:
    store = store_on_both
    claim = await queued(store, 3)
    await record(store, claim, ItemState.DONE, [0])
    await rest(store, claim)
    assert await standing(store) == WAITS
    assert (await job(store)).done == 1
    assert await claimed(store, "b", timedelta(minutes=4)) is None
    # What nobody has begun is not held up by what was put aside.
    assert (await taken(store, "c", WAIT)).attempts == {2: 1}
    assert (await taken(store, "d", WAIT)).attempts == {1: 1}


async def test_a_job_waits_until_something_of_it_was_scored(store_on_both: Store) -> None:
    store = store_on_both
    claim = await queued(store, 5)
    await record(store, claim, ItemState.DONE, [0])
    await rest(store, claim)
    looked_at = await taken(store, "b", WAIT)
    assert await standing(store) == WAITS
    shown = document(await job(store), NOW + WAIT)
    assert (shown["status"], shown["waits_for"]) == ("queued", "budget_exhausted")
    assert "eta_s" not in shown
    # What fails by itself says nothing of the budget.
    await record(store, looked_at, ItemState.FAILED, looked_at.indexes[:1])
    assert await standing(store) == WAITS
    await record(store, looked_at, ItemState.DONE, looked_at.indexes[1:])
    assert await standing(store) == GOES_ON
    assert "eta_s" in document(await job(store), NOW + WAIT)


async def test_a_slice_of_before_does_not_end_a_wait_that_began_after_it(store_on_both: Store) -> None:
    store = store_on_both
    early = await queued(store, 4)
    await rest(store, await taken(store, "b"))
    await record(store, early, ItemState.DONE, early.indexes)
    assert await standing(store) == WAITS


async def test_a_whole_file_waits_no_longer_once_it_is_being_done(store_on_both: Store) -> None:
    store = store_on_both
    await rest(store, await queued(store, 1))
    again = await taken(store, "b", WAIT)
    async with store.transaction() as unit:
        await unit.job_items.go_on(again)
    assert await standing(store) == GOES_ON


async def test_whoever_lost_the_items_does_not_end_the_wait(store_on_both: Store) -> None:
    store = store_on_both
    late = await queued(store, 1)
    await rest(store, await taken(store, "b", timedelta(minutes=1)))
    async with store.transaction() as unit:
        await unit.job_items.go_on(late)
    assert await standing(store) == WAITS


@pytest.mark.parametrize("state", [ItemState.FAILED, ItemState.DEAD])
async def test_a_job_that_is_over_waits_for_nothing(store_on_both: Store, state: ItemState) -> None:
    store = store_on_both
    await rest(store, await queued(store, 2))
    claim = await taken(store, "b", WAIT)
    await record(store, claim, state, claim.indexes)
    assert await standing(store) == (JobStatus.FAILED, None, None)


async def test_a_job_that_was_cancelled_does_not_rest(store_on_both: Store) -> None:
    store = store_on_both
    claim = await queued(store, 3)
    async with store.transaction() as unit:
        await unit.jobs.cancel(LAB, "job_1", NOW)
    await rest(store, claim)
    assert await standing(store) == (JobStatus.CANCELLED, None, None)


async def test_a_job_that_is_resumed_is_looked_at_at_once(store_on_both: Store) -> None:
    store = store_on_both
    await rest(store, await queued(store, 2))
    async with store.transaction() as unit:
        await unit.jobs.cancel(LAB, "job_1", NOW)
        assert await unit.jobs.resume(LAB, "job_1")
    assert await standing(store) == (JobStatus.QUEUED, None, None)
    await taken(store, "b")


async def test_a_worker_that_lost_its_items_does_not_have_the_job_rest(store_on_both: Store) -> None:
    store = store_on_both
    late = await queued(store, 2)
    await taken(store, "b", timedelta(minutes=1))
    await rest(store, late)
    assert await standing(store) == GOES_ON
