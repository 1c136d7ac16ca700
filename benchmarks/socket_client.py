"""Turns over `client.socket()` beside the same turns over HTTP: wall time, CPU of the client, CPU of the server.

Usage: python -m benchmarks.socket_client [--rounds 5] [--write]

One server process with keys, limits and storage on. In every round each way plays the same turns of 64 episodes of its
own, 16 at a time, and one after the other; the ways take turns at who begins, and medians are printed. Agents say what
was said before, so little of a turn is reading. The server's CPU "outside" is that of all threads but those that
simulate, score and encode. The client shares the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.fairness import LINES, WHERE
from benchmarks.http_costs import cpu_of
from benchmarks.processes import ServerProcess, labs_server, new_keys, one_collection, running
from benchmarks.report import Table, environment, write
from trainer_client import AsyncLabsClient
from trainer_client.wire import CreateEpisodeResponse, TurnResponse

EPISODES = 64
AT_ONCE = (16, 1)
TURNS = 4
COLLECTION, SCENARIO = WHERE["collection_slug"], WHERE["scenario_slug"]


class Player(Protocol):
    """What plays turns: the client itself, or its socket."""

    @property
    def create_episode(self) -> Callable[..., Awaitable[CreateEpisodeResponse]]:
        """Start one."""

    @property
    def turn(self) -> Callable[..., Awaitable[TurnResponse]]:
        """Play one turn."""


@dataclass(frozen=True)
class Cost:
    """Of one turn, in milliseconds."""

    wall_ms: float
    client_ms: float
    server_ms: float
    outside_ms: float


Costs = dict[tuple[str, int], list[Cost]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/socket_client.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        key = new_keys(Path(name) / "data", ("acme",))["acme"]
        scenarios = one_collection(Path(name), COLLECTION)
        server = labs_server(Path(name), command="benchmarks.named_threads", LABS_SCENARIOS=str(scenarios))
        with running(server):
            costs = asyncio.run(measure(server, key, arguments.rounds))
    text = table(costs, arguments.rounds).text()
    print(text)
    if arguments.write:
        write("socket_client", f"{environment()}\n\n{text}")


async def measure(server: ServerProcess, key: str, rounds: int) -> Costs:
    """All rounds."""
    costs: Costs = {}
    async with AsyncLabsClient(server.url, key) as client, client.socket() as socket:
        ways: list[tuple[str, Player]] = [("HTTP", client), ("socket", socket)]
        for _, player in ways:
            await played(player, server, AT_ONCE[0])  # everything was done once
        for number in range(rounds):
            for at_once in AT_ONCE:
                for name, player in ways if number % 2 == 0 else reversed(ways):
                    costs.setdefault((name, at_once), []).append(await played(player, server, at_once))
    return costs


async def played(player: Player, server: ServerProcess, at_once: int) -> Cost:
    """The turns of new episodes; the first turn of each, which reads the scenario, is not counted."""
    places = asyncio.Semaphore(at_once)
    episodes = await asyncio.gather(*(player.create_episode(COLLECTION, SCENARIO, seed=n) for n in range(EPISODES)))

    async def one(episode_id: str, line: str) -> None:
        async with places:
            await player.turn(episode_id, line)

    async def all_say(line: str) -> None:
        await asyncio.gather(*(one(each.episode_id, line) for each in episodes))

    await all_say(LINES[0])
    before, client_before, began = cpu_of(server), time.process_time(), time.perf_counter()
    for line in LINES[1:TURNS]:
        await all_say(line)
    wall, client_cpu, after = time.perf_counter() - began, time.process_time() - client_before, cpu_of(server)
    a_turn = 1000 / (EPISODES * (TURNS - 1))
    return Cost(wall * a_turn, client_cpu * a_turn, (after[0] - before[0]) * a_turn, (after[1] - before[1]) * a_turn)


def table(costs: Costs, rounds: int) -> Table:
    """The medians."""
    shown = Table(
        f"a turn over a socket, beside one over HTTP, by the asynchronous client; median of {rounds} rounds",
        ["", "wall ms", "client CPU ms", "server CPU ms", "of which outside persona and judges"],
    )
    for at_once in AT_ONCE:
        for name in ("HTTP", "socket"):
            figures = (
                statistics.median(getattr(cost, field) for cost in costs[name, at_once])
                for field in ("wall_ms", "client_ms", "server_ms", "outside_ms")
            )
            shown.add(f"{name}, {at_once} at a time", *(f"{figure:.2f}" for figure in figures))
    return shown


if __name__ == "__main__":
    main()
