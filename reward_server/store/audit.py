"""The audit log: what was done, by whom and from where; nothing here is ever changed."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.pages import is_after
from reward_server.store.records import AuditRow, PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import AuditEventTable, table_of

_EVENT = table_of(AuditEventTable)
_ADD = insert(_EVENT)


class AuditRepository:
    """Events of all labs: for operators."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: AuditRow) -> None:
        """Keep an event."""
        await self._session.run(lambda connection: connection.execute(_ADD, values_of(row)))

    async def page(self, limit: int, *, after: PageEnd | None = None, lab_id: str | None = None) -> list[AuditRow]:
        """Events, the newest first, those after a position; of one lab or of all."""
        wanted = select(_EVENT).order_by(_EVENT.c.at.desc(), _EVENT.c.event_id.desc()).limit(limit)
        wanted = across_labs(wanted) if lab_id is None else wanted.where(_EVENT.c.lab_id == lab_id)
        if after is not None:
            wanted = wanted.where(is_after(_EVENT.c.at, _EVENT.c.event_id, after))

        def work(connection: Connection) -> list[AuditRow]:
            return [AuditRow(**row) for row in connection.execute(wanted).mappings()]

        return await self._session.run(work)
