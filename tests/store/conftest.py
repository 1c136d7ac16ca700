"""A real SQLite file for every test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reward_server.store.store import Store


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "labs.sqlite"


@pytest.fixture
def url(sqlite_database: str) -> str:
    return sqlite_database


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = await Store.open(url, busy_timeout_s=0.05)
    yield store
    await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def engine_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture
async def store_on_both(engine_url: str) -> AsyncIterator[Store]:
    """A store of each engine in turn."""
    opened = await Store.open(engine_url, busy_timeout_s=0.05)
    yield opened
    await opened.close()
