"""A real store for the key ring."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reward_server.store.engine import sqlite_url
from reward_server.store.migrate import migrate
from reward_server.store.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    url = sqlite_url(tmp_path / "labs.sqlite")
    await migrate(url)
    store = await Store.open(url)
    yield store
    await store.close()
