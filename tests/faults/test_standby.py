"""A standby takes over when the server beside it has ended; one of several does, and nothing answered is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from benchmarks.real_servers import PostgresServer
from tests.faults.server_process import COLLECTIONS, ROOT, WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow

CLIENTS = 8
PATIENCE_S = 60.0


@contextmanager
def standby(server: ServerProcess, folder: Path, **environment: str) -> Iterator[ServerProcess]:
    """One that has loaded everything and waits for `server` to end."""
    variables = os.environ | {"LABS_SCENARIOS": str(COLLECTIONS), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "reward_server.cli.main", "serve", "--standby"]
    with (folder / "standby.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--port", str(server.port), "--data", str(server.data)],
            env=variables | {"HF_HUB_OFFLINE": "1"} | environment,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        assert process.stdout is not None
        try:
            assert b"stands by" in process.stdout.readline()
            yield ServerProcess(process, server.url, server.data, server.keys)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()


def answers(server: ServerProcess) -> bool:
    headers = {"Authorization": f"Bearer {server.keys['acme']}"}
    try:
        return httpx2.get(f"{server.url}/api/v1/catalog", headers=headers, timeout=30.0).status_code == 200
    except httpx2.TransportError:
        return False


async def until_answered(server: ServerProcess) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(answers, server):  # noqa: ASYNC110 (a process has no event)
            await asyncio.sleep(0.01)


async def play(server: ServerProcess, name: str, told: dict[str, list[str]], stop: asyncio.Event) -> None:
    """One episode after another, each request sent until it is answered."""
    async with server.client("acme") as http:
        number = 0

        async def sent(path: str, body: object) -> httpx2.Response:
            while True:
                try:
                    answer = await http.post(path, json=body, headers={"Idempotency-Key": f"{name}-{number}"})
                except httpx2.TransportError:
                    await asyncio.sleep(0.02)
                    continue
                if answer.status_code not in (409, 503):
                    return answer.raise_for_status()
                await asyncio.sleep(0.02)

        while not stop.is_set():
            number += 1
            episode = (await sent("/episodes", WHERE)).json()["episode_id"]
            told[episode] = []
            complete = False
            while not complete and not stop.is_set():
                number += 1
                body = {"messages": [{"role": "user", "content": f"How did it happen, {number}?"}]}
                played = (await sent(f"/episodes/{episode}/turns", body)).json()
                told[episode].append(played["observation"]["content"])
                complete = played["episode_complete"]


async def until_told(told: dict[str, list[str]], turns: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while sum(map(len, told.values())) < turns:  # noqa: ASYNC110 (clients write it down as they go)
            await asyncio.sleep(0.05)


async def test_killed_under_load_the_standby_answers_and_no_answered_turn_is_lost(tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",)) as first, standby(first, tmp_path) as second:
        told: dict[str, list[str]] = {}
        stop = asyncio.Event()
        clients = [asyncio.create_task(play(first, f"client-{each}", told, stop)) for each in range(CLIENTS)]
        await until_told(told, 5 * CLIENTS)
        first.process.kill()
        await until_told(told, sum(map(len, told.values())) + 5 * CLIENTS)
        stop.set()
        await asyncio.gather(*clients)
        assert second.process.poll() is None
        async with second.client("acme") as http:
            for episode, said in told.items():
                log = (await http.get(f"/episodes/{episode}")).raise_for_status().json()["messages"]
                assert [message["content"] for message in log[2::2]] == said


async def test_of_two_standbys_one_serves_and_the_other_goes_on_waiting(tmp_path: Path) -> None:
    with (
        server_process(tmp_path, keys=("acme",)) as first,
        standby(first, tmp_path) as second,
        standby(first, tmp_path) as third,
    ):
        os.kill(first.pid, signal.SIGTERM)
        assert await asyncio.to_thread(first.wait) == 0
        await until_answered(first)
        serving = holder(first.data)
        assert serving in (second.pid, third.pid)
        winner, waiting = (second, third) if serving == second.pid else (third, second)
        assert waiting.process.poll() is None
        winner.process.kill()
        await until_answered(first)
        assert holder(first.data) == waiting.pid
        os.kill(waiting.pid, signal.SIGTERM)
        assert await asyncio.to_thread(waiting.wait) == 0


def holder(data: Path) -> int:
    """The process that has the folder."""
    return int((data / "labs.sqlite.server").read_text())


def test_a_waiting_standby_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    with server_process(tmp_path, keys=("acme",)) as first, standby(first, tmp_path) as second:
        os.kill(second.pid, signal.SIGTERM)
        assert second.wait() == 0
        assert answers(first)


async def test_with_postgresql_it_waits_for_the_address(tmp_path: Path) -> None:
    with PostgresServer() as database:
        shared = {"LABS_DATABASE_URL": database.new_database("labs_standby"), "LABS_PEPPER": "p" * 32}
        with server_process(tmp_path, keys=(), **shared) as first, standby(first, tmp_path, **shared) as second:
            made = await opened(first)
            first.process.kill()
            async with asyncio.timeout(PATIENCE_S):
                while await status(second, made) != 200:  # noqa: ASYNC110 (a process has no event)
                    await asyncio.sleep(0.01)
            assert second.process.poll() is None


async def opened(server: ServerProcess) -> str:
    """An episode; a server without keys takes it from anybody on this machine."""
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", timeout=60.0) as http:
        episode: str = (await http.post("/episodes", json=WHERE)).raise_for_status().json()["episode_id"]
        return episode


async def status(server: ServerProcess, episode: str) -> int:
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", timeout=60.0) as http:
        try:
            return (await http.get(f"/episodes/{episode}")).status_code
        except httpx2.TransportError:
            return 0
