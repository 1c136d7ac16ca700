"""The gatekeeper: who comes in, and how development mode ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reward_server.api.auth import RECHECK_S, Gatekeeper
from reward_server.api.credentials import NO_KEY, NOT_VALID, Credentials
from reward_server.auth.key_ring import KeyRing
from reward_server.clock import ManualClock
from reward_server.errors import Unauthenticated
from reward_server.limits.rate_limiter import RateLimiter
from reward_server.store.store import Store


@pytest.fixture
async def keys(sqlite_database: str) -> AsyncIterator[KeyRing]:
    store = await Store.open(sqlite_database)
    yield KeyRing(store, ManualClock(), b"p" * 32)
    await store.close()


async def test_an_open_gate_lets_everybody_in_as_one_lab(keys: KeyRing) -> None:
    gate = Gatekeeper(keys, RateLimiter(), open_access=True)
    for text in (None, "", "lab_dummy"):
        admission = await gate.admit(Credentials(text))
        assert (admission.lab.lab_id, admission.decision) == ("development", None)


async def test_a_closed_gate_lets_nobody_in_without_a_key(keys: KeyRing) -> None:
    gate = Gatekeeper(keys, RateLimiter(), open_access=False)
    for text in (None, "", "lab_dummy"):
        with pytest.raises(Unauthenticated) as refusal:
            await gate.admit(Credentials(text))
        assert refusal.value.message == (NOT_VALID if text else NO_KEY)


async def test_a_key_counts_even_while_the_gate_is_open(keys: KeyRing) -> None:
    made = await keys.create("acme")
    admission = await Gatekeeper(keys, RateLimiter(), open_access=True).admit(Credentials(made.text))
    assert admission.lab.lab_id == "acme"
    assert admission.decision is not None
    assert admission.decision.limit == 60


async def test_the_first_key_closes_the_gate_for_good(keys: KeyRing) -> None:
    now = 100.0
    gate = Gatekeeper(keys, RateLimiter(), open_access=True, monotonic=lambda: now)
    made = await keys.create("acme")
    now += RECHECK_S
    with pytest.raises(Unauthenticated):
        await gate.admit(Credentials())
    assert not gate.open_access
    assert (await gate.admit(Credentials(made.text))).lab.lab_id == "acme"
    await keys.revoke(made.row.key_id)
    now += RECHECK_S
    with pytest.raises(Unauthenticated):
        await gate.admit(Credentials())
