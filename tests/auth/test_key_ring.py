"""API keys: shown once, verified, limited to what they may do, and ended within seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from reward_server.auth import key_ring
from reward_server.auth.key_ring import CACHE_S, KeyRing
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab, Plan
from reward_server.auth.scopes import EVERY, Scope
from reward_server.clock import ManualClock
from reward_server.errors import ConfigurationError, InvalidRequest, NotFound
from reward_server.store.store import Block, Store

PEPPER = b"p" * 32


class Ticks:
    """A monotonic clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_ring(store: Store, *, pepper: bytes = PEPPER, ticks: Ticks | None = None) -> KeyRing:
    return KeyRing(store, ManualClock(), pepper, monotonic=ticks or Ticks())


async def test_a_key_says_whose_it_is_and_what_it_may_do(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme", name="trainer", collections=["tutoring"], full_scores=True)
    assert await ring.verify(key.text) == Lab(
        lab_id="acme", key_id=key.row.key_id, per_minute=60, collections=("tutoring",), full_scores=True
    )


async def test_only_a_key_made_for_an_operator_is_one(store: Store) -> None:
    ring = a_ring(store)
    operators, other = await ring.create("ops", scopes=EVERY), await ring.create("acme")
    verified = [await ring.verify(key.text) for key in (operators, other)]
    assert [lab is not None and Scope.OPERATE in lab.scopes for lab in verified] == [True, False]
    assert DEVELOPMENT_LAB.scopes == EVERY


async def test_a_key_has_the_documented_form(store: Store) -> None:
    key = await a_ring(store).create("acme")
    prefix, key_id, secret = key.text.split("_")
    assert (prefix, key_id) == ("lab", key.row.key_id)
    assert len(secret) == 40


async def test_neither_the_store_nor_a_repr_holds_the_key(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    secret = key.text.split("_")[2]
    (row,) = await ring.list()
    assert secret not in repr(key)
    assert secret.encode() not in row.digest
    assert row == key.row


@pytest.mark.parametrize(
    ("plan", "rate", "per_minute"), [(Plan.STANDARD, None, 60), (Plan.PREMIUM, None, 300), (Plan.CUSTOM, 7, 7)]
)
async def test_a_plan_gives_the_rate(store: Store, plan: Plan, rate: int | None, per_minute: int) -> None:
    ring = a_ring(store)
    key = await ring.create("acme", plan=plan, rate_per_minute=rate)
    lab = await ring.verify(key.text)
    assert lab is not None
    assert lab.per_minute == per_minute


def spoiled(text: str) -> Iterator[str]:
    prefix, key_id, secret = text.split("_")
    other = "a" if secret[-1] != "a" else "b"
    yield f"{prefix}_{key_id}_{secret[:-1]}{other}"
    yield f"{prefix}_{'a' * 16}_{secret}"
    yield text.upper()
    yield text + " "
    yield text + "\n"
    yield text[:-1]
    yield f"{prefix}_{key_id}"
    yield f"{prefix}_{key_id}_"
    yield ""
    yield "lab_" + "é" * 16 + "_" + "\udcff" * 40


async def test_anything_but_the_very_key_is_refused(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    assert [await ring.verify(text) for text in spoiled(key.text)] == [None] * 10


async def test_another_pepper_verifies_no_key(store: Store) -> None:
    key = await a_ring(store).create("acme")
    assert await a_ring(store, pepper=b"q" * 32).verify(key.text) is None


async def test_a_revoked_key_ends_at_once_here(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    assert await ring.verify(key.text) is not None
    await ring.revoke(key.row.key_id)
    assert await ring.verify(key.text) is None


async def test_a_key_revoked_elsewhere_ends_within_five_seconds(store: Store) -> None:
    ticks = Ticks()
    here, elsewhere = a_ring(store, ticks=ticks), a_ring(store)
    key = await here.create("acme")
    assert await here.verify(key.text) is not None
    await elsewhere.revoke(key.row.key_id)
    assert CACHE_S <= 5.0
    ticks.now += CACHE_S
    assert await here.verify(key.text) is None


async def test_a_remembered_key_still_needs_its_secret(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    assert await ring.verify(key.text) is not None
    assert await ring.verify(key.text[:-1] + ("a" if key.text[-1] != "a" else "b")) is None


async def test_a_known_key_is_not_looked_up_on_every_request(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    await ring.verify(key.text)
    await store.close()
    assert await ring.verify(key.text) is not None


class Slow:
    """A store that counts what is read of it, and waits before it answers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0
        self.goes_on = asyncio.Event()

    async def read(self, block: Block[Any]) -> Any:
        """Read, and answer later."""
        self.reads += 1
        found = await self._store.read(block)
        await self.goes_on.wait()
        return found


async def test_requests_that_come_together_look_a_key_up_once(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    ring._store = slow = Slow(store)  # type: ignore[assignment]
    asking = [asyncio.create_task(ring.verify(key.text)) for _ in range(16)]
    await asyncio.sleep(0.01)
    slow.goes_on.set()
    assert {lab.lab_id for lab in await asyncio.gather(*asking) if lab} == {"acme"}
    assert slow.reads == 1


async def test_who_waited_for_a_look_up_that_was_broken_off_looks_for_himself(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    ring._store = slow = Slow(store)  # type: ignore[assignment]
    first, second = (asyncio.create_task(ring.verify(key.text)) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    slow.goes_on.set()
    assert await second is not None
    assert slow.reads == 2


async def test_a_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(store: Store) -> None:
    ring = a_ring(store)
    key = await ring.create("acme")
    ring._store = slow = Slow(store)  # type: ignore[assignment]
    asking = asyncio.create_task(ring.verify(key.text))
    await asyncio.sleep(0.01)
    ring._store = store
    await ring.revoke(key.row.key_id)
    slow.goes_on.set()
    await asking
    assert await ring.verify(key.text) is None


async def test_only_so_many_keys_are_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ring, "CACHE_KEYS", 2)
    ring = a_ring(store)
    keys = [await ring.create("acme") for _ in range(4)]
    assert all([await ring.verify(key.text) for key in keys])
    assert len(ring._known) == 2
    assert await ring.verify(keys[0].text) is not None


async def test_revoking_keeps_the_first_moment_and_knows_its_keys(store: Store) -> None:
    clock = ManualClock()
    ring = KeyRing(store, clock, PEPPER)
    key = await ring.create("acme")
    first = clock.now()
    await ring.revoke(key.row.key_id)
    clock.advance(timedelta(days=1))
    await ring.revoke(key.row.key_id)
    assert [row.revoked_at for row in await ring.list()] == [first]
    with pytest.raises(NotFound):
        await ring.revoke("unknown")


async def test_a_key_that_is_forgotten_ends_and_is_listed_no_more_and_the_audit_log_knows_it(store: Store) -> None:
    ring = a_ring(store)
    key, revoked = [await ring.create("acme") for _ in range(2)]
    assert await ring.verify(key.text) is not None
    await ring.revoke(revoked.row.key_id)
    for each in (key, revoked, key):
        await ring.forget(each.row.key_id)
    assert await ring.verify(key.text) is None
    assert await ring.list() == []
    async with store.reading() as work:
        ended = [row.target for row in await work.audit.page(10) if row.action == "key.revoked"]
    assert sorted(ended) == sorted(f"{each.row.key_id} of acme" for each in (key, revoked))


async def test_a_ring_with_revoked_keys_only_is_not_empty(store: Store) -> None:
    ring = a_ring(store)
    assert await ring.is_empty()
    key = await ring.create("acme")
    await ring.revoke(key.row.key_id)
    assert not await ring.is_empty()


@pytest.mark.parametrize(
    "wanted",
    [
        {"lab_id": ""},
        {"lab_id": "Acme"},
        {"lab_id": "-acme"},
        {"lab_id": "a" * 65},
        {"lab_id": "acme\n"},
        {"lab_id": "acme", "name": "n" * 201},
        {"lab_id": "acme", "plan": Plan.CUSTOM},
        {"lab_id": "acme", "plan": Plan.CUSTOM, "rate_per_minute": 0},
        {"lab_id": "acme", "rate_per_minute": 10},
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(store: Store, wanted: dict[str, object]) -> None:
    ring = a_ring(store)
    with pytest.raises(InvalidRequest) as caught:
        await ring.create(**wanted)  # type: ignore[arg-type]
    assert caught.value.errors
    assert await ring.is_empty()


def test_access_to_collections() -> None:
    assert DEVELOPMENT_LAB.may_use("anything")
    some = Lab(lab_id="acme", key_id="k", per_minute=60, collections=("tutoring",))
    assert some.may_use("tutoring")
    assert not some.may_use("negotiation")
    assert not Lab(lab_id="acme", key_id="k", per_minute=60, collections=()).may_use("tutoring")


async def test_a_key_with_an_end_stops_by_itself(store: Store) -> None:
    clock = ManualClock()
    ring = KeyRing(store, clock, PEPPER, monotonic=Ticks())
    key = await ring.create("acme", expires_in=timedelta(days=1))
    clock.advance(timedelta(hours=23))
    assert await ring.verify(key.text) is not None
    clock.advance(timedelta(hours=1))
    assert await ring.verify(key.text) is None


async def test_another_pepper_than_that_of_the_keys_is_said(store: Store) -> None:
    await a_ring(store).check_pepper()
    await a_ring(store).create("acme")
    await a_ring(store).note_pepper()
    stranger = a_ring(store, pepper=b"q" * 32)
    for refused in (stranger.check_pepper(), stranger.note_pepper(), stranger.create("acme")):
        with pytest.raises(ConfigurationError, match="another pepper"):
            await refused
    assert len(await a_ring(store).list()) == 1


async def test_the_pepper_of_keys_from_before_is_remembered_at_the_next_start(store: Store) -> None:
    await a_ring(store).note_pepper()
    # No key was made with it: it may change.
    await a_ring(store, pepper=b"q" * 32).check_pepper()
