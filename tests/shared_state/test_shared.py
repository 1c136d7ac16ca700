"""What replicas share: the twins in memory and a real Redis behave alike; without Redis each works alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from benchmarks.real_servers import RedisServer
from reward_server.auth.failed_keys import MOST_PER_MINUTE, WINDOW_S, FailedKeys
from reward_server.auth.idempotency import Body, DetachedWork, Idempotency, Keep
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import Lab
from reward_server.clock import ManualClock, SystemClock
from reward_server.errors import IdempotencyMismatch, TooManyFailedKeys
from reward_server.server.shared import Shared
from reward_server.shared_state import events
from reward_server.shared_state.leases import _RENEW, _TAKE, Lease, Leases, RedisLeases
from reward_server.shared_state.locks import LockBusy, RedisLocks
from reward_server.shared_state.redis_link import REST_S, RedisLink, RedisLost
from reward_server.store.store import Store

LAB = Lab(lab_id="acme", key_id="k", per_minute=None)


PATIENCE_S = 20.0
"""For an answer of Redis on a busy machine; tests of a lost one set another."""


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Shared]:
    """A replica with an empty Redis, which keeps its leases."""
    made = Shared.through(url, deadline_s=PATIENCE_S)
    assert made.link is not None
    assert isinstance(made.leases, RedisLeases)
    await made.link.client.flushall()
    keeping = asyncio.create_task(made.leases.keep())
    try:
        yield made
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await made.link.close()


@pytest.fixture(params=["memory", "redis"])
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[Shared]:
    if request.param == "memory":
        yield Shared.local()
        return
    server: RedisServer = request.getfixturevalue("redis")
    async with connected(server.url) as made:
        yield made


@pytest.fixture
async def replicas(redis: RedisServer) -> AsyncIterator[list[Shared]]:
    async with connected(redis.url) as here, connected(redis.url) as there:
        yield [here, there]


async def test_a_limit_is_exact(shared: Shared) -> None:
    decisions = await asyncio.gather(*(shared.rates.hit("k", 5) for _ in range(8)))
    assert sorted(each.allowed for each in decisions) == [False] * 3 + [True] * 5


async def test_what_is_remembered_runs_out(shared: Shared) -> None:
    await shared.cache.put("a", "ü", 60.0)
    await shared.cache.put("b", "gone", 0.001)
    await asyncio.sleep(0.02)
    assert [await shared.cache.get(name) for name in ("a", "b", "c")] == ["ü", None, None]


async def test_word_is_heard_at_home(shared: Shared) -> None:
    heard: list[str] = []
    shared.events.hear("topic", heard.append)
    await shared.events.tell("topic", "a")
    await shared.events.tell("other", "b")
    assert heard == ["a"]


async def test_word_is_heard_by_the_other_replica(replicas: list[Shared]) -> None:
    here, there = replicas
    heard = asyncio.Event()
    there.events.hear("topic", lambda _text: heard.set())
    listening = asyncio.create_task(there.events.listen())  # type: ignore[attr-defined]
    while not heard.is_set():
        await here.events.tell("topic", "a")
        await asyncio.sleep(0.02)
    listening.cancel()
    await asyncio.wait([listening])


async def test_listening_rests_while_nobody_speaks(replicas: list[Shared], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = replicas
    assert here.link is not None
    monkeypatch.setattr(events, "REST_S", 0.1)
    listening = asyncio.create_task(there.events.listen())  # type: ignore[attr-defined]
    pings = 0
    while pings < 3:
        await asyncio.sleep(0.1)
        pings = (await here.link.client.info("commandstats")).get("cmdstat_ping", {"calls": 0})["calls"]
    await here.link.client.config_resetstat()
    await asyncio.sleep(1.0)
    pings = (await here.link.client.info("commandstats")).get("cmdstat_ping", {"calls": 0})["calls"]
    listening.cancel()
    await asyncio.wait([listening])
    assert pings <= 20


async def test_two_replicas_share_a_limit(replicas: list[Shared]) -> None:
    decisions = [await each.rates.hit("k", 5) for each in replicas * 4]
    assert [each.allowed for each in decisions] == [True] * 5 + [False] * 3


async def test_a_minute_may_be_overdrawn_once_and_is_paid_back(shared: Shared) -> None:
    assert await shared.compute_buckets.charge("acme", 1_000_000, 1_500_000) == 0
    assert await shared.compute_buckets.charge("acme", 1_000_000, 1) in (30, 31)
    assert await shared.compute_buckets.charge("zenith", 1_000_000, 1) == 0
    # A key of the same lab with a larger plan pays back faster.
    assert await shared.compute_buckets.charge("acme", 10_000_000, 1) in (3, 4)


async def test_a_bucket_fills_steadily(shared: Shared) -> None:
    assert await shared.compute_buckets.charge("acme", 6_000, 6_005) == 0
    assert await shared.compute_buckets.charge("acme", 6_000, 1) == 1
    async with asyncio.timeout(30.0):
        while await shared.compute_buckets.charge("acme", 6_000, 6_000):  # noqa: ASYNC110 (time alone fills it)
            await asyncio.sleep(0.05)
    # What came back in the meantime was not a whole minute's worth.
    assert await shared.compute_buckets.charge("acme", 6_000, 1) > 30


async def test_two_replicas_share_the_budget_of_a_minute(replicas: list[Shared]) -> None:
    waits = await asyncio.gather(*(each.compute_buckets.charge("acme", 1_000, 400) for each in replicas * 3))
    assert [wait > 0 for wait in sorted(waits)] == [False] * 3 + [True] * 3


async def refusals(keys: Sequence[FailedKeys], times: int) -> list[bool | int]:
    """What so many failures in turn came to: whether each was the last, else the seconds to wait."""
    told: list[bool | int] = []
    for each in (keys * times)[:times]:
        try:
            told.append(await each.failed("192.0.2.1"))
        except TooManyFailedKeys as refused:
            told.append(refused.retry_after_s)
    return told


async def test_keys_that_are_no_good_are_counted_up_to_a_limit(shared: Shared) -> None:
    told = await refusals([shared.failed_keys], MOST_PER_MINUTE + 1)
    assert told[:-1] == [False] * (MOST_PER_MINUTE - 1) + [True]
    assert 50 <= told[-1] <= WINDOW_S + 1
    assert await shared.failed_keys.failed("192.0.2.2") is False


async def test_two_replicas_count_the_failed_keys_of_an_address_together(replicas: list[Shared]) -> None:
    told = await refusals([each.failed_keys for each in replicas], MOST_PER_MINUTE + 2)
    assert told[:MOST_PER_MINUTE] == [False] * (MOST_PER_MINUTE - 1) + [True]
    assert all(50 <= wait <= WINDOW_S + 1 for wait in told[MOST_PER_MINUTE:])
    link = replicas[0].link
    assert link is not None
    assert 50_000 < await link.client.pttl("labs:failed_keys:192.0.2.1") <= 60_000


async def test_a_bucket_that_is_full_again_is_forgotten(replicas: list[Shared]) -> None:
    link = replicas[0].link
    assert link is not None
    await replicas[0].compute_buckets.charge("acme", 1_000, 500)
    assert 30_000 < await link.client.pttl("labs:minute:acme") <= 31_000


async def test_a_name_holds_so_many_and_what_ends_makes_room(shared: Shared) -> None:
    limits = {"lab/acme": 2, "key/k": 1}
    held = await shared.leases.take(limits)
    assert held is not None
    assert await shared.leases.take(limits) is None
    assert await shared.leases.take({"lab/acme": 2}) is not None
    # The refused one took nothing under the other name.
    assert await shared.leases.take({"key/other": 1, "lab/acme": 2}) is None
    assert await shared.leases.take({"key/other": 1}) is not None
    shared.leases.end(held)
    await taken(shared.leases, limits)


async def test_a_lease_that_is_renewed_before_it_is_taken_does_not_count_itself(
    replicas: list[Shared], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = replicas[0]
    assert here.link is not None
    assert isinstance(here.leases, RedisLeases)
    leases, run = here.leases, here.link.run

    async def renewed_before(script: str, names: list[str], values: tuple[str, ...]) -> object:
        if script == _TAKE:
            await leases._tell(_RENEW, list(leases._living.values()), "10000")
        return await run(script, names, values)

    monkeypatch.setattr(here.link, "run", renewed_before)
    assert await leases.take({"lab/acme": 1}) is not None


async def taken(leases: Leases, limits: dict[str, int]) -> Lease:
    """A lease, as soon as there is room."""
    async with asyncio.timeout(30.0):
        while (held := await leases.take(limits)) is None:  # noqa: ASYNC110 (a client would ask again, too)
            await asyncio.sleep(0.02)
    return held


async def test_two_replicas_share_places(replicas: list[Shared]) -> None:
    here, there = replicas
    held = await asyncio.gather(*(each.leases.take({"lab/acme": 3}) for each in replicas * 3))
    assert sum(lease is not None for lease in held) == 3
    for each, lease in zip(replicas * 3, held, strict=True):
        if lease is not None:
            each.leases.end(lease)
    for each in (here, here, there):
        await taken(each.leases, {"lab/acme": 3})


async def test_the_places_of_a_dead_replica_run_out(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_server.shared_state.leases.LEASE_S", 2.0)
    monkeypatch.setattr("reward_server.shared_state.leases.RENEW_S", 0.1)
    async with connected(redis.url) as living:
        dead = Shared.through(redis.url, deadline_s=PATIENCE_S)  # nothing renews its leases
        assert await living.leases.take({"lab/acme": 2}) is not None
        assert await dead.leases.take({"lab/acme": 2}) is not None
        assert await living.leases.take({"lab/acme": 2}) is None
        await taken(living.leases, {"lab/acme": 2})
        assert dead.link is not None
        await dead.link.close()


async def test_a_long_request_keeps_its_place(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_server.shared_state.leases.LEASE_S", 1.0)
    monkeypatch.setattr("reward_server.shared_state.leases.RENEW_S", 0.1)
    async with connected(redis.url) as here, connected(redis.url) as there:
        held = await here.leases.take({"lab/acme": 1})
        assert held is not None
        await asyncio.sleep(2.0)
        assert await there.leases.take({"lab/acme": 1}) is None
        here.leases.end(held)
        await taken(there.leases, {"lab/acme": 1})


async def test_a_redis_that_forgot_is_told_again_who_holds_places(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_server.shared_state.leases.RENEW_S", 0.05)
    async with connected(redis.url) as here, connected(redis.url) as there:
        assert await here.leases.take({"lab/acme": 1}) is not None
        assert here.link is not None
        await here.link.client.flushall()
        async with asyncio.timeout(30.0):
            while not await here.link.client.zcard("labs:places:lab/acme"):  # noqa: ASYNC110 (Redis has no event for it)
                await asyncio.sleep(0.02)
        assert await there.leases.take({"lab/acme": 1}) is None


async def test_the_same_thing_is_waited_for_and_another_is_refused(replicas: list[Shared]) -> None:
    here, there = replicas
    order: list[str] = []

    async def same() -> None:
        async with there.locks.hold("x", "ticket"):
            order.append("second")

    async with here.locks.hold("x", "ticket"):
        waiting = asyncio.create_task(same())
        await asyncio.sleep(0.05)
        with pytest.raises(LockBusy):
            async with there.locks.hold("x", "another"):
                pass
        order.append("first")
    await waiting
    assert order == ["first", "second"]
    async with there.locks.hold("x", "another"):
        pass


async def test_the_lock_of_a_dead_replica_runs_out(replicas: list[Shared], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_server.shared_state.locks.LEASE_S", 0.05)
    here, there = replicas
    assert isinstance(here.locks, RedisLocks)
    assert await here.locks._take("labs:lock:x", "other dead", "other")
    with pytest.raises(LockBusy):
        async with there.locks.hold("x", "mine"):
            pass
    await asyncio.sleep(0.1)
    async with there.locks.hold("x", "mine"):
        pass


async def test_a_living_holder_keeps_its_lock(replicas: list[Shared], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_server.shared_state.locks.LEASE_S", 0.3)
    monkeypatch.setattr("reward_server.shared_state.locks.RENEW_S", 0.05)
    here, there = replicas
    async with here.locks.hold("x", "mine"):
        await asyncio.sleep(0.5)
        with pytest.raises(LockBusy):
            async with there.locks.hold("x", "other"):
                pass


class Worker:
    """Answers with how often it was asked, and keeps the answer; not before it is let."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = asyncio.Event()

    def work(self, store: Store) -> object:
        async def work(keep: Keep) -> Body:
            self.runs += 1
            body: Body = {"run": self.runs}
            await self.go.wait()
            async with store.transaction() as unit:
                await keep(unit, body)
            return body

        return work


