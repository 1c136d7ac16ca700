"""What another replica took of a lab's limits counts here, and an episode that it plays is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchmarks.real_servers import RedisServer
from personas.reading.matcher import Matcher
from reward_server.auth.lab import Lab, Plan
from reward_server.errors import TooManyAtOnce
from reward_server.limits.concurrency_limit import LabConcurrencyLimit
from reward_server.server.shared import Shared
from reward_server.shared_state.locks import LockBusy
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, agent, assert_error, running_house

EVALUATION = {**WHERE, "messages": [{"role": "assistant", "content": "How did it happen?"}]}


PATIENCE_S = 20.0
"""For an answer of Redis on a busy machine."""


@pytest.fixture
async def house(data: Path, matcher: Matcher, library: Library, redis: RedisServer) -> AsyncIterator[House]:
    """One of the replicas on a Redis, which may take its time on a busy machine."""
    async with running_house(data, matcher, library, redis_url=redis.url, redis_deadline_s=PATIENCE_S) as running:
        yield running


@pytest.fixture
async def other(house: House, redis: RedisServer) -> AsyncIterator[Shared]:
    """What another replica shares with it."""
    shared = Shared.through(redis.url, deadline_s=PATIENCE_S)
    assert shared.link is not None
    await shared.link.client.flushall()
    yield shared
    await shared.link.close()


async def test_what_another_replica_read_counts_against_the_minute(house: House, other: Shared) -> None:
    key = await house.key(plan=Plan.STANDARD, rate_per_minute=None)
    house.end_development_mode()
    async with house.client(key) as client:
        await client.ok("POST", "/evaluate", EVALUATION)
        assert await other.compute_buckets.charge("acme", 1_000_000, 1_500_000) == 0
        refused = await client.call("POST", "/evaluate", EVALUATION)
        assert_error(refused, 429, "compute_exhausted")
        assert 25 <= int(refused.headers["retry-after"]) <= 31


async def test_what_another_replica_has_in_work_counts_against_the_places(house: House, other: Shared) -> None:
    made = await house.keys().create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000, concurrency=1)
    house.end_development_mode()
    lab = await house.keys().verify(made.text)
    assert lab is not None
    there = LabConcurrencyLimit(100, other.leases)
    async with house.client(made.text) as client:
        await client.ok("POST", "/evaluate", EVALUATION)
        await entered(there, lab)
        assert_error(await client.call("POST", "/evaluate", EVALUATION), 429, "too_many_at_once")


def lock_of(episode: Json) -> str:
    return f"turn/development/{episode['episode_id']}"


async def batch(client: Client, *episodes: Json) -> list[str]:
    """One turn of each: how it went."""
    items = [{"episode_id": each["episode_id"], "messages": [agent("How did it happen?")]} for each in episodes]
    results = (await client.ok("POST", "/batch/turns", {"items": items}))["results"]
    return [result.get("code", "ok") for result in results]


async def test_an_episode_that_another_replica_plays_is_in_progress(house: House, other: Shared) -> None:
    async with house.client() as client:
        held, free = await client.create(), await client.create()
        async with other.locks.hold(lock_of(held), "a turn"):
            assert_error(await client.turn(held, "How did it happen?"), 409, "turn_in_progress")
            assert await batch(client, held) == ["turn_in_progress"]
            assert await batch(client, held, free) == ["turn_in_progress", "ok"]
        assert (await client.read(held))["turn"] == 0
        assert await batch(client, held, free) == ["ok", "ok"]


@pytest.mark.parametrize("count", [1, 2])
async def test_episodes_of_a_batch_are_kept_from_other_replicas(house: House, other: Shared, count: int) -> None:
    async with house.client() as client:
        episodes = [await client.create() for _ in range(count)]
        house.matcher.close()
        playing = asyncio.create_task(batch(client, *episodes))
        await house.matcher.somebody_waits()
        for each in episodes:
            with pytest.raises(LockBusy):
                async with other.locks.hold(lock_of(each), "another turn"):
                    pass
        house.matcher.open()
        assert await playing == ["ok"] * count
        for each in episodes:
            async with other.locks.hold(lock_of(each), "another turn"):
                pass


async def entered(limit: LabConcurrencyLimit, lab: Lab) -> None:
    """Take a place as soon as Redis has heard that the request before it is over."""
    async with asyncio.timeout(30.0):
        while True:
            try:
                await limit.enter(lab)
            except TooManyAtOnce:
                await asyncio.sleep(0.02)
            else:
                return
