"""A real server on PostgreSQL and Redis while these are killed, hang and come back: what callers and probes see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import httpx2
import pytest

from benchmarks.real_servers import PostgresServer, RedisServer
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import Plan
from reward_server.clock import SystemClock
from reward_server.store.migrate import migrate
from reward_server.store.store import Store
from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow

PEPPER = "p" * 32
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as running:
        yield running


@pytest.fixture(scope="module")
def memory() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def server(
    database: PostgresServer, memory: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    url = database.new_database("labs_lost")
    key = asyncio.run(a_key(url))
    environment = {"LABS_DATABASE_URL": url, "LABS_REDIS_URL": memory.url, "LABS_PEPPER": PEPPER}
    with server_process(tmp_path_factory.mktemp("lost"), keys=(), **environment) as running:
        running.keys["acme"] = key
        yield running


async def a_key(url: str) -> str:
    await migrate(url)
    store = await Store.open(url)
    try:
        ring = KeyRing(store, SystemClock(), PEPPER.encode())
        return (await ring.create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000)).text
    finally:
        await store.close()


async def probe(http: httpx2.AsyncClient, server: ServerProcess, path: str) -> int:
    return (await http.get(f"{server.url}{path}")).status_code


async def until(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await look() != wanted:  # noqa: ASYNC110 (a probe is asked, as a balancer asks it)
            await asyncio.sleep(0.2)


async def test_postgresql_killed_under_load_is_503_and_loses_no_answered_turn(
    server: ServerProcess, database: PostgresServer
) -> None:
    async with server.client("acme") as http:
        assert await probe(http, server, "/readyz") == 200
        made = [(await http.post("/episodes", json=WHERE)).json()["episode_id"] for _ in range(4)]
        answered: dict[str, list[str]] = {episode: [] for episode in made}
        statuses: set[int] = set()
        stop = asyncio.Event()

        async def play(episode: str) -> None:
            for number in range(8):
                body = {"messages": [{"role": "user", "content": f"How did it happen? {number}"}]}
                headers = {"Idempotency-Key": f"{episode}-{number}"}
                while True:
                    turn = await http.post(f"/episodes/{episode}/turns", json=body, headers=headers)
                    statuses.add(turn.status_code)
                    if turn.status_code == 200:
                        answered[episode].append(turn.json()["observation"]["content"])
                        break
                    await asyncio.sleep(0.2)
                if turn.json()["episode_complete"]:
                    return
                if number == 2:
                    stop.set()

        playing = [asyncio.create_task(play(episode)) for episode in made]
        await stop.wait()
        await asyncio.to_thread(database.kill)
        await until(lambda: probe(http, server, "/readyz"), 503)
        assert await probe(http, server, "/healthz") == 200
        refused = await http.post("/episodes", json=WHERE)
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) >= 1
        await asyncio.to_thread(database.start)
        await until(lambda: probe(http, server, "/readyz"), 200)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*playing)
        assert statuses <= {200, 409, 503}
        for episode, said in answered.items():
            log = (await http.get(f"/episodes/{episode}")).json()["messages"]
            assert [message["content"] for message in log[2::2]] == said


@pytest.mark.parametrize("how", ["killed", "hangs"])
async def test_without_redis_turns_are_answered_and_it_comes_back_by_itself(
    server: ServerProcess, memory: RedisServer, how: str
) -> None:
    async with server.client("acme") as http:
        episode = (await http.post("/episodes", json=WHERE)).json()["episode_id"]
        await asyncio.to_thread(memory.kill if how == "killed" else memory.hang)
        try:
            for _ in range(2):
                body = {"messages": [{"role": "user", "content": "How did it happen?"}]}
                assert (await http.post(f"/episodes/{episode}/turns", json=body)).status_code == 200
            assert await probe(http, server, "/readyz") == 200
            await until(lambda: redis_word(http, server), "lost")
            await until(lambda: lost(http, server), 1.0)
        finally:
            await asyncio.to_thread(memory.start if how == "killed" else memory.go_on)
        assert (await http.post("/episodes", json=WHERE)).status_code == 200
        await until(lambda: lost(http, server), 0.0)
        await until(lambda: redis_word(http, server), "ok")


async def redis_word(http: httpx2.AsyncClient, server: ServerProcess) -> str:
    """What readiness says of Redis, without which the server is ready."""
    found = await http.get(f"{server.url}/readyz")
    return str(found.json()["dependencies"]["redis"])


async def lost(http: httpx2.AsyncClient, server: ServerProcess) -> float:
    """What the metrics say of Redis, after a request that would have asked it."""
    await http.get("/catalog")
    page = (await http.get(f"{server.url}/metrics")).text
    [line] = [each for each in page.splitlines() if each.startswith("labs_redis_lost ")]
    return float(line.split()[1])
