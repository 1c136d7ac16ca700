"""A real store for the key ring."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reward_server.store.store import Store


@pytest.fixture
async def store(sqlite_database: str) -> AsyncIterator[Store]:
    store = await Store.open(sqlite_database)
    yield store
    await store.close()
