"""Chooses the items that a worker takes: of the lab served longest ago, and within a job what waited longest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, or_, select, update

from reward_server.store.isolation import across_labs
from reward_server.store.job_records import OPEN, Claim, ItemOutcome, ItemState, JobRow, JobStatus
from reward_server.store.job_standing import counted, place_of, saved, write_outcomes
from reward_server.store.jobs import job_of
from reward_server.store.tables import JobItemTable, JobTable, table_of

MAX_ATTEMPTS = 5
CANDIDATES = 200
"""So many open jobs are looked at, those that waited longest first."""
LOST = {"status": "error", "code": "worker_lost", "message": "The worker stopped in every attempt at this item."}

_JOB = table_of(JobTable)
_ITEM = table_of(JobItemTable)
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


@dataclass(frozen=True, slots=True)
class ItemLease:
    """A worker's hold on items: a token that nobody else has, until a moment, and on how many at most."""

    token: str
    until: datetime
    most: int


@dataclass(frozen=True, slots=True)
class TakenItems:
    """The result of a worker's search for items."""

    claim: Claim | None
    """None where there is nothing to take."""
    lost: list[JobRow]
    """Jobs whose last items were lost with their workers: they are over now."""


def claim_items(connection: Connection, hold: ItemLease, types: Sequence[str], now: datetime) -> TakenItems:
    """Items of the job whose lab was served longest ago."""
    lost: list[JobRow] = []
    for lab_id, job_id in _in_turn(connection, types, now):
        row = connection.execute(_LOCK_FREE, {"lab_id": lab_id, "job_id": job_id}).mappings().one_or_none()
        taken = None if row is None else _take(connection, job_of(row), hold, now)
        if isinstance(taken, JobRow):
            lost.append(taken)
        elif taken is not None:
            return TakenItems(taken, lost)
    return TakenItems(None, lost)


def _in_turn(connection: Connection, types: Sequence[str], now: datetime) -> list[tuple[str, str]]:
    """Open jobs, those of the lab that was served longest ago first; jobs that were never served before all others."""
    candidates = list(connection.execute(_WAITING, {"types": list(types), "now": now}))
    latest: dict[str, str] = {}
    for row in candidates:
        served = "" if row.served_at is None else row.served_at.isoformat()
        latest[row.lab_id] = max(latest.get(row.lab_id, ""), served)
    return [(row.lab_id, row.job_id) for row in sorted(candidates, key=lambda row: latest[row.lab_id])]


def _take(connection: Connection, job: JobRow, hold: ItemLease, now: datetime) -> Claim | JobRow | None:
    """Take the items of a lost worker first, then those that nobody has begun, then what was put aside.

    So an item that waits for its lab's next day, maybe for long, holds up none behind it. The job itself where it is
    over, because what was left of it was lost.
    """
    wanted = {"lab_id": job.lab_id, "job_id": job.job_id, "now": now, "most": hold.most}
    expired = list(connection.execute(_EXPIRED, wanted))
    lost = [row.item_index for row in expired if row.attempts >= MAX_ATTEMPTS]
    if lost:
        outcomes = [ItemOutcome(index=index, state=ItemState.DEAD, result={"index": index, **LOST}) for index in lost]
        write_outcomes(connection, job, outcomes)
        job = counted(connection, job, outcomes, now)
        if not job.is_open:
            return job
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
        rows = [
            {"lab_id": job.lab_id, "job_id": job.job_id, "item_index": index, "attempts": 1, **lease} for index in begun
        ]
        connection.execute(_BEGIN, rows)
    else:
        connection.execute(
            _SET,
            [{**place_of(job), "this_item": index, "attempts": tries, **lease} for index, tries in taken.items()],
        )
    changes: dict[str, object] = {"next_index": job.next_index + len(begun)}
    changes |= {"served_at": now, "started_at": job.started_at or now}
    if job.rests_for is None:  # one that waits is only looked at: it waits until something of it was done
        changes["status"] = JobStatus.RUNNING
    return Claim(job=saved(connection, job, changes), token=hold.token, attempts=taken | begun)
