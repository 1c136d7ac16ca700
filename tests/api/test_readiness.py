"""What readiness looks at, and how often."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from reward_server.api.readiness import MOST_LAG_S, MOST_QUEUE_S, ReadinessChecks
from reward_server.store.store import Store
from reward_server.telemetry.loop_lag import LoopLag


class Time:
    now = 0.0

    def __call__(self) -> float:
        self.now += 2.0
        return self.now


class Queue:
    waiting_s = 0.0


def readiness(store: Store) -> ReadinessChecks:
    return ReadinessChecks(store, Queue(), LoopLag(lambda _: None), {"encoder": "ok"}, monotonic=Time())


@pytest.fixture
async def store(sqlite_database: str) -> Store:
    return await Store.open(sqlite_database, busy_timeout_s=0.05)


async def test_all_is_well(store: Store) -> None:
    assert set((await readiness(store).look()).values()) == {"ok"}
    await store.close()


async def test_a_database_that_was_moved_away_is_missed(store: Store, tmp_path: Path) -> None:
    looking = readiness(store)
    (tmp_path / "labs.sqlite").rename(tmp_path / "elsewhere.sqlite")
    assert (await looking.look())["store"] == "unavailable"
    shutil.copy(tmp_path / "elsewhere.sqlite", tmp_path / "labs.sqlite")
    assert (await looking.look())["store"] == "unavailable"
    await store.close()


async def test_a_database_that_cannot_be_written_is_missed(store: Store, tmp_path: Path) -> None:
    other = await Store.open(f"sqlite:///{tmp_path / 'labs.sqlite'}")
    looking = readiness(store)
    async with other.transaction() as unit:
        await unit.keys.list()
        assert (await looking.look())["store"] == "unavailable"
    assert (await looking.look())["store"] == "ok"
    await other.close()
    await store.close()


async def test_scoring_that_does_not_get_on_and_a_loop_that_is_late(store: Store) -> None:
    looking = readiness(store)
    looking.queue.waiting_s = MOST_QUEUE_S + 1  # type: ignore[misc]
    looking.loop_lag._late.append(MOST_LAG_S + 1)
    words = await looking.look()
    assert (words["scoring"], words["event_loop"], words["store"]) == ("behind", "late", "ok")
    await store.close()


async def test_many_probes_are_one_look(store: Store) -> None:
    looks = 0
    looking = ReadinessChecks(store, Queue(), LoopLag(lambda _: None), {})
    probe = store.probe

    async def counted() -> None:
        nonlocal looks
        looks += 1
        await probe()

    store.probe = counted  # type: ignore[method-assign]
    await asyncio.gather(*(looking.look() for _ in range(50)))
    assert looks == 1
    await store.close()


async def test_the_lag_of_the_loop_is_seen() -> None:
    told: list[float] = []
    lag = LoopLag(told.append)
    watching = asyncio.create_task(lag.watch())
    async with asyncio.timeout(20.0):
        while not told:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.01)
    assert lag.worst_s >= 0.0
    lag._expected = lag._monotonic() - 3.0
    assert lag.worst_s >= 3.0
    watching.cancel()
