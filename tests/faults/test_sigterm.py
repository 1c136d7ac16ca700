"""SIGTERM of a real server process: what is in work is answered and stored, and nothing that is open holds it up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from reward_server.store.engine import sqlite_url
from reward_server.store.records import TurnRow
from reward_server.store.store import Store
from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow

IN_FLIGHT = 50
DRAIN_S = 30.0
JOB_ITEMS = 200
TALK = [{"role": "assistant", "content": "Good morning."}, {"role": "user", "content": "My bike has a flat tyre."}]


async def stored(data: Path, episodes: list[str]) -> dict[str, list[TurnRow]]:
    """The turns that are in the database of a server that has ended."""
    store = await Store.open(sqlite_url(data / "labs.sqlite"))
    try:
        async with store.reading() as unit:
            return await unit.episodes.turns_of("acme", episodes)
    finally:
        await store.close()


async def in_work(server: ServerProcess, http: httpx2.AsyncClient) -> int:
    page = (await http.get(f"{server.url}/metrics")).text
    [line] = [each for each in page.splitlines() if each.startswith("labs_requests_in_work ")]
    return int(float(line.split()[1]))


async def done_of(http: httpx2.AsyncClient, job: str, *, at_least: int) -> int:
    """The items of a job that are done, as soon as there are so many."""
    async with asyncio.timeout(120.0):
        while True:
            done: int = (await http.get(f"/jobs/{job}")).json()["counts"]["done"]
            if done >= at_least:
                return done


async def test_turns_in_flight_are_answered_and_stored_and_the_exit_code_is_0(tmp_path: Path) -> None:
    settings = {"LABS_DRAIN_S": "60", "LABS_METRICS_ACCESS": "open"}
    with server_process(tmp_path, keys=("acme",), **settings) as server:
        async with server.client("acme") as http, server.client("acme") as looking:
            made = [(await http.post("/episodes", json=WHERE)).json()["episode_id"] for _ in range(IN_FLIGHT)]

            async def play(number: int) -> httpx2.Response:
                # Words that nobody has said before: quick turns would be over before the signal.
                words = " ".join(f"And what about the {number * 100 + i}th time, was it wet?" for i in range(12))
                body = {"messages": [{"role": "user", "content": words}]}
                return await http.post(f"/episodes/{made[number]}/turns", json=body)

            turns = [asyncio.create_task(play(number)) for number in range(IN_FLIGHT)]
            async with asyncio.timeout(60.0):
                while await in_work(server, looking) < IN_FLIGHT:
                    assert not any(turn.done() for turn in turns), "the turns were over too soon to be in flight"
            os.kill(server.pid, signal.SIGTERM)
            answers = [await turn for turn in turns]
        assert {answer.status_code for answer in answers} == {200}
        assert await asyncio.to_thread(server.wait) == 0
    found = await stored(server.data, made)
    told = {name: answer.json() for name, answer in zip(made, answers, strict=True)}
    assert {name: [(row.turn, row.observation, row.reward) for row in rows] for name, rows in found.items()} == {
        name: [(1, body["observation"]["content"], body["reward"])] for name, body in told.items()
    }
    # Whoever closes the last connection of a database takes its log file away.
    assert not (server.data / "labs.sqlite-wal").exists()


async def test_what_is_not_done_in_time_is_a_503_and_what_was_stored_is_answered_with_it(tmp_path: Path) -> None:
    settings = {"LABS_DRAIN_S": "4", "LABS_METRICS_ACCESS": "open"}
    with server_process(tmp_path, keys=("acme",), **settings) as server:
        async with server.client("acme") as http, server.client("acme") as looking:
            made = [(await http.post("/episodes", json=WHERE)).json()["episode_id"] for _ in range(IN_FLIGHT)]
            batch_of = made[:8]

            def words(number: int) -> str:
                # Words that nobody has said before, and too many to be read in the time left.
                return " ".join(f"And what about the {number * 200 + i}th time, was it wet?" for i in range(160))

            async def play(number: int) -> httpx2.Response:
                body = {"messages": [{"role": "user", "content": words(number)}]}
                return await http.post(f"/episodes/{made[number]}/turns", json=body)

            async def evaluate(number: int) -> httpx2.Response:
                messages = [{"role": "assistant", "content": words(number)}]
                return await http.post("/evaluate", json={**WHERE, "messages": messages})

            async def play_batch() -> httpx2.Response:
                turns = [
                    {"episode_id": name, "messages": [{"role": "user", "content": words(100 + number)}]}
                    for number, name in enumerate(batch_of)
                ]
                return await http.post("/batch/turns", json={"items": turns})

            turns = [asyncio.create_task(play(number)) for number in range(8, IN_FLIGHT)]
            others = [asyncio.create_task(evaluate(200 + number)) for number in range(4)]
            batch = asyncio.create_task(play_batch())
            async with asyncio.timeout(60.0):
                while await in_work(server, looking) < len(turns) / 2:
                    pass
            os.kill(server.pid, signal.SIGTERM)
            answers = [await turn for turn in [*turns, *others]]
            batched = await batch
        assert {answer.status_code for answer in [*answers, batched]} <= {200, 503}
        refused = [answer for answer in answers if answer.status_code == 503]
        assert refused, "the turns were over too soon"
        assert all("retry-after" in answer.headers for answer in refused)
        assert await asyncio.to_thread(server.wait) == 0
    found = await stored(server.data, made)
    told = {name: answer.json() for name, answer in zip(made[8:], answers, strict=False) if answer.status_code == 200}
    if batched.status_code == 200:
        told |= {each["episode_id"]: each for each in batched.json()["results"] if each.get("status") == "success"}
    assert {name: [row.observation for row in rows] for name, rows in found.items() if rows} == {
        name: [body["observation"]["content"]] for name, body in told.items()
    }


async def test_open_streams_and_sockets_hold_nothing_up(tmp_path: Path) -> None:
    # Nobody works on the job, so its events would go on for ever.
    settings = {"LABS_DRAIN_S": str(DRAIN_S), "LABS_JOB_WORKERS": "0"}
    with server_process(tmp_path, keys=("acme",), **settings) as server:
        headers = {"Authorization": f"Bearer {server.keys['acme']}"}
        async with (
            server.client("acme") as http,
            connect(f"ws://127.0.0.1:{server.port}/api/v1/episodes/ws", additional_headers=headers) as socket,
        ):
            await socket.send(json.dumps({"op": "create", **WHERE}))
            assert "episode_id" in json.loads(await socket.recv())
            job = await http.post("/jobs", json={"type": "evaluate", "items": [{**WHERE, "id": "a", "messages": TALK}]})
            async with http.stream("GET", f"/jobs/{job.json()['job_id']}/events") as events:
                lines = events.aiter_lines()
                assert await anext(lines) == "event: progress"
                os.kill(server.pid, signal.SIGTERM)
                ended_s = time.monotonic()
                assert [line async for line in lines if line.startswith("event:")] == []
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        assert await asyncio.to_thread(server.wait) == 0
        # Were it held up it would take all of the drain time.
        assert time.monotonic() - ended_s < DRAIN_S / 2


async def test_operations_of_a_socket_are_answered_with_what_was_stored_or_not_stored(tmp_path: Path) -> None:
    settings = {"LABS_DRAIN_S": "2", "LABS_METRICS_ACCESS": "open"}
    with server_process(tmp_path, keys=("acme",), **settings) as server:
        headers = {"Authorization": f"Bearer {server.keys['acme']}"}
        async with (
            server.client("acme") as http,
            connect(f"ws://127.0.0.1:{server.port}/api/v1/episodes/ws", additional_headers=headers) as socket,
        ):
            made = [(await http.post("/episodes", json=WHERE)).json()["episode_id"] for _ in range(IN_FLIGHT)]
            for number, name in enumerate(made):
                words = " ".join(f"And what about the {number * 100 + i}th time, was it wet?" for i in range(40))
                operation = {"op": "turn", "ref": name, "episode_id": name}
                await socket.send(json.dumps({**operation, "messages": [{"role": "user", "content": words}]}))
            answers = [json.loads(await socket.recv())]
            os.kill(server.pid, signal.SIGTERM)
            code = None
            while code is None:
                try:
                    answers.append(json.loads(await socket.recv()))
                except ConnectionClosed as closed:
                    code = closed.rcvd.code if closed.rcvd else 0
        assert code == 1012
        assert await asyncio.to_thread(server.wait) == 0
    told = {each["ref"]: each for each in answers if "observation" in each}
    refused = [each for each in answers if "observation" not in each]
    assert len(told) < IN_FLIGHT, "the turns were over too soon"
    assert all(each["status"] == 503 and each["retry_after_s"] > 0 for each in refused)
    found = await stored(server.data, made)
    assert {name: [row.observation for row in rows] for name, rows in found.items() if rows} == {
        name: [each["observation"]["content"]] for name, each in told.items()
    }


async def test_a_job_goes_on_with_the_next_server_and_scores_each_item_once(tmp_path: Path) -> None:
    items = [{**WHERE, "id": f"talk-{number}", "messages": TALK} for number in range(JOB_ITEMS)]
    with server_process(tmp_path, keys=("acme",), LABS_DRAIN_S="20") as server:
        async with server.client("acme") as http:
            name = (await http.post("/jobs", json={"type": "evaluate", "items": items})).json()["job_id"]
            begun = await done_of(http, name, at_least=1)
        assert begun < JOB_ITEMS, "the job was over too soon"
        os.kill(server.pid, signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0
    with server_process(tmp_path, keys=("acme",)) as server:
        async with server.client("acme") as http:
            assert await done_of(http, name, at_least=JOB_ITEMS) == JOB_ITEMS
    store = await Store.open(sqlite_url(server.data / "labs.sqlite"))
    try:
        async with store.reading() as unit:
            results = [result for _, result in await unit.jobs.results("acme", name, -1, 1000)]
            evaluations = [each.evaluation_id for each in await unit.evaluations.of("acme")]
    finally:
        await store.close()
    assert sorted(evaluations) == sorted(each["evaluation_id"] for each in results)
    assert len(results) == JOB_ITEMS
