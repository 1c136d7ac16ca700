"""What labs spent on language models, a row per lab and day (UTC).

Checking the ceiling and adding to the total are one statement, so no two questions can both take what is left,
whichever process asks them.
"""

from __future__ import annotations

from datetime import date

from sqlalchemy import ColumnElement, Connection, and_, bindparam, select, true
from sqlalchemy.dialects.sqlite import insert

from reward_server.store.records import NO_CEILING, Ceiling, Spend
from reward_server.store.session import Session
from reward_server.store.tables import LlmSpending, table_of

_SPENDING = table_of(LlmSpending)
_GET = select(_SPENDING.c.tokens, _SPENDING.c.nano_usd).where(
    _SPENDING.c.lab_id == bindparam("lab_id"), _SPENDING.c.day == bindparam("day")
)


class Spending:
    """The spending of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def of(self, lab_id: str, day: date) -> Spend:
        """What the lab spent on this day."""

        def work(connection: Connection) -> Spend:
            found = connection.execute(_GET, {"lab_id": lab_id, "day": day}).mappings().one_or_none()
            return Spend() if found is None else Spend(**found)

        return await self._session.run(work)

    async def add(self, lab_id: str, day: date, spend: Spend, ceiling: Ceiling = NO_CEILING) -> bool:
        """Add to the day's total unless it would pass the ceiling; whether it was added."""
        return await self._session.run(lambda connection: _add(connection, lab_id, day, spend, ceiling))


def _add(connection: Connection, lab_id: str, day: date, spend: Spend, ceiling: Ceiling) -> bool:
    limits = [
        (_SPENDING.c.tokens, spend.tokens, ceiling.tokens),
        (_SPENDING.c.nano_usd, spend.nano_usd, ceiling.nano_usd),
    ]
    # The first spend of a day finds no row to compare with.
    if any(limit is not None and more > limit for _, more, limit in limits):
        return False
    fits: list[ColumnElement[bool]] = [total + more <= limit for total, more, limit in limits if limit is not None]
    row = {"lab_id": lab_id, "day": day, "tokens": spend.tokens, "nano_usd": spend.nano_usd}
    statement = insert(_SPENDING).values(**row)
    statement = statement.on_conflict_do_update(
        index_elements=[_SPENDING.c.lab_id, _SPENDING.c.day],
        set_={"tokens": _SPENDING.c.tokens + spend.tokens, "nano_usd": _SPENDING.c.nano_usd + spend.nano_usd},
        where=and_(true(), *fits),
    )
    return connection.execute(statement).rowcount == 1
