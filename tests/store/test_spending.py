"""Spending per lab and day: booked only while it fits, exactly; charged once; nothing left behind by the dead."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, date, datetime, timedelta

import pytest

from reward_server.store.records import NO_CEILING, BookingRow, Ceiling, Spend, SpendingRow
from reward_server.store.store import Store

DAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LASTS = timedelta(seconds=90)


def a_booking(spend: Spend, lab_id: str = "acme", day: date = DAY) -> BookingRow:
    return BookingRow(booking_id=secrets.token_hex(16), lab_id=lab_id, day=day, spend=spend, runs_out_at=NOW + LASTS)


async def book(
    store: Store, spend: Spend, ceiling: Ceiling = NO_CEILING, now: datetime = NOW, **where: object
) -> BookingRow | None:
    booking = a_booking(spend, **where)  # type: ignore[arg-type]
    async with store.transaction() as work:
        return booking if await work.spending.book(booking, now, ceiling) else None


async def settle(store: Store, booking: BookingRow | None, used: Spend, calls: int = 1) -> None:
    assert booking is not None
    async with store.transaction() as work:
        await work.spending.settle(booking, used, calls=calls)


async def total(store: Store, lab_id: str = "acme", day: date = DAY) -> Spend:
    async with store.reading() as work:
        return await work.spending.of(lab_id, day)


async def booked(store: Store, now: datetime = NOW) -> Spend:
    async with store.reading() as work:
        return await work.spending.booked("acme", DAY, now)


async def test_it_is_booked_up_to_the_ceiling_and_not_beyond(store: Store) -> None:
    ceiling = Ceiling(tokens=10, nano_usd=100)
    assert await book(store, Spend(tokens=6, nano_usd=60), ceiling)
    assert not await book(store, Spend(tokens=5, nano_usd=1), ceiling)
    assert not await book(store, Spend(tokens=1, nano_usd=41), ceiling)
    assert await book(store, Spend(tokens=4, nano_usd=40), ceiling)
    assert not await book(store, Spend(tokens=1), ceiling)
    assert await booked(store) == Spend(tokens=10, nano_usd=100)
    assert await total(store) == Spend()


@pytest.mark.parametrize("ceiling", [Ceiling(tokens=9), Ceiling(nano_usd=9)])
async def test_the_first_of_a_day_has_to_fit_as_well(store: Store, ceiling: Ceiling) -> None:
    assert not await book(store, Spend(tokens=10, nano_usd=10), ceiling)
    assert await booked(store) == Spend()


async def test_what_was_used_takes_the_place_of_what_was_booked(store: Store) -> None:
    ceiling = Ceiling(tokens=10)
    booking = await book(store, Spend(tokens=10), ceiling)
    await settle(store, booking, Spend(tokens=6))
    assert (await booked(store), await total(store)) == (Spend(), Spend(tokens=6))
    assert not await book(store, Spend(tokens=5), ceiling)
    assert await book(store, Spend(tokens=4), ceiling)


async def test_without_a_ceiling_everything_fits_and_money_is_exact(store: Store) -> None:
    for _ in range(3):
        await settle(store, await book(store, Spend()), Spend(tokens=2**40, nano_usd=10**15 + 1))
    assert await total(store) == Spend(tokens=3 * 2**40, nano_usd=3 * 10**15 + 3)


async def test_labs_and_days_are_apart(store: Store) -> None:
    ceiling = Ceiling(tokens=1)
    assert await book(store, Spend(tokens=1), ceiling)
    assert await book(store, Spend(tokens=1), ceiling, lab_id="other")
    assert await book(store, Spend(tokens=1), ceiling, day=date(2026, 11, 22))
    assert not await book(store, Spend(tokens=1), ceiling)


async def test_a_booking_that_nobody_settles_runs_out(store: Store) -> None:
    """Whoever booked it was killed: the lab gets it back, without a restart and without anybody's doing."""
    ceiling = Ceiling(tokens=10)
    assert await book(store, Spend(tokens=10), ceiling)
    last_moment = NOW + LASTS - timedelta(microseconds=1)
    assert not await book(store, Spend(tokens=1), ceiling, now=last_moment)
    assert await book(store, Spend(tokens=10), ceiling, now=NOW + LASTS)
    assert await total(store) == Spend()


async def test_what_is_settled_late_is_charged_once_all_the_same(store: Store) -> None:
    booking = await book(store, Spend(tokens=10))
    async with store.transaction() as work:
        assert await work.spending.purge(NOW + LASTS) == 1
    await settle(store, booking, Spend(tokens=7))
    assert await total(store) == Spend(tokens=7)


async def test_what_is_on_its_way_is_not_purged(store: Store) -> None:
    await book(store, Spend(tokens=10))
    async with store.transaction() as work:
        assert await work.spending.purge(NOW) == 0
    assert await booked(store) == Spend(tokens=10)


async def test_the_days_of_all_labs(store: Store) -> None:
    for calls, used in ((1, Spend(tokens=5, nano_usd=50)), (1, Spend()), (0, Spend())):
        await settle(store, await book(store, Spend(tokens=9)), used, calls)
    await book(store, Spend(tokens=3, nano_usd=30))
    await book(store, Spend(tokens=4), lab_id="another")
    before = DAY - timedelta(days=1)
    await settle(store, await book(store, Spend(), day=before), Spend(tokens=8))
    async with store.reading() as work:
        today = await work.spending.since(DAY, NOW)
        both = await work.spending.since(before, NOW)
        later = await work.spending.since(DAY, NOW + LASTS)
    acme = SpendingRow(
        lab_id="acme",
        day=DAY,
        calls=2,
        spent=Spend(tokens=5, nano_usd=50),
        booked=Spend(tokens=3, nano_usd=30),
    )
    another = SpendingRow(lab_id="another", day=DAY, calls=0, spent=Spend(), booked=Spend(tokens=4))
    assert today == [acme, another]
    assert [(row.lab_id, row.day, row.spent.tokens) for row in both] == [
        ("acme", before, 8),
        ("acme", DAY, 5),
        ("another", DAY, 0),
    ]
    assert [(row.lab_id, row.booked) for row in later] == [("acme", Spend())]


async def test_two_processes_share_what_is_there(url: str) -> None:
    stores = [await Store.open(url) for _ in range(2)]
    ceiling = Ceiling(tokens=31)
    taken = await asyncio.gather(*(book(store, Spend(tokens=3), ceiling) for _ in range(25) for store in stores))
    assert sum(each is not None for each in taken) == 10
    assert (await booked(stores[0])).tokens == 30
    for store in stores:
        await store.close()


async def test_many_at_once_take_exactly_what_is_there(store: Store) -> None:
    taken = await asyncio.gather(*(book(store, Spend(tokens=3), Ceiling(tokens=31)) for _ in range(50)))
    assert sum(each is not None for each in taken) == 10
    assert (await booked(store)).tokens == 30
