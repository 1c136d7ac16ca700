"""Training runs of labs, and their metrics.

A learner that goes on from a checkpoint does updates again, so a record replaces the one of its step and kind, and
records of updates that were not kept are forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, func, insert, or_, select, update

from reward_server.store.dialects import upsert
from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.pages import is_after, made_with
from reward_server.store.records import PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import TrainingMetricTable, TrainingRunTable, table_of
from reward_server.store.training_records import OPEN_RUNS, MetricPlace, MetricRow, RunStatus, TrainingRunRow

_RUN = table_of(TrainingRunTable)
_METRIC = table_of(TrainingMetricTable)
_IDS = across_labs(select(_RUN.c.training_run_id))


class TrainingRunRepository:
    """Runs of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: TrainingRunRow) -> None:
        """Store a run."""
        await self._session.run(lambda connection: connection.execute(insert(_RUN), values_of(row)))

    async def get(self, lab_id: str, run_id: str) -> TrainingRunRow | None:
        """One of them."""
        row = select(_RUN).where(_RUN.c.lab_id == lab_id, _RUN.c.training_run_id == run_id)
        run_row = await self._session.run(lambda connection: connection.execute(row).mappings().one_or_none())
        return None if run_row is None else _run(run_row)

    async def page(
        self,
        lab_id: str,
        limit: int,
        after: PageEnd | None = None,
        *,
        status: RunStatus | None = None,
        collections: Sequence[str] | None = None,
    ) -> list[TrainingRunRow]:
        """The lab's runs, newest first, all or those that stand so.

        `collections`: only those that were made with no other collections; None: all.
        """
        created, own = _RUN.c.created_at, _RUN.c.training_run_id
        rows = select(_RUN).where(_RUN.c.lab_id == lab_id).order_by(created.desc(), own.desc()).limit(limit)
        if after is not None:
            rows = rows.where(is_after(created, own, after))
        if status is not None:
            rows = rows.where(_RUN.c.status == status)
        if collections is not None:
            rows = rows.where(made_with(_RUN.c.collections, collections))
        return await self._session.run(lambda connection: [_run(row) for row in connection.execute(rows).mappings()])

    async def count(self, lab_id: str, statuses: Sequence[RunStatus]) -> int:
        """The number of the lab's runs with these statuses."""
        query = select(func.count()).where(_RUN.c.lab_id == lab_id, _RUN.c.status.in_(statuses))
        return await self._session.run(lambda connection: int(connection.execute(query).scalar_one()))

    async def move(self, lab_id: str, run_id: str, before: Sequence[RunStatus], changes: Mapping[str, Any]) -> bool:
        """Change a run that stands where it should; whether it did."""
        own = _RUN.c.lab_id == lab_id, _RUN.c.training_run_id == run_id
        changed = update(_RUN).where(*own, _RUN.c.status.in_(before)).values(**changes)
        return await self._session.run(lambda connection: connection.execute(changed).rowcount == 1)

    async def delete(self, lab_id: str, run_id: str) -> bool:
        """True if there was such a run, and it was over; its metrics go with it."""
        own = _RUN.c.lab_id == lab_id, _RUN.c.training_run_id == run_id
        gone = delete(_RUN).where(*own, _RUN.c.status.not_in(OPEN_RUNS))
        return await self._session.run(lambda connection: connection.execute(gone).rowcount == 1)

    async def ids(self) -> set[str]:
        """Runs of all labs."""
        return await self._session.run(lambda connection: set(connection.execute(_IDS).scalars()))

    async def add_metrics(self, lab_id: str, run_id: str, rows: Sequence[MetricRow]) -> None:
        """Store records; each replaces the one of its step and kind."""
        values = [{"lab_id": lab_id, "training_run_id": run_id, **values_of(row)} for row in rows]

        def work(connection: Connection) -> None:
            added = upsert(connection, _METRIC)
            keys = ["training_run_id", "step", "kind"]
            connection.execute(
                added.on_conflict_do_update(index_elements=keys, set_={"record": added.excluded.record}), values
            )

        if values:
            await self._session.run(work)

    async def rewind(self, lab_id: str, run_id: str, step: int) -> None:
        """Forget the records of later steps."""
        own = _METRIC.c.lab_id == lab_id, _METRIC.c.training_run_id == run_id
        gone = delete(_METRIC).where(*own, _METRIC.c.step > step)
        await self._session.run(lambda connection: connection.execute(gone))

    async def metrics(self, lab_id: str, run_id: str, after: MetricPlace, limit: int) -> list[MetricRow]:
        """Records beyond a place, in the order in which the learner writes them: an update, then its evaluation."""
        step, kind = _METRIC.c.step, _METRIC.c.kind
        rows = select(step, kind, _METRIC.c.record).where(
            _METRIC.c.lab_id == lab_id,
            _METRIC.c.training_run_id == run_id,
            or_(step > after.step, and_(step == after.step, kind < after.kind)),
        )
        rows = rows.order_by(step, kind.desc()).limit(limit)
        return await self._session.run(
            lambda connection: [MetricRow(**row) for row in connection.execute(rows).mappings()]
        )


def _run(row: RowMapping) -> TrainingRunRow:
    return TrainingRunRow(**{**row, "status": RunStatus(row["status"])})
