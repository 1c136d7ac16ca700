"""Key rows."""

from __future__ import annotations

from datetime import timedelta

from reward_server.store.store import Store
from tests.store.builders import NOW, a_key


async def test_keys_come_back_as_they_were_stored_oldest_first(store: Store) -> None:
    some = a_key(key_id="b" * 16, collections=("tutoring", "negotiation"), rate_per_minute=7, plan="custom")
    none = a_key(key_id="a" * 16, collections=(), created_at=NOW + timedelta(seconds=1))
    async with store.transaction() as work:
        assert await work.keys.count() == 0
        await work.keys.add(none)
        await work.keys.add(some)
    async with store.reading() as work:
        assert await work.keys.list() == [some, none]
        assert await work.keys.get("b" * 16) == some
        assert await work.keys.get("c" * 16) is None
        assert await work.keys.count() == 2


async def test_a_key_is_revoked_once(store: Store) -> None:
    async with store.transaction() as work:
        await work.keys.add(a_key())
        assert await work.keys.revoke("abcdefghijklmnop", NOW)
        assert not await work.keys.revoke("abcdefghijklmnop", NOW + timedelta(days=1))
        assert not await work.keys.revoke("unknown", NOW)
        found = await work.keys.get("abcdefghijklmnop")
    assert found == a_key(revoked_at=NOW)
