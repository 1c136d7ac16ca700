"""What workers do: take items of a job under a lease, keep the lease, record what became of them.

Whoever changes items of a job first locks its row (on SQLite there is one writer anyway), so that a claim and a record
never cross. A record is refused where the lease was lost meanwhile or the job is over: whoever records does so in the
transaction of the effect, so an item has its effect once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from reward_server.errors import LeaseLost
from reward_server.store.isolation import across_labs
from reward_server.store.job_records import OPEN, Claim, ItemOutcome, ItemState, JobRow, JobStatus
from reward_server.store.jobs import job_of
from reward_server.store.records import JsonObject
from reward_server.store.session import Session
from reward_server.store.tables import Job, JobItem, table_of

MAX_ATTEMPTS = 5
CANDIDATES = 200
"""So many open jobs are looked at, those that waited longest first."""
LOST = {"status": "error", "code": "worker_lost", "message": "The worker stopped in every attempt at this item."}

_JOB = table_of(Job)
_ITEM = table_of(JobItem)
_WAITING = across_labs(
    select(_JOB.c.job_id, _JOB.c.lab_id, _JOB.c.served_at, _JOB.c.created_at)
    .where(
        _JOB.c.status.in_(OPEN),
        _JOB.c.type.in_(bindparam("types", expanding=True)),
        or_(_JOB.c.rests_until.is_(None), _JOB.c.rests_until <= bindparam("now")),
    )
    .order_by(_JOB.c.served_at.is_not(None), _JOB.c.served_at, _JOB.c.created_at)
    .limit(CANDIDATES)
)
_LOCK_FREE = (
    select(_JOB)
    .where(_JOB.c.lab_id == bindparam("lab_id"), _JOB.c.job_id == bindparam("job_id"), _JOB.c.status.in_(OPEN))
    .with_for_update(skip_locked=True)
)
_LOCK = (
    select(_JOB)
    .where(_JOB.c.lab_id == bindparam("lab_id"), _JOB.c.job_id == bindparam("job_id"), _JOB.c.status.in_(OPEN))
    .with_for_update()
)
_EXPIRED = (
    select(_ITEM.c.item_index, _ITEM.c.attempts, _ITEM.c.state)
    .where(
        _ITEM.c.lab_id == bindparam("lab_id"),
        _ITEM.c.job_id == bindparam("job_id"),
        _ITEM.c.state.in_((ItemState.LEASED, ItemState.WAITING)),
        _ITEM.c.lease_until <= bindparam("now"),
    )
    .order_by(_ITEM.c.state != ItemState.LEASED, _ITEM.c.attempts, _ITEM.c.item_index)
    .limit(bindparam("most"))
)
_BEGIN = insert(_ITEM)
_SET = (
    update(_ITEM)
    .where(
        _ITEM.c.lab_id == bindparam("this_lab"),
        _ITEM.c.job_id == bindparam("this_job"),
        _ITEM.c.item_index == bindparam("this_item"),
    )
    .values({name: bindparam(name) for name in ("state", "attempts", "lease", "lease_until", "result")})
)
_RECORD = (
    update(_ITEM)
    .where(
        _ITEM.c.lab_id == bindparam("this_lab"),
        _ITEM.c.job_id == bindparam("this_job"),
        _ITEM.c.item_index == bindparam("this_item"),
    )
    .values({name: bindparam(name) for name in ("state", "lease", "lease_until", "result")})
)
_STANDING = (
    "status",
    "next_index",
    "done",
    "failed",
    "dead",
    "error",
    "started_at",
    "finished_at",
    "served_at",
    "rests_until",
    "rests_for",
)
"""What workers change of a job."""
_SAVE = (
    update(_JOB)
    .where(_JOB.c.lab_id == bindparam("this_lab"), _JOB.c.job_id == bindparam("this_job"))
    .values({name: bindparam(name) for name in _STANDING})
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


@dataclass(frozen=True, slots=True)
class Hold:
    """A worker's hold on items: a token that nobody else has, until a moment, and on how many at most."""

    token: str
    until: datetime
    most: int


class JobItems:
    """Items of all labs' jobs: for workers alone."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim(self, hold: Hold, types: Sequence[str], now: datetime) -> Claim | None:
        """Items of the job whose lab was served longest ago; None where there is nothing to take."""

        def work(connection: Connection) -> Claim | None:
            for lab_id, job_id in _in_turn(connection, types, now):
                found = connection.execute(_LOCK_FREE, {"lab_id": lab_id, "job_id": job_id}).mappings().one_or_none()
                claim = None if found is None else _take(connection, job_of(found), hold, now)
                if claim is not None:
                    return claim
            return None

        return await self._session.run(work)

    async def extend(self, claim: Claim, until: datetime) -> bool:
        """Keep the items for longer; whether they still are the worker's."""
        values = {**_place(claim.job), "token": claim.token, "until": until}
        return await self._session.run(lambda connection: connection.execute(_EXTEND, values).rowcount > 0)

    async def note(self, claim: Claim, noted: JsonObject) -> None:
        """How far the items are; nothing where they are no longer the worker's."""
        values = {**_place(claim.job), "token": claim.token, "noted": noted}
        await self._session.run(lambda connection: connection.execute(_NOTE, values))

    async def release(self, claim: Claim, now: datetime) -> None:
        """Give the items back: the attempt does not count."""
        values = {**_place(claim.job), "token": claim.token, "until": now}
        await self._session.run(lambda connection: connection.execute(_RELEASE, values))

    async def rest(self, claim: Claim, now: datetime, until: datetime, reason: str) -> None:
        """Give back the items that have no outcome yet, and have the job wait: nobody takes items of it before."""
        place = _place(claim.job)

        def work(connection: Connection) -> None:
            # First the job's row, as whoever changes items does.
            wanted = {"lab_id": claim.job.lab_id, "job_id": claim.job.job_id}
            connection.execute(_LOCK, wanted)
            if connection.execute(_HELD, {**wanted, "token": claim.token}).first() is None:
                return  # others have the items, who rest or not by themselves
            connection.execute(_REST, {**place, "until": until, "reason": reason})
            connection.execute(_RELEASE, {**place, "token": claim.token, "until": now})

        await self._session.run(work)

    async def record(self, claim: Claim, outcomes: Sequence[ItemOutcome], now: datetime) -> JobRow:
        """What became of items of a claim; the job as it stands afterwards, over if that were the last.

        Raises:
            LeaseLost: they are no longer the worker's.
        """

        def work(connection: Connection) -> JobRow:
            wanted = {"lab_id": claim.job.lab_id, "job_id": claim.job.job_id}
            found = connection.execute(_LOCK, wanted).mappings().one_or_none()
            if found is None:
                raise LeaseLost
            held = set(connection.execute(_HELD, {**wanted, "token": claim.token}).scalars())
            if not held.issuperset(outcome.index for outcome in outcomes):
                raise LeaseLost
            connection.execute(_RECORD, [_recorded(claim.job, each) for each in outcomes])
            return _counted(connection, job_of(found), outcomes, now)

        return await self._session.run(work)

    async def open_jobs(self) -> int:
        """Jobs of all labs that are not over."""
        return await self._session.run(lambda connection: int(connection.execute(_OPEN_COUNT).scalar_one()))


