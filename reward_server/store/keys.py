"""API keys: digests and permissions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, or_, select, update

from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.records import KeyRow
from reward_server.store.session import Session
from reward_server.store.tables import ApiKeyTable, table_of

_KEY = table_of(ApiKeyTable)
_ADD = insert(_KEY)
# Whose key it is, only the key tells.
_GET = across_labs(select(_KEY).where(_KEY.c.key_id == bindparam("key_id")))
_LIST = across_labs(select(_KEY).order_by(_KEY.c.created_at, _KEY.c.key_id))
_COUNT = across_labs(select(func.count()).select_from(_KEY))
_REVOKE = across_labs(
    update(_KEY)
    .where(_KEY.c.key_id == bindparam("this_key"), _KEY.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
_USED = across_labs(
    update(_KEY)
    .where(
        _KEY.c.key_id == bindparam("this_key"),
        or_(_KEY.c.last_used_at.is_(None), _KEY.c.last_used_at < bindparam("at")),
    )
    .values(last_used_at=bindparam("at"))
)
_DELETE = across_labs(delete(_KEY).where(_KEY.c.key_id == bindparam("this_key")))


class KeyRepository:
    """Keys of all labs: only the key ring and the operator's commands read them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, row: KeyRow) -> None:
        """Store a new key."""
        values = values_of(row)
        values["collections"] = None if row.collections is None else list(row.collections)
        values["scopes"] = " ".join(row.scopes)
        await self._session.run(lambda connection: connection.execute(_ADD, values))

    async def get(self, key_id: str) -> KeyRow | None:
        """The key, revoked or not."""

        def work(connection: Connection) -> KeyRow | None:
            row = connection.execute(_GET, {"key_id": key_id}).mappings().one_or_none()
            return None if row is None else _record(row)

        return await self._session.run(work)

    async def list(self) -> list[KeyRow]:
        """All keys, oldest first, revoked ones included."""
        return await self._session.run(
            lambda connection: [_record(row) for row in connection.execute(_LIST).mappings()]
        )

    async def revoke(self, key_id: str, at: datetime) -> bool:
        """True if there was such a key that was not revoked yet."""
        values = {"this_key": key_id, "at": at}
        return await self._session.run(lambda connection: connection.execute(_REVOKE, values).rowcount == 1)

    async def note_use(self, used: Mapping[str, datetime]) -> None:
        """Note when keys were last used, by their ids; an older moment than the one that is known changes nothing."""
        values = [{"this_key": key_id, "at": at} for key_id, at in sorted(used.items())]
        await self._session.run(lambda connection: connection.execute(_USED, values))

    async def delete(self, key_id: str) -> bool:
        """True if there was such a key."""
        return await self._session.run(
            lambda connection: connection.execute(_DELETE, {"this_key": key_id}).rowcount == 1
        )

    async def count(self) -> int:
        """The number of keys, revoked ones included."""
        return await self._session.run(lambda connection: int(connection.execute(_COUNT).scalar_one()))


def _record(row: RowMapping) -> KeyRow:
    collections = row["collections"]
    given = {"collections": None if collections is None else tuple(collections), "scopes": tuple(row["scopes"].split())}
    return KeyRow(**{**row, **given})
