"""Statements of workers: take items of a job under a lease, keep the lease, record what became of them.

Whoever changes items of a job first locks its row (on SQLite there is one writer anyway), so that a claim and a record
never cross. A record is refused where the lease was lost meanwhile or the job is over: whoever records does so in the
transaction of the effect, so an item has its effect once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, update

from reward_server.errors import LeaseLost
from reward_server.store.isolation import across_labs
from reward_server.store.job_claims import ItemLease, TakenItems, claim_items
from reward_server.store.job_records import OPEN, Claim, ItemOutcome, ItemState, JobRow, JobStatus
from reward_server.store.job_standing import GOES_ON, counted, place_of, saved, write_outcomes
from reward_server.store.jobs import job_of
from reward_server.store.records import JsonObject
from reward_server.store.session import Session
from reward_server.store.tables import JobItemTable, JobTable, table_of

_JOB = table_of(JobTable)
_ITEM = table_of(JobItemTable)
_LOCK = (
    select(_JOB)
    .where(_JOB.c.lab_id == bindparam("lab_id"), _JOB.c.job_id == bindparam("job_id"), _JOB.c.status.in_(OPEN))
    .with_for_update()
)
_REST = (
    update(_JOB)
    .where(_JOB.c.lab_id == bindparam("this_lab"), _JOB.c.job_id == bindparam("this_job"), _JOB.c.status.in_(OPEN))
    .values(status=JobStatus.QUEUED, rests_until=bindparam("until"), rests_for=bindparam("reason"))
)
_HELD = select(_ITEM.c.item_index).where(
    _ITEM.c.lab_id == bindparam("lab_id"), _ITEM.c.job_id == bindparam("job_id"), _ITEM.c.lease == bindparam("token")
)
_EXTEND = (
    update(_ITEM)
    .where(
        _ITEM.c.lab_id == bindparam("this_lab"),
        _ITEM.c.job_id == bindparam("this_job"),
        _ITEM.c.lease == bindparam("token"),
    )
    .values(lease_until=bindparam("until"))
)
_RELEASE = (
    update(_ITEM)
    .where(
        _ITEM.c.lab_id == bindparam("this_lab"),
        _ITEM.c.job_id == bindparam("this_job"),
        _ITEM.c.lease == bindparam("token"),
    )
    .values(state=ItemState.WAITING, lease=None, lease_until=bindparam("until"), attempts=_ITEM.c.attempts - 1)
)
_NOTE = (
    update(_ITEM)
    .where(
        _ITEM.c.lab_id == bindparam("this_lab"),
        _ITEM.c.job_id == bindparam("this_job"),
        _ITEM.c.lease == bindparam("token"),
    )
    .values(result=bindparam("noted"))
)
_OPEN_COUNT = across_labs(select(func.count()).select_from(_JOB).where(_JOB.c.status.in_(OPEN)))


class JobItemRepository:
    """Items of all labs' jobs: for workers alone."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim(self, hold: ItemLease, types: Sequence[str], now: datetime) -> TakenItems:
        """Items of the job whose lab was served longest ago."""
        return await self._session.run(lambda connection: claim_items(connection, hold, types, now))

    async def extend(self, claim: Claim, until: datetime) -> bool:
        """Keep the items for longer; whether they still are the worker's."""
        values = {**place_of(claim.job), "token": claim.token, "until": until}
        return await self._session.run(lambda connection: connection.execute(_EXTEND, values).rowcount > 0)

    async def note(self, claim: Claim, noted: JsonObject) -> None:
        """Note the progress of items; nothing where they are no longer the worker's."""
        values = {**place_of(claim.job), "token": claim.token, "noted": noted}
        await self._session.run(lambda connection: connection.execute(_NOTE, values))

    async def release(self, claim: Claim, now: datetime) -> None:
        """Give the items back: the attempt does not count."""
        values = {**place_of(claim.job), "token": claim.token, "until": now}
        await self._session.run(lambda connection: connection.execute(_RELEASE, values))

    async def rest(self, claim: Claim, now: datetime, until: datetime, reason: str) -> None:
        """Give back the items that have no outcome yet, and have the job wait: nobody takes items of it before."""
        place = place_of(claim.job)

        def work(connection: Connection) -> None:
            # First the job's row, as whoever changes items does.
            _locked(connection, claim)
            if not _held(connection, claim):
                return  # others have the items, who rest or not by themselves
            connection.execute(_REST, {**place, "until": until, "reason": reason})
            connection.execute(_RELEASE, {**place, "token": claim.token, "until": now})

        await self._session.run(work)

    async def go_on(self, claim: Claim) -> None:
        """The job of these items waits no longer."""

        def work(connection: Connection) -> None:
            row = _locked(connection, claim)
            if row is not None and _held(connection, claim):
                saved(connection, row, GOES_ON)

        await self._session.run(work)

    async def record(self, claim: Claim, outcomes: Sequence[ItemOutcome], now: datetime) -> JobRow:
        """Record the outcomes of items of a claim; return the job as it stands afterwards, over if that were the last.

        Raises:
            LeaseLost: they are no longer the worker's.
        """

        def work(connection: Connection) -> JobRow:
            row = _locked(connection, claim)
            if row is None or not _held(connection, claim).issuperset(outcome.index for outcome in outcomes):
                raise LeaseLost
            write_outcomes(connection, claim.job, outcomes)
            # A job that was put to rest again since these were taken still rests.
            scored = any(outcome.state is ItemState.DONE for outcome in outcomes)
            goes_on = scored and row.rests_for is not None and row.rests_until == claim.job.rests_until
            return counted(connection, row, outcomes, now, goes_on=goes_on)

        return await self._session.run(work)

    async def open_jobs(self) -> int:
        """Jobs of all labs that are not over."""
        return await self._session.run(lambda connection: int(connection.execute(_OPEN_COUNT).scalar_one()))


def _locked(connection: Connection, claim: Claim) -> JobRow | None:
    """The job, which nobody else changes meanwhile; None where it is over."""
    wanted = {"lab_id": claim.job.lab_id, "job_id": claim.job.job_id}
    row = connection.execute(_LOCK, wanted).mappings().one_or_none()
    return None if row is None else job_of(row)


def _held(connection: Connection, claim: Claim) -> set[int]:
    """The items that are still the worker's."""
    wanted = {"lab_id": claim.job.lab_id, "job_id": claim.job.job_id, "token": claim.token}
    return set(connection.execute(_HELD, wanted).scalars())
