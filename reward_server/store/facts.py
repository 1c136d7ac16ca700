"""Facts that a server must not forget, such as which pepper its keys were hashed with: short texts by name."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from reward_server.store.dialects import upsert
from reward_server.store.session import Session
from reward_server.store.tables import ServerFactTable, table_of

_FACT = table_of(ServerFactTable)
_GET = select(_FACT.c.value).where(_FACT.c.name == bindparam("name"))


class FactRepository:
    """Facts of the server, not of a lab."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, name: str) -> str | None:
        """The fact, if it is known."""
        return await self._session.run(lambda connection: connection.execute(_GET, {"name": name}).scalar_one_or_none())

    async def learn(self, name: str, value: str) -> str:
        """Keep a fact unless there is one of this name; what is kept."""

        def work(connection: Connection) -> str:
            row = {"name": name, "value": value}
            connection.execute(upsert(connection, _FACT).on_conflict_do_nothing(), row)
            return str(connection.execute(_GET, {"name": name}).scalar_one())

        return await self._session.run(work)
