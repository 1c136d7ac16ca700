"""Usage of labs, a row per lab and day (UTC)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Connection, select

from reward_server.store.dialects import upsert
from reward_server.store.mapping import values_of
from reward_server.store.records import UsageRow
from reward_server.store.session import Session
from reward_server.store.tables import UsageTable, table_of

_USAGE = table_of(UsageTable)
_COUNTS = ("requests", "turns", "evaluations", "characters")


class UsageRepository:
    """The usage of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add_many(self, rows: Sequence[UsageRow]) -> list[UsageRow]:
        """Add to what is counted; the new sums, in order."""
        return await self._session.run(lambda connection: [_add(connection, row) for row in rows])

    async def of(self, lab_id: str, since: date) -> list[UsageRow]:
        """A lab's days from this one on, the newest first."""
        wanted = select(_USAGE).where(_USAGE.c.lab_id == lab_id, _USAGE.c.day >= since).order_by(_USAGE.c.day.desc())
        return await self._session.run(
            lambda connection: [UsageRow(**row) for row in connection.execute(wanted).mappings()]
        )


def _add(connection: Connection, row: UsageRow) -> UsageRow:
    statement = upsert(connection, _USAGE).values(**values_of(row))
    summed = statement.on_conflict_do_update(
        index_elements=[_USAGE.c.lab_id, _USAGE.c.day],
        set_={name: _USAGE.c[name] + getattr(row, name) for name in _COUNTS},
    ).returning(*_USAGE.c)
    return UsageRow(**connection.execute(summed).mappings().one())
