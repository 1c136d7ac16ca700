"""Pairs of conversations that were compared: the raw material of preference data."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from reward_server.store.lab_rows import LabRows
from reward_server.store.pages import everything
from reward_server.store.records import ComparisonRow
from reward_server.store.tables import ComparisonTable, table_of

_COMPARISON = table_of(ComparisonTable)
_GET = select(_COMPARISON).where(
    _COMPARISON.c.lab_id == bindparam("lab_id"), _COMPARISON.c.comparison_id == bindparam("comparison_id")
)


class ComparisonRepository(LabRows[ComparisonRow]):
    """Comparisons of one lab at a time."""

    _table = _COMPARISON
    _id_column = "comparison_id"
    _record = ComparisonRow

    async def get(self, lab_id: str, comparison_id: str) -> ComparisonRow | None:
        """One comparison, with the verdicts that only the operator may see."""

        def work(connection: Connection) -> ComparisonRow | None:
            wanted = {"lab_id": lab_id, "comparison_id": comparison_id}
            row = connection.execute(_GET, wanted).mappings().one_or_none()
            return None if row is None else ComparisonRow(**row)

        return await self._session.run(work)

    async def of(self, lab_id: str | None = None) -> list[ComparisonRow]:
        """All comparisons of a lab, or of all labs, oldest first; for the operator, who trains models on them."""
        rows = await everything(self._session, self._table, self._id_column, lab_id)
        return [ComparisonRow(**row) for row in rows]
