"""Labs' own scenarios, by version. The newest version that passed its check is the one in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.own_collection_records import CheckStatus, InUse, OwnCollectionRow
from reward_server.store.session import Session
from reward_server.store.tables import OwnCollectionTable, table_of

_OWN = table_of(OwnCollectionTable)


class OwnCollectionRepository:
    """Versions of collections."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: OwnCollectionRow) -> None:
        """Store a version."""
        await self._session.run(lambda connection: connection.execute(insert(_OWN), values_of(row)))

    async def of(self, lab_id: str, slug: str | None = None) -> list[OwnCollectionRow]:
        """The versions of a lab, of all its collections or of one, the newest first."""
        rows = select(_OWN).where(_OWN.c.lab_id == lab_id).order_by(_OWN.c.slug, _OWN.c.version.desc())
        return await self._rows(rows if slug is None else rows.where(_OWN.c.slug == slug))

    async def get(self, lab_id: str, slug: str, version: int) -> OwnCollectionRow | None:
        """One version."""
        rows = await self._rows(select(_OWN).where(*_is(lab_id, slug), _OWN.c.version == version))
        return rows[0] if rows else None

    async def in_use(self) -> list[InUse]:
        """Of each collection of all labs the newest version that passed."""
        rows = select(_OWN.c.lab_id, _OWN.c.slug, _OWN.c.version, _OWN.c.digest)
        rows = across_labs(rows.where(_OWN.c.status == CheckStatus.PASSED.value).order_by(_OWN.c.version))
        rows_in_use = await self._session.run(lambda connection: connection.execute(rows).mappings().all())
        return list({(row["lab_id"], row["slug"]): InUse(**row) for row in rows_in_use}.values())

    async def settle(self, row: OwnCollectionRow, status: CheckStatus, findings: Sequence[str]) -> None:
        """Keep what the check of a version found."""
        place = update(_OWN).where(*_is(row.lab_id, row.slug), _OWN.c.version == row.version)
        change = place.values(status=status.value, findings=list(findings))
        await self._session.run(lambda connection: connection.execute(change))

    async def delete(self, lab_id: str, slug: str, *, below: int | None = None) -> bool:
        """Whether there was something to delete: all versions of a collection, or those below one."""
        gone = delete(_OWN).where(*_is(lab_id, slug))
        gone = gone if below is None else gone.where(_OWN.c.version < below)
        return await self._session.run(lambda connection: connection.execute(gone).rowcount > 0)

    async def _rows(self, rows: Any) -> list[OwnCollectionRow]:
        rows_found = await self._session.run(lambda connection: connection.execute(rows).mappings().all())
        return [OwnCollectionRow(**{**row, "status": CheckStatus(row["status"])}) for row in rows_found]


def _is(lab_id: str, slug: str) -> tuple[Any, Any]:
    return _OWN.c.lab_id == lab_id, _OWN.c.slug == slug
