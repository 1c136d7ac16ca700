"""Decisions of language models: opaque texts by key. The first one under a key stays, unless it turns out damaged.

What is in them and what the keys are made of is the business of whoever keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, LargeBinary, bindparam, cast, delete, select, update

from reward_server.store.dialects import upsert
from reward_server.store.session import Session
from reward_server.store.tables import LlmVerdictTable, table_of

KEYS_AT_ONCE = 500
"""SQLite takes a bounded number of parameters in a statement."""

_VERDICT = table_of(LlmVerdictTable)
_GET = select(_VERDICT.c.key, _VERDICT.c.body).where(_VERDICT.c.key.in_(bindparam("keys", expanding=True)))
# As bytes: SQLite keeps text that is no UTF-8, which would fail the whole statement, and with it all the other keys.
_BYTES = cast(_VERDICT.c.body, LargeBinary).label("body")
_GET_BYTES = select(_VERDICT.c.key, _BYTES).where(_VERDICT.c.key.in_(bindparam("keys", expanding=True)))
_REPLACE = (
    update(_VERDICT)
    .where(_VERDICT.c.key == bindparam("of"))
    .values(body=bindparam("body"), created_at=bindparam("created_at"))
)
_PURGE = delete(_VERDICT).where(_VERDICT.c.created_at < bindparam("before"))


class LlmAnswerRepository:
    """Decisions of all labs: a key tells nothing about whose they are."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get_many(self, keys: Sequence[str]) -> dict[str, str]:
        """The bodies under these keys; keys without one are missing."""

        def work(connection: Connection) -> dict[str, str]:
            answers: dict[str, str] = {}
            for start in range(0, len(keys), KEYS_AT_ONCE):
                answers |= _bodies(connection, keys[start : start + KEYS_AT_ONCE])
            return answers

        return await self._session.run(work)

    async def put_many(self, bodies: Mapping[str, str], at: datetime) -> None:
        """Keep these, each unless there is one under its key."""
        rows = [{"key": key, "body": body, "created_at": at} for key, body in bodies.items()]
        if rows:
            await self._session.run(
                lambda connection: connection.execute(upsert(connection, _VERDICT).on_conflict_do_nothing(), rows)
            )

    async def replace(self, key: str, damaged: str, body: str, at: datetime) -> None:
        """Put a body in the place of a damaged one, unless somebody else has replaced that already."""

        def work(connection: Connection) -> None:
            if _bodies(connection, [key]).get(key) == damaged:
                connection.execute(_REPLACE, {"of": key, "body": body, "created_at": at})

        await self._session.run(work)

    async def purge(self, before: datetime) -> int:
        """Forget what was decided before this moment; how many there were."""
        return await self._session.run(lambda connection: connection.execute(_PURGE, {"before": before}).rowcount)


def _bodies(connection: Connection, keys: Sequence[str]) -> dict[str, str]:
    wanted = {"keys": list(keys)}
    if connection.dialect.name != "sqlite":
        return {row.key: row.body for row in connection.execute(_GET, wanted)}
    return {row.key: row.body.decode("utf-8", "replace") for row in connection.execute(_GET_BYTES, wanted)}
