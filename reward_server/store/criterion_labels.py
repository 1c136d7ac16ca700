"""Labels of single criteria by people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Select, insert

from reward_server.store.mapping import values_of
from reward_server.store.pages import newest
from reward_server.store.records import CriterionLabelRow, PageEnd
from reward_server.store.session import Session
from reward_server.store.tables import CriterionLabelTable, table_of

_LABEL = table_of(CriterionLabelTable)
_ADD = insert(_LABEL)


class CriterionLabelRepository:
    """Labels of criteria, of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: CriterionLabelRow) -> None:
        """Store a label."""
        await self._session.run(lambda connection: connection.execute(_ADD, values_of(row)))

    async def page(
        self,
        lab_id: str,
        limit: int,
        *,
        after: PageEnd | None = None,
        collections: Sequence[str] | None = None,
        until: datetime | None = None,
        conversation_id: str | None = None,
        scoring_version: str | None = None,
    ) -> list[CriterionLabelRow]:
        """The lab's labels in these collections (None: in all), the newest first."""
        rows = newest(_LABEL, "label_id", limit, after=after, collections=collections, until=until)
        rows = _of(rows.where(_LABEL.c.lab_id == lab_id), conversation_id, scoring_version)
        return await self._session.run(
            lambda connection: [CriterionLabelRow(**found) for found in connection.execute(rows).mappings()]
        )


def _of(rows: Select[tuple[object]], conversation_id: str | None, scoring_version: str | None) -> Select[tuple[object]]:
    if conversation_id is not None:
        rows = rows.where(_LABEL.c.conversation_id == conversation_id)
    return rows if scoring_version is None else rows.where(_LABEL.c.scoring_version == scoring_version)
