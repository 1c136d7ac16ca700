"""`kill -9` of the server while many episodes are being played: no answered turn is lost, doubled or out of order.

`LABS_KILLS=20 pytest tests/faults/test_kill_under_load.py --timeout 1200` kills more often.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

KILLS = int(os.environ.get("LABS_KILLS", "2"))
SEED = int(os.environ.get("LABS_KILL_SEED", "1"))
CLIENTS = 8
START_S = 240.0
COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
WHERE = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
QUESTIONS = ("How did it happen?", "When do you need it back?", "Did you fall off?", "I see.", "How old is the tyre?")
ROOT = Path(__file__).parents[2]

Json = dict[str, Any]


@dataclass
class Played:
    """What one client was told, episode by episode."""

    logs: dict[str, list[Json]] = field(default_factory=dict)
    rewards: dict[str, list[float]] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)


class Service:
    """A server process that can be killed and started again on the same data."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.url = ""
        self.up = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.subprocess.Process]:
        environment = os.environ | {"LABS_SCENARIOS": str(COLLECTIONS), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "reward_server.cli.main", "serve", "--port", "0", "--data", str(self._data)),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            self.url = await asyncio.wait_for(_announced(process), START_S)
            self.up.set()
            yield process
        finally:
            self.up.clear()
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.wait()


async def _announced(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async for line in process.stdout:
        found = re.search(rb"http://127\.0\.0\.1:\d+", line)
        if found:
            return found[0].decode()
    raise AssertionError("the server ended before it was ready")


async def _call(service: Service, method: str, path: str, body: Json | None, key: str | None) -> Json:
    """Send until there is an answer, as a client that trusts retries does."""
    headers = {"Idempotency-Key": key} if key else {}
    while True:
        await service.up.wait()
        try:
            async with httpx2.AsyncClient(base_url=f"{service.url}/api/v1", timeout=30) as http:
                response = await http.request(method, path, json=body, headers=headers)
        except httpx2.TransportError:
            await asyncio.sleep(0.02)
            continue
        if response.status_code == 503:
            await asyncio.sleep(0.02)
            continue
        assert response.status_code == 200, response.text
        content: Json = response.json()
        return content


async def _play(service: Service, name: str, played: Played, stop: asyncio.Event) -> None:
    episodes = turns = 0
    while not stop.is_set():
        episodes += 1
        created = await _call(service, "POST", "/episodes", WHERE, f"{name}-episode-{episodes}")
        episode = created["episode_id"]
        log = played.logs[episode] = [created["initial_observation"]]
        rewards = played.rewards[episode] = []
        while not stop.is_set():
            turns += 1
            message = {"role": "user", "content": f"{QUESTIONS[turns % len(QUESTIONS)]}"}
            # Half of the retries go by key, half by the full history.
            by_key = turns % 2 == 0
            sent = [message] if by_key else [*log, message]
            path = f"/episodes/{episode}/turns"
            answer = await _call(service, "POST", path, {"messages": sent}, f"{name}-{turns}" if by_key else None)
            assert answer["turn"] == len(rewards) + 1
            log += [message, answer["observation"]]
            rewards.append(answer["reward"])
            if answer["episode_complete"]:
                played.complete.add(episode)
                break


def _count(played: list[Played]) -> int:
    return sum(len(rewards) for each in played for rewards in each.rewards.values())


async def _more_turns(played: list[Played], wanted: int) -> None:
    """Until so many more turns were answered: the kill comes in the middle of others."""
    goal = _count(played) + wanted
    async with asyncio.timeout(START_S):
        while _count(played) < goal:  # noqa: ASYNC110 (the clients know nothing of the killer)
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_no_answered_turn_is_lost_doubled_or_out_of_order(tmp_path: Path) -> None:
    service, stop, rng = Service(tmp_path), asyncio.Event(), random.Random(SEED)
    played = [Played() for _ in range(CLIENTS)]
    clients = [asyncio.create_task(_play(service, f"c{i}", each, stop)) for i, each in enumerate(played)]
    for _ in range(KILLS):
        async with service.running():
            await _more_turns(played, rng.randint(5, 40))
    async with service.running():
        stop.set()
        await asyncio.wait_for(asyncio.gather(*clients), START_S)
        for each in played:
            for episode, log in each.logs.items():
                stored = await _call(service, "GET", f"/episodes/{episode}", None, None)
                assert stored["messages"] == log
                assert stored["rewards"] == each.rewards[episode]
                assert (stored["status"] == "complete") == (episode in each.complete)
        listed = await _call(service, "GET", "/episodes?limit=100", None, None)
    known = {episode for each in played for episode in each.logs}
    # An episode created twice for one key would be listed and known to nobody.
    assert {body["episode_id"] for body in listed["data"]} <= known
    assert _count(played) >= KILLS * 5
