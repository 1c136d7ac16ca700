"""Two real servers on one PostgreSQL, with Redis and without: a key that is revoked on one stops on both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from benchmarks.real_servers import RedisServer
from reward_server.auth.key_ring import KeyRing, NewKey
from reward_server.auth.scopes import EVERY
from reward_server.clock import SystemClock
from reward_server.store.store import Store
from tests.faults.server_process import server_process

PEPPER = "p" * 32
ELSEWHERE_S = 5.0
"""What is promised for every other server; a known key is looked up again after a second."""


async def two_keys(url: str) -> tuple[NewKey, NewKey]:
    """An operator's and another one."""
    store = await Store.open(url)
    try:
        ring = KeyRing(store, SystemClock(), PEPPER.encode())
        return await ring.create("mine", scopes=EVERY), await ring.create("acme")
    finally:
        await store.close()


def status(url: str, key: NewKey) -> int:
    answer = httpx2.get(f"{url}/api/v1/usage", headers={"Authorization": f"Bearer {key.text}"}, timeout=30.0)
    return answer.status_code


@pytest.fixture(params=["Redis", "no Redis"])
def redis_settings(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "no Redis":
        yield {}
        return
    with RedisServer() as running:
        yield {"LABS_REDIS_URL": running.url}


@pytest.mark.slow
def test_a_key_revoked_on_one_server_stops_at_once_there_and_soon_on_the_other(
    tmp_path: Path, postgres_url: str, redis_settings: dict[str, str]
) -> None:
    operator, key = asyncio.run(two_keys(postgres_url))
    shared = {"LABS_DATABASE_URL": postgres_url, "LABS_PEPPER": PEPPER, **redis_settings}
    with (
        server_process(tmp_path / "first", keys=(), **shared) as first,
        server_process(tmp_path / "second", keys=(), **shared) as second,
    ):
        assert [status(each.url, key) for each in (first, second)] == [200, 200]
        gone = httpx2.delete(
            f"{first.url}/api/v1/keys/{key.row.key_id}",
            headers={"Authorization": f"Bearer {operator.text}"},
            timeout=30.0,
        )
        revoked_s = time.monotonic()
        assert gone.status_code == 200
        assert status(first.url, key) == 401
        while status(second.url, key) != 401:
            assert time.monotonic() - revoked_s < ELSEWHERE_S
            time.sleep(0.1)
        assert status(second.url, operator) == 200
