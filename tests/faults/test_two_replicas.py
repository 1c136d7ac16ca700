"""Two real servers on one PostgreSQL and one Redis: episodes are played over both, and limits counted over both."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import cycle
from typing import Any

import httpx2
import pytest

from benchmarks.real_servers import PostgresServer, RedisServer
from reward_server.auth.failed_keys import MOST_PER_MINUTE
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import LEAST_CHARACTERS, Plan
from reward_server.auth.tenants import Tenants
from reward_server.clock import SystemClock
from reward_server.shared_state.leases import LEASE_S
from reward_server.store.migrate import migrate
from reward_server.store.records import LabLimitsRow
from reward_server.store.store import Store
from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow

PEPPER = "p" * 32
RATE = 6
EVALUATION = {**WHERE, "messages": [{"role": "assistant", "content": "How did it happen?"}]}
LONG = {"episode_id": "ep_" + "a" * 24, "messages": [{"role": "user", "content": "a" * 9_980}]}
"""A turn of an episode that is not there: nothing is read of it, and all of it is charged."""
TOLD_S = 1.5
"""What a `Retry-After` may be beside the moment itself: it is in whole seconds, and asking takes a while."""
CLIENTS, TURNS_A_CLIENT = 8, 50
QUESTIONS = ("How did it happen?", "When do you need it back?", "Did you fall off?", "I see.", "How old is the tyre?")
Keys = Mapping[str, str]
Message = dict[str, Any]


@pytest.fixture(scope="module")
def shared() -> Iterator[dict[str, str]]:
    """The settings of every replica."""
    with PostgresServer() as database, RedisServer() as memory:
        url = database.new_database("labs_two")
        # On a busy machine Redis may take its time: a server that takes it for lost counts alone for a while.
        patient = {"LABS_REDIS_URL": memory.url, "LABS_REDIS_DEADLINE_S": "20"}
        yield {"LABS_DATABASE_URL": url, "LABS_PEPPER": PEPPER, **patient}


@pytest.fixture(scope="module")
def keys(shared: dict[str, str]) -> Keys:
    return asyncio.run(made(shared["LABS_DATABASE_URL"]))


async def made(url: str) -> Keys:
    """A key for each limit, of a lab of its own."""
    await migrate(url)
    store = await Store.open(url)
    try:
        ring, plenty = KeyRing(store, SystemClock(), PEPPER.encode()), {"plan": Plan.CUSTOM, "rate_per_minute": 60_000}
        found = {
            "reads": await ring.create("reads"),
            "asks": await ring.create("asks", plan=Plan.CUSTOM, rate_per_minute=RATE),
            "works": await ring.create("works", **plenty),  # type: ignore[arg-type]
            "works too": await ring.create("works", **plenty),  # type: ignore[arg-type]
            "alone": await ring.create("alone", concurrency=1, **plenty),  # type: ignore[arg-type]
            "other": await ring.create("other", **plenty),  # type: ignore[arg-type]
            "plays": await ring.create("plays", **plenty),  # type: ignore[arg-type]
        }
        await Tenants(store, SystemClock()).change("works", limits=LabLimitsRow(concurrency=2))
        return {name: key.text for name, key in found.items()}
    finally:
        await store.close()


@pytest.fixture(scope="module")
def replicas(
    shared: dict[str, str], keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[ServerProcess]]:
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    with server_process(folders[0], keys=(), **shared) as first, server_process(folders[1], keys=(), **shared) as other:
        yield [first, other]


def call(server: ServerProcess, key: str, path: str, body: object = None) -> httpx2.Response:
    method, headers = "GET" if body is None else "POST", {"Authorization": f"Bearer {key}"}
    return httpx2.request(method, f"{server.url}/api/v1{path}", json=body, headers=headers, timeout=60.0)


def refused(answer: httpx2.Response, code: str, most_s: float) -> int:
    """The seconds to wait that a refusal tells."""
    assert (answer.status_code, answer.json()["data"]["code"]) == (429, code), answer.text
    wait_s = int(answer.headers["retry-after"])
    assert 1 <= wait_s <= most_s
    return wait_s


def say(server: ServerProcess, key: str, episode: str, log: Sequence[Message], text: str) -> httpx2.Response:
    """A turn with the whole talk before it."""
    messages = [*log, {"role": "user", "content": text}]
    return call(server, key, f"/episodes/{episode}/turns", {"messages": messages})


def begin(server: ServerProcess, key: str) -> tuple[str, list[Message]]:
    created = call(server, key, "/episodes", WHERE).json()
    return created["episode_id"], [created["initial_observation"]]


def test_turns_of_many_episodes_over_both_are_each_played_once(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    def play(number: int) -> int:
        servers, turns = cycle(replicas if number % 2 else replicas[::-1]), 0
        while turns < TURNS_A_CLIENT:
            episode, log = begin(next(servers), keys["plays"])
            rewards: list[float] = []
            complete = False
            while not complete and turns < TURNS_A_CLIENT:
                text = QUESTIONS[turns % len(QUESTIONS)]
                answer = say(next(servers), keys["plays"], episode, log, text)
                assert answer.status_code == 200, answer.text
                told = answer.json()
                log += [{"role": "user", "content": text}, told["observation"]]
                rewards.append(told["reward"])
                complete, turns = told["episode_complete"], turns + 1
                assert told["turn"] == len(rewards)
            stored = call(next(servers), keys["plays"], f"/episodes/{episode}").json()
            assert (stored["messages"], stored["rewards"]) == (log, rewards)
        return turns

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert sum(clients.map(play, range(CLIENTS))) == CLIENTS * TURNS_A_CLIENT == 400


def test_of_two_turns_at_one_position_exactly_one_wins(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    episode, log = begin(replicas[0], keys["plays"])
    with ThreadPoolExecutor(2) as both:
        for position in range(1, 7):
            texts = [f"{question} ({position})" for question in QUESTIONS[:2]]
            sent = [both.submit(say, s, keys["plays"], episode, log, t) for s, t in zip(replicas, texts, strict=True)]
            answers = [each.result() for each in sent]
            assert sorted(answer.status_code for answer in answers) == [200, 409], [a.text for a in answers]
            [(text, won)] = [(t, a.json()) for t, a in zip(texts, answers, strict=True) if a.status_code == 200]
            [lost] = [a.json()["data"]["code"] for a in answers if a.status_code == 409]
            assert lost in {"turn_in_progress", "history_mismatch"}
            assert won["turn"] == position
            log = [*log, {"role": "user", "content": text}, won["observation"]]
    for each in replicas:
        assert call(each, keys["plays"], f"/episodes/{episode}").json()["messages"] == log


def test_the_characters_of_a_minute_are_one_budget(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    first, second = replicas
    much = {"items": [LONG] * 75}
    sent = 2 * 75 * 10_000
    began = time.monotonic()
    assert call(first, keys["reads"], "/batch/turns", much).status_code == 200
    assert call(second, keys["reads"], "/batch/turns", much).status_code == 200  # what is over is owed
    owed_s = (sent - LEAST_CHARACTERS) / LEAST_CHARACTERS * 60
    waits = [
        refused(call(each, keys["reads"], "/evaluate", EVALUATION), "compute_exhausted", owed_s) for each in replicas
    ]
    took_s = time.monotonic() - began
    assert all(wait >= owed_s - took_s - TOLD_S for wait in waits)
    assert abs(waits[0] - waits[1]) <= took_s + 1
    assert all(call(each, keys["other"], "/evaluate", EVALUATION).status_code == 200 for each in replicas)
    # Whoever waits as one server said is served by the other, and not before.
    time.sleep(waits[0] / 2)
    refused(call(first, keys["reads"], "/evaluate", EVALUATION), "compute_exhausted", waits[0])
    time.sleep(waits[0] / 2)
    assert call(second, keys["reads"], "/evaluate", EVALUATION).status_code == 200


def test_the_requests_of_a_minute_are_one_rate(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    answers = [call(each, keys["asks"], "/catalog") for each, _ in zip(cycle(replicas), range(RATE), strict=False)]
    assert [answer.status_code for answer in answers] == [200] * RATE
    assert [int(answer.headers["x-ratelimit-remaining"]) for answer in answers] == list(range(RATE))[::-1]
    for each in replicas:
        refused(call(each, keys["asks"], "/catalog"), "rate_limited", 61)


def test_invalid_keys_of_an_address_are_counted_together(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    tries = [
        call(each, "lab_no_key", "/usage") for each, _ in zip(cycle(replicas), range(MOST_PER_MINUTE), strict=False)
    ]
    assert [answer.status_code for answer in tries] == [401] * MOST_PER_MINUTE
    for each in replicas:
        refused(call(each, "lab_no_key", "/usage"), "too_many_failed_keys", 61)
        assert call(each, keys["other"], "/usage").status_code == 200


def begun(server: ServerProcess, key: str) -> socket.socket:
    """A request in work: its place is held before the server asks for the body, which does not come yet."""
    opened = socket.create_connection(("127.0.0.1", server.port), timeout=60.0)
    head = (
        f"POST /api/v1/evaluate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    opened.sendall(head.encode())
    assert opened.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return opened


def status_of(opened: socket.socket) -> int:
    """What it is answered once its body has come."""
    opened.sendall(b"{}")
    return int(opened.recv(65_536).split()[1])


def until(server: ServerProcess, key: str, wanted: int, within_s: float = 20.0) -> None:
    """A server hears of what another does a moment later: until it answers so."""
    end = time.monotonic() + within_s
    while (status := call(server, key, "/evaluate", EVALUATION).status_code) != wanted:
        assert status in (200, 429)
        assert time.monotonic() < end, f"{status}, not {wanted}, for {within_s:g} s"
        time.sleep(0.05)


def test_requests_in_work_of_a_lab_are_held_over_both(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    first, second = replicas
    with closing(begun(first, keys["works"])) as one, closing(begun(second, keys["works too"])) as another:
        for each in replicas:
            until(each, keys["works"], 429)
            refused(call(each, keys["works too"], "/evaluate", EVALUATION), "too_many_at_once", 5)
            assert call(each, keys["other"], "/evaluate", EVALUATION).status_code == 200
        assert status_of(one) == 400  # it had its place all the while, and is answered
        until(second, keys["works"], 200)
        assert status_of(another) == 400
    for each in replicas:
        until(each, keys["works"], 200)


def test_requests_in_work_of_a_key_are_held_over_both(replicas: Sequence[ServerProcess], keys: Keys) -> None:
    first, second = replicas
    with closing(begun(first, keys["alone"])) as one:
        until(second, keys["alone"], 429)
        assert status_of(one) == 400
    until(second, keys["alone"], 200)


def test_what_a_killed_server_had_in_work_counts_until_its_leases_run_out(
    replicas: Sequence[ServerProcess], shared: dict[str, str], keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("third")
    with server_process(folder, keys=(), **shared) as third, closing(begun(third, keys["alone"])):
        until(replicas[0], keys["alone"], 429)
        third.process.kill()
        third.wait()
        assert call(replicas[0], keys["alone"], "/evaluate", EVALUATION).status_code == 429
        until(replicas[0], keys["alone"], 200, within_s=LEASE_S + 5.0)
