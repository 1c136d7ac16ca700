"""A server that stops in the middle of a write finishes it: what labs used and which keys were used is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from reward_server.auth import key_uses
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.key_uses import KeyUses
from reward_server.clock import ManualClock
from reward_server.limits import usage
from reward_server.limits.usage import UsageMeter
from reward_server.store.store import Store


async def cancelled_while_it_waits_to_write(store: Store, watch: Coroutine[Any, Any, None]) -> None:
    """Cancel a watch whose flush waits for the database, and let the database go on afterwards."""
    async with store.transaction() as work:
        await work.labs.list()
        task = asyncio.create_task(watch)
        while store.waiting < 2:  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_uses_of_keys_are_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_uses, "WRITE_EVERY_S", 0)
    clock = ManualClock()
    ring = KeyRing(store, clock, b"pepper")
    uses = KeyUses(store, clock)
    uses.note((await ring.create("acme")).row.key_id)
    await cancelled_while_it_waits_to_write(store, uses.watch())
    await uses.flush()
    assert [row.last_used_at for row in await ring.list()] == [clock.now()]


async def test_usage_is_added_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "FLUSH_S", 0)
    clock = ManualClock()
    meter = UsageMeter(store, clock)
    meter.count("acme", turns=1, characters=5)
    await cancelled_while_it_waits_to_write(store, meter.watch())
    await meter.flush()
    async with store.reading() as work:
        [row] = await work.usage.of("acme", clock.now().date())
    assert (row.turns, row.characters) == (1, 5)