def _in_turn(connection: Connection, types: Sequence[str], now: datetime) -> list[tuple[str, str]]:
    """Open jobs, those of the lab that was served longest ago first; jobs that were never served before all others."""
    found = list(connection.execute(_WAITING, {"types": list(types), "now": now}))
    latest: dict[str, str] = {}
    for row in found:
        served = "" if row.served_at is None else row.served_at.isoformat()
        latest[row.lab_id] = max(latest.get(row.lab_id, ""), served)
    return [(row.lab_id, row.job_id) for row in sorted(found, key=lambda row: latest[row.lab_id])]


def _take(connection: Connection, job: JobRow, hold: Hold, now: datetime) -> Claim | None:
    """What a lost worker had comes first, then what nobody has begun, then what was put aside.

    So an item that waits for its lab's next day, maybe for long, holds up none behind it.
    """
    wanted = {"lab_id": job.lab_id, "job_id": job.job_id, "now": now, "most": hold.most}
    expired = list(connection.execute(_EXPIRED, wanted))
    lost = [row.item_index for row in expired if row.attempts >= MAX_ATTEMPTS]
    if lost:
        outcomes = [ItemOutcome(index=each, state=ItemState.DEAD, result={"index": each, **LOST}) for each in lost]
        connection.execute(_RECORD, [_recorded(job, each) for each in outcomes])
        job = _counted(connection, job, outcomes, now)
        if not job.is_open:
            return None
    left = [row for row in expired if row.attempts < MAX_ATTEMPTS]
    held = [row for row in left if row.state == ItemState.LEASED]
    fresh = range(job.next_index, min(job.total, job.next_index + hold.most))
    again = [(row.item_index, row.attempts) for row in held or ([] if fresh else left)]
    if again and again[0][1] > 1:
        # One of them may be what ends its worker: alone, it takes nobody along.
        again = again[:1]
    taken = {index: attempts + 1 for index, attempts in again}
    begun = {} if again else dict.fromkeys(fresh, 1)
    if not taken and not begun:
        return None
    lease = {"state": ItemState.LEASED, "lease": hold.token, "lease_until": hold.until, "result": None}
    if begun:
        rows = [{**_ids(job), "item_index": index, "attempts": 1, **lease} for index in begun]
        connection.execute(_BEGIN, rows)
    else:
        connection.execute(
            _SET,
            [{**_place(job), "this_item": index, "attempts": tries, **lease} for index, tries in taken.items()],
        )
    changes: dict[str, object] = {"status": JobStatus.RUNNING, "next_index": job.next_index + len(begun)}
    changes |= {"served_at": now, "started_at": job.started_at or now, "rests_until": None, "rests_for": None}
    return Claim(job=_saved(connection, job, changes), token=hold.token, attempts=taken | begun)


def _counted(connection: Connection, job: JobRow, outcomes: Sequence[ItemOutcome], now: datetime) -> JobRow:
    """The job with these outcomes in its counts; over when every item has one."""
    changes: dict[str, object] = {
        name: getattr(job, name) + sum(each.state is state for each in outcomes)
        for name, state in (("done", ItemState.DONE), ("failed", ItemState.FAILED), ("dead", ItemState.DEAD))
    }
    if sum(int(str(changes[name])) for name in ("done", "failed", "dead")) >= job.total:
        changes |= {"status": JobStatus.COMPLETED, "finished_at": now}
    return _saved(connection, job, changes)


def _saved(connection: Connection, job: JobRow, changes: dict[str, object]) -> JobRow:
    changed = replace(job, **changes)  # type: ignore[arg-type]
    connection.execute(_SAVE, {**_place(job), **{name: getattr(changed, name) for name in _STANDING}})
    return changed


def _recorded(job: JobRow, outcome: ItemOutcome) -> dict[str, object]:
    return {
        **_place(job),
        "this_item": outcome.index,
        "state": outcome.state,
        "lease": None,
        "lease_until": outcome.not_before,
        "result": outcome.result,
    }


def _ids(job: JobRow) -> dict[str, object]:
    return {"lab_id": job.lab_id, "job_id": job.job_id}


def _place(job: JobRow) -> dict[str, object]:
    return {"this_lab": job.lab_id, "this_job": job.job_id}
