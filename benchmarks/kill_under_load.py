"""Kill the server with SIGKILL under load, again and again: no answered turn may be lost, doubled or out of order.

Usage: python -m benchmarks.kill_under_load [--cycles 20] [--turns 5000] [--engines sqlite postgresql] [--write]

The kills are spread over the turns. PostgreSQL is a real one that writes through to the disk, and stays up.

Clients play episodes and send every turn with an Idempotency-Key. When the server dies they wait and send the same
request again, as a trainer would. At the end each episode's log on the server is compared with what its
client was told: the same turns, in order, with the same words and rewards.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.processes import ROOT, ServerProcess, labs_server
from benchmarks.real_servers import PostgresServer
from benchmarks.report import Table, environment, write

WHERE = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
LINES = (
    "What is the problem with the blender?",
    "When does it leak?",
    "Is there a batch or serial number on the base?",
    "I'm sorry about all this mopping.",
    "How do you clean it?",
    "Has it been dropped?",
    "Did anyone get hurt?",
    "What would be a good solution for you?",
)
TURNS = 10
ENGINES = ["sqlite", "postgresql"]
GIVE_UP_S = 120.0


@dataclass
class Played:
    """An episode as its client saw it."""

    episode_id: str
    opening: str
    sent: list[str] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Outcome:
    """What a run found."""

    cycles: int
    answered: int
    resent: int
    slowest_restart_s: float
    faults: list[str]


def main() -> None:
    """Run and print; exit code 1 when anything was lost, doubled or out of order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20, help="kills on each engine")
    parser.add_argument("--turns", type=int, default=5000, help="turns answered before the last kill, at least")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/kill_under_load.md")
    arguments = parser.parse_args()
    table = Table(
        "SIGKILL under load", ["engine", "kills", "answered turns", "sent again", "slowest restart s", "faults"]
    )
    faults: list[str] = []
    for engine in arguments.engines:
        with tempfile.TemporaryDirectory() as folder, stored_in(engine) as variables:
            server = labs_server(Path(folder), None, ROOT, **variables)
            found = asyncio.run(run(server, arguments.cycles, arguments.turns, arguments.clients))
        counts = (found.cycles, found.answered, found.resent, f"{found.slowest_restart_s:.1f}", len(found.faults))
        table.add(engine, *counts)
        faults += found.faults
    print("\n".join([table.text(), *faults[:20]]))
    if arguments.write:
        write("kill_under_load", f"{environment()}\n\n{table.text()}")
    raise SystemExit(1 if faults else 0)


@contextmanager
def stored_in(engine: str) -> Iterator[dict[str, str]]:
    """The settings of a server that keeps its data in this engine, which runs meanwhile."""
    if engine == "sqlite":
        yield {}
        return
    with PostgresServer(durable=True) as database:
        yield {"LABS_DATABASE_URL": database.new_database("labs_killed")}


async def run(server: ServerProcess, cycles: int, turns: int, clients: int, *, seed: int = 0) -> Outcome:
    """Play under kills, then compare."""
    server.start()
    stop = asyncio.Event()
    crew = [Client(server, number, stop) for number in range(clients)]
    slowest = 0.0
    try:
        async with asyncio.TaskGroup() as group:
            for client in crew:
                group.create_task(client.play())
            source = random.Random(seed)
            for cycle in range(1, cycles + 1):
                while _answered(crew) < cycle * turns / cycles:  # noqa: ASYNC110 (the clients know of no kill)
                    await asyncio.sleep(0.01)
                await asyncio.sleep(source.uniform(0.0, 0.5))
                server.kill()
                started = time.monotonic()
                await asyncio.to_thread(server.start)
                slowest = max(slowest, time.monotonic() - started)
            stop.set()
        faults = [fault for client in crew for fault in await client.compare()]
    finally:
        server.stop()
    return Outcome(cycles, _answered(crew), sum(client.resent for client in crew), slowest, faults)


def _answered(crew: Sequence[Client]) -> int:
    return sum(len(episode.answers) for client in crew for episode in client.episodes)


class Client:
    """Plays one episode after another and never gives a request up."""

    def __init__(self, server: ServerProcess, number: int, stop: asyncio.Event) -> None:
        self.episodes: list[Played] = []
        self.resent = 0
        self._server = server
        self._number = number
        self._stop = stop
        self._sent = 0

    async def play(self) -> None:
        """Until the kills are over."""
        async with httpx2.AsyncClient(timeout=30.0) as http:
            while not self._stop.is_set():
                await self._episode(http)

    async def _episode(self, http: httpx2.AsyncClient) -> None:
        body = {**WHERE, "config": {"seed": self._number * 1000 + len(self.episodes)}}
        created = await self._send(http, "/api/v1/episodes", body)
        played = Played(created["episode_id"], created["initial_observation"]["content"])
        self.episodes.append(played)
        for turn in range(TURNS):
            line = LINES[(turn + self._number) % len(LINES)]
            message = {"role": "user", "content": line}
            path = f"/api/v1/episodes/{played.episode_id}/turns"
            played.sent.append(line)
            played.answers.append(await self._send(http, path, {"messages": [message]}))
            if played.answers[-1]["episode_complete"] or self._stop.is_set():
                return

    async def _send(self, http: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request with one key, sent until it is answered."""
        self._sent += 1
        key = f"client-{self._number}-{self._sent}"
        deadline = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline:
            try:
                answer = await http.post(self._server.url + path, json=body, headers={"Idempotency-Key": key})
            except httpx2.HTTPError:
                self.resent += 1
                await asyncio.sleep(0.1)
                continue
            if answer.status_code == 200:
                given: dict[str, Any] = answer.json()
                return given
            if answer.status_code not in (502, 503):
                raise RuntimeError(f"{path} was answered {answer.status_code}")
            self.resent += 1
            await asyncio.sleep(0.1)
        raise RuntimeError(f"{path} was not answered in {GIVE_UP_S:.0f} s")

    async def compare(self) -> list[str]:
        """Differences between what was answered and what the server remembers."""
        faults = []
        async with httpx2.AsyncClient(timeout=30.0) as http:
            for played in self.episodes:
                stored = (await http.get(f"{self._server.url}/api/v1/episodes/{played.episode_id}")).json()
                told = [played.opening]
                for line, answer in zip(played.sent, played.answers, strict=True):
                    told += [line, answer["observation"]["content"]]
                if [message["content"] for message in stored["messages"]] != told:
                    faults.append(f"{played.episode_id}: the log differs from what was answered")
                if stored["rewards"] != [answer["reward"] for answer in played.answers]:
                    faults.append(f"{played.episode_id}: the rewards differ from what was answered")
                if [answer["turn"] for answer in played.answers] != list(range(1, len(played.answers) + 1)):
                    faults.append(f"{played.episode_id}: turns out of order")
        return faults


if __name__ == "__main__":
    main()
