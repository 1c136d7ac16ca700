"""What only PostgreSQL has: other replicas, and a server that can go away."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from benchmarks.real_servers import PostgresServer
from reward_server.errors import ConfigurationError, LabsError, StoreUnavailable, TurnInProgress
from reward_server.store.engine import check_url
from reward_server.store.migrate import check, migrate
from reward_server.store.postgres import _as_asyncpg_wants_it
from reward_server.store.store import Store
from tests.store.builders import a_turn, after_a_turn, an_answer, an_episode


@pytest.fixture
async def replicas(postgres_url: str) -> AsyncIterator[list[Store]]:
    stores = [await Store.open(postgres_url) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


async def test_of_two_replicas_on_one_episode_one_wins_every_position(replicas: list[Store]) -> None:
    episode = an_episode()
    async with replicas[0].transaction() as work:
        await work.episodes.add(episode)
    outcomes: Counter[str] = Counter()

    async def play(store: Store) -> None:
        nonlocal episode
        after = after_a_turn(episode)
        try:
            async with store.transaction() as work:
                await work.episodes.append_turn(after, a_turn(after))
        except TurnInProgress:
            outcomes["conflict"] += 1
        else:
            outcomes["stored"] += 1

    for _ in range(5):
        await asyncio.gather(*(play(store) for store in replicas for _ in range(3)))
        episode = after_a_turn(episode)
    assert outcomes == {"stored": 5, "conflict": 25}
    async with replicas[1].reading() as work:
        assert [turn.turn for turn in await work.episodes.turns("acme", episode.episode_id)] == [1, 2, 3, 4, 5]


async def test_replicas_in_each_others_way_never_lose_a_whole_group(replicas: list[Store]) -> None:
    """Each group writes the same keys in the other order: without a bound on locks, one group would be thrown out."""

    async def put(store: Store, number: int) -> str:
        try:
            async with store.transaction() as work:
                await work.answers.put(an_answer(key=f"k{number}"))
        except LabsError as error:
            return type(error).__name__
        return "stored"

    ahead = [put(replicas[0], number) for number in range(6)]
    back = [put(replicas[1], number) for number in reversed(range(6))]
    outcomes = await asyncio.gather(*ahead, *back)
    assert outcomes.count("stored") >= 5
    async with replicas[0].reading() as work:
        found = [await work.answers.get("acme", f"k{number}", an_answer().created_at) for number in range(6)]
    assert outcomes.count("stored") == sum(each is not None for each in found)


async def test_three_replicas_that_start_at_once_migrate_once(postgres: PostgresServer) -> None:
    url = postgres.new_database("at_once")
    await asyncio.gather(*(migrate(url) for _ in range(3)))
    await check(url)


async def test_a_server_that_was_killed_is_unavailable_and_comes_back_by_itself() -> None:
    with PostgresServer() as server:
        url = server.new_database("labs")
        await migrate(url)
        store = await Store.open(url)
        kept = an_episode()
        async with store.transaction() as work:
            await work.episodes.add(kept)
        server.kill()
        with pytest.raises(StoreUnavailable):
            await store.ping()
        with pytest.raises(StoreUnavailable):
            async with store.transaction() as work:
                await work.episodes.add(an_episode())
        server.start()
        async with store.transaction() as work:
            await work.episodes.add(an_episode())
        async with store.reading() as work:
            assert await work.episodes.get("acme", kept.episode_id) == kept
        await store.close()


@pytest.mark.slow
async def test_a_server_that_hangs_is_unavailable_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_server.store.postgres.STATEMENT_S", 0.2)
    with PostgresServer() as server:
        url = server.new_database("labs")
        await migrate(url)
        store = await Store.open(url)
        server.hang()
        with pytest.raises(StoreUnavailable):
            await store.ping()
        server.go_on()
        await store.ping()
        await store.close()


async def test_no_server_is_said_without_the_password() -> None:
    with pytest.raises(ConfigurationError, match="cannot be reached") as caught:
        await migrate("postgresql://labs:hunter2@127.0.0.1:1/labs")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_the_usual_spellings_of_the_url_are_one(scheme: str) -> None:
    assert check_url(f"{scheme}://labs@h/d").drivername == "postgresql"


def test_sslmode_is_understood() -> None:
    url = _as_asyncpg_wants_it(check_url("postgresql://labs@h/d?sslmode=require&host=/run"))
    assert dict(url.query) == {"ssl": "require", "host": "/run"}


def test_a_url_without_a_database_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must name a database"):
        check_url("postgresql://labs@h")


async def test_a_copied_database_is_as_good_as_a_migrated_one(new_database: Callable[[], str]) -> None:
    await check(new_database())
