"""When keys were last used is written for all of them together, and survives a database that is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from reward_server.auth.key_ring import KeyRing
from reward_server.auth.key_uses import KeyUses
from reward_server.clock import ManualClock
from reward_server.errors import StoreUnavailable
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork

MINUTE = timedelta(minutes=1)


async def test_the_newest_use_counts_whichever_server_writes_it_last(store: Store) -> None:
    clock = ManualClock()
    ring = KeyRing(store, clock, b"pepper")
    used, unused = [(await ring.create("acme")).row.key_id for _ in range(2)]
    slow, quick = KeyUses(store, clock), KeyUses(store, clock)
    slow.note(used)
    clock.advance(MINUTE)
    quick.note(used)
    for uses in (quick, slow):
        await uses.flush()
    assert {row.key_id: row.last_used_at for row in await ring.list()} == {used: clock.now(), unused: None}


async def test_what_cannot_be_written_is_written_later_and_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def away() -> AsyncIterator[UnitOfWork]:
        raise StoreUnavailable
        yield

    clock = ManualClock()
    ring = KeyRing(store, clock, b"pepper")
    early, late = [(await ring.create("acme")).row.key_id for _ in range(2)]
    uses = KeyUses(store, clock)
    uses.note(early)
    uses.note(late)
    first = clock.now()
    with monkeypatch.context() as lost:
        lost.setattr(store, "transaction", away)
        await uses.flush()
    clock.advance(MINUTE)
    uses.note(late)
    await uses.flush()
    monkeypatch.setattr(store, "transaction", None)
    await uses.flush()  # nothing is left to be written
    monkeypatch.undo()
    assert {row.key_id: row.last_used_at for row in await ring.list()} == {early: first, late: clock.now()}
