"""Preferences of people between pairs of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import insert

from reward_server.store.mapping import values_of
from reward_server.store.pages import newest
from reward_server.store.records import PageEnd, PreferenceRow
from reward_server.store.session import Session
from reward_server.store.tables import PreferenceTable, table_of

_PREFERENCE = table_of(PreferenceTable)
_ADD = insert(_PREFERENCE)


class PreferenceRepository:
    """Human preferences of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: PreferenceRow) -> None:
        """Store a preference."""
        await self._session.run(lambda connection: connection.execute(_ADD, values_of(row)))

    async def page(
        self,
        lab_id: str,
        limit: int,
        *,
        after: PageEnd | None = None,
        collections: Sequence[str] | None = None,
        until: datetime | None = None,
    ) -> list[PreferenceRow]:
        """The lab's preferences in these collections (None: in all), the newest first."""
        rows = newest(_PREFERENCE, "preference_id", limit, after=after, collections=collections, until=until)
        rows = rows.where(_PREFERENCE.c.lab_id == lab_id)
        return await self._session.run(
            lambda connection: [PreferenceRow(**mapping) for mapping in connection.execute(rows).mappings()]
        )
