"""Labs: who there is."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from reward_server.store.dialects import upsert
from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.records import LabRow
from reward_server.store.session import Session
from reward_server.store.tables import Lab, table_of

_LAB = table_of(Lab)
_GET = select(_LAB).where(_LAB.c.lab_id == bindparam("lab"))
_LIST = across_labs(select(_LAB).order_by(_LAB.c.lab_id))


class Labs:
    """All labs of this server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: LabRow) -> bool:
        """Store a lab unless there is one of this id; whether it is new."""
        values = values_of(row)

        def work(connection: Connection) -> bool:
            return connection.execute(upsert(connection, _LAB).on_conflict_do_nothing(), values).rowcount == 1

        return await self._session.run(work)

    async def get(self, lab_id: str) -> LabRow | None:
        """The lab, if there is one."""

        def work(connection: Connection) -> LabRow | None:
            found = connection.execute(_GET, {"lab": lab_id}).mappings().one_or_none()
            return None if found is None else LabRow(**found)

        return await self._session.run(work)

    async def list(self) -> list[LabRow]:
        """All labs, by their ids."""
        return await self._session.run(
            lambda connection: [LabRow(**row) for row in connection.execute(_LIST).mappings()]
        )
