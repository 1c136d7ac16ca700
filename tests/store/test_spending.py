"""Spending per lab and day: added only while it fits, exactly."""

from __future__ import annotations

import asyncio
from datetime import date

import pytest

from reward_server.store.records import Ceiling, Spend
from reward_server.store.store import Store

DAY = date(2026, 11, 21)


async def add(store: Store, spend: Spend, ceiling: Ceiling, lab_id: str = "acme", day: date = DAY) -> bool:
    async with store.transaction() as work:
        return await work.spending.add(lab_id, day, spend, ceiling)


async def total(store: Store, lab_id: str = "acme", day: date = DAY) -> Spend:
    async with store.reading() as work:
        return await work.spending.of(lab_id, day)


async def test_it_adds_up_to_the_ceiling_and_not_beyond(store: Store) -> None:
    ceiling = Ceiling(tokens=10, nano_usd=100)
    assert await add(store, Spend(tokens=6, nano_usd=60), ceiling)
    assert not await add(store, Spend(tokens=5, nano_usd=1), ceiling)
    assert not await add(store, Spend(tokens=1, nano_usd=41), ceiling)
    assert await add(store, Spend(tokens=4, nano_usd=40), ceiling)
    assert not await add(store, Spend(tokens=1), ceiling)
    assert await total(store) == Spend(tokens=10, nano_usd=100)


@pytest.mark.parametrize("ceiling", [Ceiling(tokens=9), Ceiling(nano_usd=9)])
async def test_the_first_of_a_day_has_to_fit_as_well(store: Store, ceiling: Ceiling) -> None:
    assert not await add(store, Spend(tokens=10, nano_usd=10), ceiling)
    assert await total(store) == Spend()


async def test_without_a_ceiling_everything_fits_and_money_is_exact(store: Store) -> None:
    for _ in range(3):
        assert await add(store, Spend(tokens=2**40, nano_usd=10**15 + 1), Ceiling())
    assert await total(store) == Spend(tokens=3 * 2**40, nano_usd=3 * 10**15 + 3)


async def test_labs_and_days_are_apart(store: Store) -> None:
    ceiling = Ceiling(tokens=1)
    assert await add(store, Spend(tokens=1), ceiling)
    assert await add(store, Spend(tokens=1), ceiling, lab_id="other")
    assert await add(store, Spend(tokens=1), ceiling, day=date(2026, 11, 22))
    assert not await add(store, Spend(tokens=1), ceiling)


async def test_a_correction_gives_back(store: Store) -> None:
    ceiling = Ceiling(tokens=10)
    assert await add(store, Spend(tokens=10), ceiling)
    assert await add(store, Spend(tokens=-4), Ceiling())
    assert await add(store, Spend(tokens=4), ceiling)
    assert (await total(store)).tokens == 10


async def test_two_processes_share_what_is_there(url: str) -> None:
    stores = [await Store.open(url) for _ in range(2)]
    ceiling = Ceiling(tokens=31)
    taken = await asyncio.gather(*(add(store, Spend(tokens=3), ceiling) for _ in range(25) for store in stores))
    assert sum(taken) == 10
    assert (await total(stores[0])).tokens == 30
    for store in stores:
        await store.close()


async def test_many_at_once_take_exactly_what_is_there(store: Store) -> None:
    taken = await asyncio.gather(*(add(store, Spend(tokens=3), Ceiling(tokens=31)) for _ in range(50)))
    assert sum(taken) == 10
    assert (await total(store)).tokens == 30
