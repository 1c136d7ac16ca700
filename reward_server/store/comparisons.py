"""Pairs of conversations that were compared: the raw material of preference data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select

from reward_server.store.mapping import values_of
from reward_server.store.pages import everything, newest
from reward_server.store.records import ComparisonRow, PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import ComparisonTable, table_of

_COMPARISON = table_of(ComparisonTable)
_ADD = insert(_COMPARISON)
_GET = select(_COMPARISON).where(
    _COMPARISON.c.lab_id == bindparam("lab_id"), _COMPARISON.c.comparison_id == bindparam("comparison_id")
)


class ComparisonRepository:
    """Comparisons of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: ComparisonRow) -> None:
        """Store a comparison."""
        await self._session.run(lambda connection: connection.execute(_ADD, values_of(row)))

    async def get(self, lab_id: str, comparison_id: str) -> ComparisonRow | None:
        """One comparison, with the verdicts that only the operator may see."""

        def work(connection: Connection) -> ComparisonRow | None:
            wanted = {"lab_id": lab_id, "comparison_id": comparison_id}
            row = connection.execute(_GET, wanted).mappings().one_or_none()
            return None if row is None else ComparisonRow(**row)

        return await self._session.run(work)

    async def page(
        self,
        lab_id: str,
        limit: int,
        *,
        after: PageEnd | None = None,
        collections: Sequence[str] | None = None,
        until: datetime | None = None,
    ) -> list[ComparisonRow]:
        """The lab's comparisons in these collections (None: in all), the newest first."""
        rows = newest(_COMPARISON, "comparison_id", limit, after=after, collections=collections, until=until)
        rows = rows.where(_COMPARISON.c.lab_id == lab_id)
        return await self._session.run(
            lambda connection: [ComparisonRow(**mapping) for mapping in connection.execute(rows).mappings()]
        )

    async def of(self, lab_id: str | None = None) -> list[ComparisonRow]:
        """All comparisons of a lab, or of all labs, oldest first; for the operator, who trains models on them."""
        rows = await everything(self._session, _COMPARISON, "comparison_id", lab_id)
        return [ComparisonRow(**row) for row in rows]