async def ask(store: Store, shared: Shared, worker: Worker, content: str = "same") -> Body:
    idempotency = Idempotency(store, ManualClock(), DetachedWork(), shared.locks)
    return await idempotency.answer(LAB, "key", lambda: content, worker.work(store))  # type: ignore[arg-type]


async def test_equal_requests_to_two_replicas_are_worked_on_once(store: Store, replicas: list[Shared]) -> None:
    worker = Worker()
    asked = [asyncio.create_task(ask(store, each, worker)) for each in replicas]
    await asyncio.sleep(0.1)
    with pytest.raises(IdempotencyMismatch):
        await ask(store, replicas[0], worker, "different")
    worker.go.set()
    assert await asyncio.gather(*asked) == [{"run": 1}, {"run": 1}]
    assert worker.runs == 1


async def test_without_redis_equal_requests_still_share_one_answer(store: Store) -> None:
    worker = Worker()
    asked = [asyncio.create_task(ask(store, Shared.local(), worker)) for _ in range(3)]
    await asyncio.sleep(0.05)
    worker.go.set()
    answers = await asyncio.gather(*asked)
    assert worker.runs == 3
    assert answers[0] == answers[1] == answers[2]


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("how", ["stopped", "hangs"])
async def test_while_redis_is_lost_each_replica_works_alone(how: str) -> None:
    told: list[bool] = []
    time = Time()
    with RedisServer() as server:
        shared = Shared.through(server.url, told.append, deadline_s=1.0)
        assert shared.link is not None
        shared.link._monotonic = time
        await shared.rates.hit("k", 2)
        assert await shared.compute_buckets.charge("acme", 1_000, 60_000) == 0
        await refusals([shared.failed_keys], MOST_PER_MINUTE)
        if how == "stopped":
            server.kill()
        else:
            server.hang()
        # The counts of Redis are out of reach: each process has its own.
        assert [(await shared.rates.hit("k", 2)).allowed for _ in range(3)] == [True, True, False]
        assert [await shared.compute_buckets.charge("acme", 1_000, 2_000) > 0 for _ in range(2)] == [False, True]
        assert [await shared.leases.take({"lab/acme": 1}) is None for _ in range(2)] == [False, True]
        assert await shared.failed_keys.failed("192.0.2.1") is False
        async with shared.locks.hold("x", "a"), shared.locks.hold("x", "b"):
            pass
        await shared.cache.put("a", "b", 1.0)
        assert await shared.cache.get("a") is None
        await shared.events.tell("topic", "text")
        assert told[-1] is True
        if how == "stopped":
            server.start()
        else:
            server.go_on()
        while await shared.cache.get("a") != "b":
            time.now += REST_S
            await shared.cache.put("a", "b", 60.0)
        assert told[-1] is False
        await shared.link.close()


