"""Jobs as their labs see them. What workers do with items is in `job_items`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, bindparam, delete, func, insert, select, update

from reward_server.store.isolation import across_labs
from reward_server.store.job_records import FINISHED, OPEN, TRAIN_POLICY, ItemState, JobRow, JobStatus
from reward_server.store.mapping import values_of
from reward_server.store.pages import is_after, made_with
from reward_server.store.records import JsonObject, PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import JobItemTable, JobTable, table_of

_JOB = table_of(JobTable)
_ITEM = table_of(JobItemTable)
_ADD = insert(_JOB)
_GET = select(_JOB).where(_JOB.c.lab_id == bindparam("lab_id"), _JOB.c.job_id == bindparam("job_id"))
_OPEN = select(func.count()).where(_JOB.c.lab_id == bindparam("lab_id"), _JOB.c.status.in_(OPEN))
_OPEN_IDS = across_labs(select(_JOB.c.job_id).where(_JOB.c.status.in_(OPEN)))
_MOVE = update(_JOB).where(
    _JOB.c.lab_id == bindparam("this_lab"),
    _JOB.c.job_id == bindparam("this_job"),
    _JOB.c.status.in_(bindparam("before", expanding=True)),
)
_MY_ITEMS = and_(_ITEM.c.lab_id == bindparam("this_lab"), _ITEM.c.job_id == bindparam("this_job"))
_RESULTS = (
    select(_ITEM.c.item_index, _ITEM.c.state, _ITEM.c.result)
    .where(
        _ITEM.c.lab_id == bindparam("lab_id"),
        _ITEM.c.job_id == bindparam("job_id"),
        _ITEM.c.item_index > bindparam("after"),
        _ITEM.c.state.in_(FINISHED),
    )
    .order_by(_ITEM.c.item_index)
    .limit(bindparam("most"))
)
_NOTED = select(_ITEM.c.job_id, _ITEM.c.result).where(
    _ITEM.c.lab_id == bindparam("lab_id"),
    _ITEM.c.job_id.in_(bindparam("job_ids", expanding=True)),
    _ITEM.c.state == ItemState.LEASED,
)
_PURGE = across_labs(delete(_JOB).where(_JOB.c.finished_at < bindparam("before")))


class JobRepository:
    """Jobs of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: JobRow) -> None:
        """Queue a job."""
        values = values_of(row)
        values |= {"collections": None if row.collections is None else list(row.collections)}
        values |= {"scopes": list(row.scopes)}
        await self._session.run(lambda connection: connection.execute(_ADD, values))

    async def get(self, lab_id: str, job_id: str) -> JobRow | None:
        """One job."""

        def work(connection: Connection) -> JobRow | None:
            row = connection.execute(_GET, {"lab_id": lab_id, "job_id": job_id}).mappings().one_or_none()
            return None if row is None else job_of(row)

        return await self._session.run(work)

    async def page(
        self, lab_id: str, limit: int, after: PageEnd | None = None, *, collections: Sequence[str] | None = None
    ) -> list[JobRow]:
        """The lab's jobs, newest first, but for those that are training runs.

        `collections`: only those that were made with no other collections; None: all.
        """
        rows = select(_JOB).where(_JOB.c.lab_id == lab_id, _JOB.c.type != TRAIN_POLICY)
        if after is not None:
            rows = rows.where(is_after(_JOB.c.created_at, _JOB.c.job_id, after))
        if collections is not None:
            rows = rows.where(made_with(_JOB.c.collections, collections))
        rows = rows.order_by(_JOB.c.created_at.desc(), _JOB.c.job_id.desc()).limit(limit)
        return await self._session.run(
            lambda connection: [job_of(mapping) for mapping in connection.execute(rows).mappings()]
        )

    async def forget(self, lab_id: str, job_id: str) -> None:
        """Delete a job and what became of its items."""
        gone = delete(_JOB).where(_JOB.c.lab_id == lab_id, _JOB.c.job_id == job_id)
        await self._session.run(lambda connection: connection.execute(gone))

    async def count_open(self, lab_id: str) -> int:
        """Jobs of the lab that are not over."""
        return await self._session.run(
            lambda connection: int(connection.execute(_OPEN, {"lab_id": lab_id}).scalar_one())
        )

    async def open_ids(self) -> set[str]:
        """Jobs of all labs that are not over."""
        return await self._session.run(lambda connection: set(connection.execute(_OPEN_IDS).scalars()))

    async def cancel(self, lab_id: str, job_id: str, now: datetime) -> bool:
        """True if it was open: from now on nobody records anything more of it."""
        return await self._move(
            lab_id, job_id, OPEN, {"status": JobStatus.CANCELLED, "finished_at": now}, _hand_back(now)
        )

    async def resume(self, lab_id: str, job_id: str) -> bool:
        """True if it was cancelled: it goes on where it stopped.

        What it waited for then is looked at anew.
        """
        changes = {"finished_at": None, "rests_until": None, "rests_for": None}
        return await self._move(lab_id, job_id, (JobStatus.CANCELLED,), {"status": JobStatus.QUEUED, **changes})

    async def retry_dead(self, lab_id: str, job_id: str, now: datetime) -> bool:
        """True if it was over: its dead items are taken again."""
        over = (JobStatus.COMPLETED, JobStatus.FAILED)
        again = (
            update(_ITEM)
            .where(_MY_ITEMS, _ITEM.c.lab_id == bindparam("this_lab"), _ITEM.c.state == ItemState.DEAD)
            .values(state=ItemState.WAITING, attempts=0, lease_until=now, result=None)
        )
        changes = {"status": JobStatus.QUEUED, "finished_at": None, "error": None, "dead": 0}
        return await self._move(lab_id, job_id, over, changes, again)

    async def results(self, lab_id: str, job_id: str, after: int, most: int) -> list[tuple[int, JsonObject]]:
        """Lines of finished items beyond an index, in order."""
        wanted = {"lab_id": lab_id, "job_id": job_id, "after": after, "most": most}
        return await self._session.run(
            lambda connection: [(row.item_index, row.result or {}) for row in connection.execute(_RESULTS, wanted)]
        )

    async def noted(self, lab_id: str, job_ids: Sequence[str]) -> dict[str, JsonObject]:
        """The progress of items that workers hold, by job, where they told."""
        wanted = {"lab_id": lab_id, "job_ids": list(job_ids)}
        return await self._session.run(
            lambda connection: {row.job_id: row.result for row in connection.execute(_NOTED, wanted) if row.result}
        )

    async def purge(self, before: datetime) -> int:
        """Forget jobs that have been over for long, and their results."""
        return await self._session.run(lambda connection: connection.execute(_PURGE, {"before": before}).rowcount)

    async def _move(
        self, lab_id: str, job_id: str, before: Sequence[str], changes: Mapping[str, Any], *beside: Any
    ) -> bool:
        """Change a job that stands where it should, and its items; whether it did."""
        place = {"this_lab": lab_id, "this_job": job_id}

        def work(connection: Connection) -> bool:
            moved = connection.execute(_MOVE.values(**changes), {**place, "before": list(before)}).rowcount == 1
            for statement in beside if moved else ():
                connection.execute(statement, place)
            return moved

        return await self._session.run(work)


def _hand_back(now: datetime) -> Any:
    """Items that workers hold go back; their attempt does not count."""
    return (
        update(_ITEM)
        .where(_ITEM.c.lab_id == bindparam("this_lab"), _MY_ITEMS, _ITEM.c.state == ItemState.LEASED)
        .values(state=ItemState.WAITING, lease=None, lease_until=now, attempts=_ITEM.c.attempts - 1)
    )


def job_of(row: RowMapping) -> JobRow:
    """A row as the rest of the server knows it."""
    collections = row["collections"]
    changed = {
        "status": JobStatus(row["status"]),
        "collections": None if collections is None else tuple(collections),
        "scopes": tuple(row["scopes"]),
    }
    return JobRow(**{**row, **changed})
