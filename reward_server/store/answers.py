"""Answers kept for 24 hours under an Idempotency-Key, so that a retry costs nothing."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select

from reward_server.errors import Conflict
from reward_server.store.dialects import upsert
from reward_server.store.isolation import across_labs
from reward_server.store.mapping import values_of
from reward_server.store.records import ANSWER_LIFETIME, StoredAnswer
from reward_server.store.session import Session
from reward_server.store.tables import AnswerTable, table_of

_ANSWER = table_of(AnswerTable)
_GET = select(_ANSWER).where(
    _ANSWER.c.lab_id == bindparam("lab_id"),
    _ANSWER.c.key == bindparam("key"),
    _ANSWER.c.created_at > bindparam("born_after"),
)
_KEPT = ("fingerprint", "status", "body", "created_at")
_PURGE = across_labs(delete(_ANSWER).where(_ANSWER.c.created_at <= bindparam("born_until")))


class AnswerRepository:
    """Stored answers of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, lab_id: str, key: str, now: datetime) -> StoredAnswer | None:
        """The answer given under this key, unless it is too old."""
        wanted = {"lab_id": lab_id, "key": key, "born_after": now - ANSWER_LIFETIME}

        def work(connection: Connection) -> StoredAnswer | None:
            row = connection.execute(_GET, wanted).mappings().one_or_none()
            return None if row is None else StoredAnswer(**row)

        return await self._session.run(work)

    async def put(self, answer: StoredAnswer) -> None:
        """Keep an answer, in the same transaction as what it reports; `Conflict` if the key was just used."""
        values = {**values_of(answer), "born_until": answer.created_at - ANSWER_LIFETIME}

        def work(connection: Connection) -> int:
            answers = upsert(connection, _ANSWER)
            put = answers.on_conflict_do_update(
                index_elements=[_ANSWER.c.lab_id, _ANSWER.c.key],
                set_={name: answers.excluded[name] for name in _KEPT},
                where=_ANSWER.c.created_at <= bindparam("born_until"),
            )
            return connection.execute(put, values).rowcount

        if not await self._session.run(work):
            raise Conflict("A request with this Idempotency-Key was answered meanwhile; send it again.")

    async def purge(self, now: datetime) -> int:
        """Forget answers that are too old; how many there were."""
        too_old = {"born_until": now - ANSWER_LIFETIME}
        return await self._session.run(lambda connection: connection.execute(_PURGE, too_old).rowcount)
