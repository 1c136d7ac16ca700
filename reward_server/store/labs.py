"""Labs: who there is, and what each may use."""

from __future__ import annotations

from dataclasses import asdict, fields

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from reward_server.store.dialects import upsert
from reward_server.store.isolation import across_labs
from reward_server.store.records import LabLimitsRow, LabRow
from reward_server.store.session import Session
from reward_server.store.tables import LabTable, table_of

_LAB = table_of(LabTable)
_GET = select(_LAB).where(_LAB.c.lab_id == bindparam("lab"))
_LIST = across_labs(select(_LAB).order_by(_LAB.c.lab_id))
_LIMITS = tuple(field.name for field in fields(LabLimitsRow))


class LabRepository:
    """All labs of this server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: LabRow) -> bool:
        """Store a lab unless there is one of this id; whether it is new."""
        values = _values(row)

        def work(connection: Connection) -> bool:
            return connection.execute(upsert(connection, _LAB).on_conflict_do_nothing(), values).rowcount == 1

        return await self._session.run(work)

    async def change(self, row: LabRow) -> None:
        """Give a lab another name and other limits."""
        values = {name: value for name, value in _values(row).items() if name not in ("lab_id", "created_at")}
        statement = update(_LAB).where(_LAB.c.lab_id == row.lab_id).values(**values)
        await self._session.run(lambda connection: connection.execute(statement))

    async def get(self, lab_id: str) -> LabRow | None:
        """The lab, if there is one."""

        def work(connection: Connection) -> LabRow | None:
            row = connection.execute(_GET, {"lab": lab_id}).mappings().one_or_none()
            return None if row is None else _record(row)

        return await self._session.run(work)

    async def list(self) -> list[LabRow]:
        """All labs, by their ids."""
        return await self._session.run(
            lambda connection: [_record(row) for row in connection.execute(_LIST).mappings()]
        )


def _values(row: LabRow) -> dict[str, object]:
    return {"lab_id": row.lab_id, "name": row.name, "created_at": row.created_at, **asdict(row.limits)}


def _record(row: RowMapping) -> LabRow:
    limits = LabLimitsRow(**{name: row[name] for name in _LIMITS})
    return LabRow(lab_id=row["lab_id"], name=row["name"], created_at=row["created_at"], limits=limits)