async def test_a_lost_redis_is_asked_once_in_a_while() -> None:
    link = RedisLink("redis://127.0.0.1:1/0", monotonic=(time := Time()))
    asked = 0

    async def question(_redis: object) -> None:
        nonlocal asked
        asked += 1
        raise OSError

    for _ in range(5):
        with pytest.raises(RedisLost):
            await link.ask(question)
    assert asked == 1
    time.now += REST_S
    with pytest.raises(RedisLost):
        await link.ask(question)
    assert asked == 2
    await link.close()


@pytest.mark.parametrize("driver", ["answers", "fails"])
async def test_who_is_cancelled_ends_whatever_the_driver_makes_of_it(driver: str) -> None:
    link = RedisLink("redis://127.0.0.1:1/0")

    async def question(_redis: object) -> None:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            if driver == "fails":
                raise OSError from None

    asking = asyncio.create_task(link.ask(question))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not link.lost
    await link.close()


async def test_a_key_revoked_through_one_replica_is_forgotten_by_the_other(
    store: Store, replicas: list[Shared]
) -> None:
    # A clock that stands still: what is remembered would never run out by itself.
    here, there = (
        KeyRing(store, SystemClock(), b"p" * 32, events=each.events, monotonic=lambda: 0.0) for each in replicas
    )
    key = await here.create("acme")
    assert await there.verify(key.text) is not None
    listening = asyncio.create_task(replicas[1].events.listen())  # type: ignore[attr-defined]
    async with asyncio.timeout(60.0):
        while await there.verify(key.text) is not None:
            await here.revoke(key.row.key_id)  # again, until the other listens
            await asyncio.sleep(0.02)
    listening.cancel()
    await asyncio.wait([listening])
