"""What labs use is counted once, also while the database is away; a lab's own ceiling counts for language models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, timedelta

import pytest

from reward_server.clock import ManualClock
from reward_server.errors import StoreUnavailable
from reward_server.limits.usage import UsageMeter
from reward_server.llm.durable import StoredLedger
from reward_server.store.records import BookingRow, Ceiling, LabLimitsRow, LabRow, Spend, UsageRow
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork

CLOCK = ManualClock()
TODAY: date = CLOCK.now().date()


@pytest.fixture
async def store(sqlite_database: str) -> AsyncIterator[Store]:
    opened = await Store.open(sqlite_database)
    yield opened
    await opened.close()


async def kept(store: Store) -> list[UsageRow]:
    async with store.reading() as work:
        return await work.usage.of("acme", TODAY)


async def test_servers_add_up_what_they_counted(store: Store) -> None:
    meters = [UsageMeter(store, CLOCK) for _ in range(2)]
    for number, meter in enumerate(meters, 1):
        meter.count("acme", requests=1, characters=10 * number)
        await meter.flush()
    await meters[0].flush()
    assert await kept(store) == [UsageRow(lab_id="acme", day=TODAY, requests=2, characters=30)]
    assert [meter.characters_today("acme") for meter in meters] == [10, 30]
    meters[0].count("acme", characters=1)
    await meters[0].flush()
    assert meters[0].characters_today("acme") == 31


async def test_what_cannot_be_kept_is_kept_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def away() -> AsyncIterator[UnitOfWork]:
        raise StoreUnavailable
        yield

    meter = UsageMeter(store, CLOCK)
    meter.count("acme", turns=1, characters=5)
    with monkeypatch.context() as lost:
        lost.setattr(store, "transaction", away)
        await meter.flush()
        meter.count("acme", turns=1, evaluations=2)
        await meter.flush()
        assert meter.characters_today("acme") == 5
    await meter.flush()
    assert await kept(store) == [UsageRow(lab_id="acme", day=TODAY, turns=2, evaluations=2, characters=5)]


async def test_a_new_day_begins_with_nothing(store: Store) -> None:
    clock = ManualClock()
    meter = UsageMeter(store, clock)
    meter.count("acme", characters=5)
    await meter.flush()
    clock.advance(timedelta(seconds=meter.until_tomorrow_s()))
    assert meter.characters_today("acme") == 0


@pytest.mark.parametrize(("own", "general", "fits"), [(100, 10, True), (10, 100, False), (None, 10, False)])
async def test_a_labs_own_ceiling_counts_for_language_models(
    store: Store, own: int | None, general: int, fits: bool
) -> None:
    async with store.transaction() as work:
        limits = LabLimitsRow(tokens_per_day=own)
        await work.labs.add(LabRow(lab_id="acme", name="", created_at=CLOCK.now(), limits=limits))
    booking = BookingRow(
        booking_id="b",
        lab_id="acme",
        day=TODAY,
        spend=Spend(tokens=50),
        runs_out_at=CLOCK.now() + timedelta(hours=1),
    )
    in_the_way = await StoredLedger(store).book(booking, CLOCK.now(), Ceiling(tokens=general))
    assert in_the_way == (None if fits else Ceiling(tokens=10))
