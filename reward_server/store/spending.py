"""Spending of labs on language models, a row per lab and day (UTC), and what is booked for questions on their way.

Checking the ceiling and booking are one transaction that holds a lock, so no two questions can both take what
is left, whichever process asks them. A booking counts until it is settled or has run out: a process that died leaves
nothing behind that a lab would be charged for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from reward_server.store.dialects import one_at_a_time, upsert
from reward_server.store.isolation import across_labs
from reward_server.store.records import NO_CEILING, BookingRow, Ceiling, Spend, SpendingRow
from reward_server.store.session import Session
from reward_server.store.tables import LlmBookingTable, LlmSpendingTable, table_of

_SPENDING, _BOOKING = table_of(LlmSpendingTable), table_of(LlmBookingTable)
_GET = select(_SPENDING.c.tokens, _SPENDING.c.nano_usd).where(
    _SPENDING.c.lab_id == bindparam("lab_id"), _SPENDING.c.day == bindparam("day")
)
_BOOKED = select(
    func.coalesce(func.sum(_BOOKING.c.tokens), 0).label("tokens"),
    func.coalesce(func.sum(_BOOKING.c.nano_usd), 0).label("nano_usd"),
).where(
    _BOOKING.c.lab_id == bindparam("lab_id"),
    _BOOKING.c.day == bindparam("day"),
    _BOOKING.c.runs_out_at > bindparam("now"),
)
_BOOK = insert(_BOOKING)
_UNBOOK = delete(_BOOKING).where(
    _BOOKING.c.lab_id == bindparam("lab_id"), _BOOKING.c.booking_id == bindparam("booking_id")
)
_PURGE = across_labs(delete(_BOOKING).where(_BOOKING.c.runs_out_at <= bindparam("now")))
_DAYS = across_labs(select(_SPENDING).where(_SPENDING.c.day >= bindparam("since")))
_DAYS_BOOKED = across_labs(
    select(_BOOKING.c.lab_id, _BOOKING.c.day)
    .where(_BOOKING.c.day >= bindparam("since"), _BOOKING.c.runs_out_at > bindparam("now"))
    .distinct()
)


class SpendingRepository:
    """The spending of one lab at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def of(self, lab_id: str, day: date) -> Spend:
        """The spending of the lab on this day, as far as it is settled."""
        return await self._session.run(lambda connection: _spent(connection, lab_id, day))

    async def booked(self, lab_id: str, day: date, now: datetime) -> Spend:
        """The amount booked of this day for questions that are on their way at this moment."""
        return await self._session.run(lambda connection: _booked(connection, lab_id, day, now))

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling = NO_CEILING) -> bool:
        """Book, unless the day's spending and bookings would pass the ceiling; whether it was booked."""
        return await self._session.run(lambda connection: _book(connection, booking, now, ceiling))

    async def settle(self, booking: BookingRow, spend: Spend, *, calls: int) -> None:
        """Charge what was used, in the place of a booking, which may have run out."""

        def work(connection: Connection) -> None:
            connection.execute(_UNBOOK, {"lab_id": booking.lab_id, "booking_id": booking.booking_id})
            if calls or spend != Spend():
                _charge(connection, booking.lab_id, booking.day, spend, calls)

        await self._session.run(work)

    async def purge(self, now: datetime) -> int:
        """Forget bookings that have run out; how many there were."""
        return await self._session.run(lambda connection: connection.execute(_PURGE, {"now": now}).rowcount)

    async def since(self, day: date, now: datetime) -> list[SpendingRow]:
        """Every lab's days from this one on, by day and lab."""
        return await self._session.run(lambda connection: _since(connection, day, now))


def _spent(connection: Connection, lab_id: str, day: date) -> Spend:
    row = connection.execute(_GET, {"lab_id": lab_id, "day": day}).mappings().one_or_none()
    return Spend() if row is None else Spend(**row)


def _booked(connection: Connection, lab_id: str, day: date, now: datetime) -> Spend:
    return Spend(**connection.execute(_BOOKED, {"lab_id": lab_id, "day": day, "now": now}).mappings().one())


def _book(connection: Connection, booking: BookingRow, now: datetime, ceiling: Ceiling) -> bool:
    if ceiling != NO_CEILING:
        one_at_a_time(connection, f"spending/{booking.lab_id}/{booking.day}")
        totals = (
            _spent(connection, booking.lab_id, booking.day),
            _booked(connection, booking.lab_id, booking.day, now),
            booking.spend,
        )
        if not _fits(totals, ceiling):
            return False
    row = {
        "booking_id": booking.booking_id,
        "lab_id": booking.lab_id,
        "day": booking.day,
        "tokens": booking.spend.tokens,
        "nano_usd": booking.spend.nano_usd,
        "runs_out_at": booking.runs_out_at,
    }
    connection.execute(_BOOK, row)
    return True


def _fits(totals: Sequence[Spend], ceiling: Ceiling) -> bool:
    tokens, nano_usd = sum(total.tokens for total in totals), sum(total.nano_usd for total in totals)
    return (ceiling.tokens is None or tokens <= ceiling.tokens) and (
        ceiling.nano_usd is None or nano_usd <= ceiling.nano_usd
    )


def _charge(connection: Connection, lab_id: str, day: date, spend: Spend, calls: int) -> None:
    more = {"tokens": spend.tokens, "nano_usd": spend.nano_usd, "calls": calls}
    statement = upsert(connection, _SPENDING).values(lab_id=lab_id, day=day, **more)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[_SPENDING.c.lab_id, _SPENDING.c.day],
            set_={name: _SPENDING.c[name] + value for name, value in more.items()},
        )
    )


def _since(connection: Connection, day: date, now: datetime) -> list[SpendingRow]:
    settled = {(row.lab_id, row.day): row for row in connection.execute(_DAYS, {"since": day})}
    under_way = {(row.lab_id, row.day) for row in connection.execute(_DAYS_BOOKED, {"since": day, "now": now})}
    changes = []
    for lab_id, that_day in sorted({*settled, *under_way}, key=lambda known: (known[1], known[0])):
        row = settled.get((lab_id, that_day))
        changes.append(
            SpendingRow(
                lab_id=lab_id,
                day=that_day,
                calls=0 if row is None else row.calls,
                spent=Spend() if row is None else Spend(tokens=row.tokens, nano_usd=row.nano_usd),
                booked=_booked(connection, lab_id, that_day, now),
            )
        )
    return changes
