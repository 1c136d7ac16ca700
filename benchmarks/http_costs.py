"""What requests cost beside the work they are for: turns, batches of turns, and batches that only rules judge.

Usage: python -m benchmarks.http_costs [--rounds 5] [--write]

One server process with keys, limits and storage on, beside bare FastAPI endpoints; rounds of all of them take turns,
and medians of CPU milliseconds are printed. CPU "outside" is that of all threads but those that simulate, score and
encode (`labs-scoring`, `labs-encoding`, `labs-warming`), from the system's own books of each thread. The client shares
the cores.

The verify endpoint is a stand-in (`benchmarks.verify_stand_in`): it does the work that NeMo Gym's does for a rollout,
and is not it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.conversations import Conversation, fresh, played
from benchmarks.fairness import LINES, WHERE, client
from benchmarks.processes import ServerProcess, floor_server, free_port, labs_server, new_keys, running
from benchmarks.report import Table, environment, write
from benchmarks.throughput import STATE_AND_RULE
from reward_server.server.engine import load_reader
from reward_server.settings import load_settings
from scenarios.library import load_library

EPISODES = 64
AT_ONCE = 16
TURNS = 4
BATCH = 100
WORKING = ("labs-scoring", "labs-encoding", "labs-warming")
Json = dict[str, Any]
_numbers = count()


@dataclass(frozen=True)
class Cost:
    """Of one unit of work, in milliseconds."""

    all_ms: float
    outside_ms: float
    wall_ms: float


Costs = dict[str, list[Cost]]
Work = Callable[[], Awaitable[int]]
"""Does something and returns how many units it was."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/http_costs.md")
    arguments = parser.parse_args()
    conversations = fresh(played(load_library(), load_reader(load_settings()), turns=4), BATCH, seed=0)
    with tempfile.TemporaryDirectory() as name:
        key = new_keys(Path(name) / "data", ("acme",))["acme"]
        labs = labs_server(Path(name), command="benchmarks.named_threads")
        floor, verify = floor_server(Path(name)), verify_server(Path(name))
        with running(labs, floor, verify):
            tables = asyncio.run(measure(Servers(labs, floor, verify, key), conversations, arguments.rounds))
    text = "\n\n".join(table.text() for table in tables)
    print(text)
    if arguments.write:
        write("http_costs", f"{environment()}\n\n{text}")


def verify_server(folder: Path) -> ServerProcess:
    """The stand-in for a peer's verify endpoint."""
    port = free_port()
    arguments = ["uvicorn", "benchmarks.verify_stand_in:app", "--port", str(port), "--log-level", "warning"]
    return ServerProcess(arguments, port, "/ping", folder / "verify.log")


@dataclass(frozen=True)
class Servers:
    """What runs."""

    labs: ServerProcess
    floor: ServerProcess
    verify: ServerProcess
    key: str


async def measure(servers: Servers, conversations: list[Conversation], rounds: int) -> list[Table]:
    """All rounds, then the tables."""
    costs: Costs = {}
    async with client(servers.labs, servers.key) as labs, httpx2.AsyncClient(timeout=60.0) as bare:

        async def timed(name: str, server: ServerProcess, work: Work) -> None:
            before, began = cpu_of(server), time.perf_counter()
            units = await work()
            wall = time.perf_counter() - began
            after = cpu_of(server)
            each = [1000 * (b - a) / units for a, b in zip(before, after, strict=True)]
            costs.setdefault(name, []).append(Cost(each[0], each[1], 1000 * wall / units))

        narrow, rollouts = batch_of(conversations), [rollout(each) for each in conversations]
        await settled(labs, servers.labs, narrow)
        for _ in range(rounds):
            await timed("ping", servers.floor, lambda: pings(bare, servers.floor))
            for text in ("seen", "fresh"):
                for way in (singles, batches):
                    episodes = await opened(labs)
                    for number in range(TURNS):
                        lines = lines_of(number, is_fresh=text == "fresh")
                        if number == 0:
                            await way(labs, episodes, lines)  # the first turn of an episode reads the scenario
                        else:
                            await timed(f"{way.__name__}, {text}", servers.labs, bound(way, labs, episodes, lines))
            await timed("pydantic", servers.floor, lambda: floor_batch(bare, servers.floor, narrow))
            await timed("rules", servers.labs, lambda: rule_batch(labs, narrow))
            await timed("verify", servers.verify, lambda: verified(bare, servers.verify, rollouts))
            await timed("evaluate", servers.labs, lambda: evaluated(labs, conversations))
    return [
        turn_table(costs, rounds),
        batch_table(costs, rounds),
        rule_table(costs, rounds),
        verify_table(costs, rounds),
    ]


def bound(way: Callable[..., Awaitable[int]], *arguments: object) -> Work:
    return lambda: way(*arguments)


def cpu_of(server: ServerProcess) -> tuple[float, float]:
    """CPU seconds of all threads, and of those that do not simulate, score or encode."""
    everything = outside = 0.0
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        spent = int((task / "schedstat").read_text().split()[0]) / 1e9
        everything += spent
        if not (task / "comm").read_text().startswith(WORKING):
            outside += spent
    return everything, outside


async def settled(labs: httpx2.AsyncClient, server: ServerProcess, narrow: bytes) -> None:
    """Everything was done once, and the server has encoded its own texts."""
    episodes = await opened(labs)
    await batches(labs, episodes, lines_of(0, is_fresh=False))
    for number in range(1, TURNS):
        await singles(labs, episodes, lines_of(number, is_fresh=False))
    await rule_batch(labs, narrow)
    for _ in range(120):
        before = server.cpu_s()
        await asyncio.sleep(1.0)
        if server.cpu_s() - before < 0.05:
            return


async def pings(bare: httpx2.AsyncClient, floor: ServerProcess) -> int:
    async def some() -> None:
        for _ in range(40):
            (await bare.get(f"{floor.url}/ping")).raise_for_status()

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return 40 * AT_ONCE


async def opened(labs: httpx2.AsyncClient) -> list[str]:
    body = {**WHERE, "count": EPISODES}
    made = (await labs.post("/batch/episodes", json=body)).raise_for_status().json()["episodes"]
    return [each["episode_id"] for each in made]


def lines_of(number: int, *, is_fresh: bool) -> list[str]:
    """What is said in each episode: to all the same, which was said before, or to each its own, which never was."""
    line = LINES[number]
    return [f"{line[:-1]}, case {next(_numbers)}?" if is_fresh else line for _ in range(EPISODES)]


async def singles(labs: httpx2.AsyncClient, episodes: list[str], lines: list[str]) -> int:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(episode: str, line: str) -> None:
        async with places:
            body = {"messages": [{"role": "user", "content": line}]}
            (await labs.post(f"/episodes/{episode}/turns", json=body)).raise_for_status()

    await asyncio.gather(*map(one, episodes, lines))
    return len(episodes)


async def batches(labs: httpx2.AsyncClient, episodes: list[str], lines: list[str]) -> int:
    items = [
        {"episode_id": episode, "messages": [{"role": "user", "content": line}]}
        for episode, line in zip(episodes, lines, strict=True)
    ]
    answer = (await labs.post("/batch/turns", json={"items": items})).raise_for_status().json()
    if any("reward" not in result for result in answer["results"]):
        raise RuntimeError("a turn was not played")
    return len(episodes)


def batch_of(conversations: list[Conversation]) -> bytes:
    items = [{**each.item(number), "reward_config": STATE_AND_RULE} for number, each in enumerate(conversations)]
    return json.dumps({"items": items}).encode()


async def floor_batch(bare: httpx2.AsyncClient, floor: ServerProcess, content: bytes) -> int:
    for _ in range(5):
        (await bare.post(f"{floor.url}/batch/evaluate", content=content)).raise_for_status()
    return 5 * BATCH


async def rule_batch(labs: httpx2.AsyncClient, content: bytes) -> int:
    for _ in range(5):
        headers = {"Content-Type": "application/json"}
        answer = (await labs.post("/batch/evaluate", content=content, headers=headers)).raise_for_status()
        if any(result["status"] != "success" for result in answer.json()["results"]):
            raise RuntimeError("an item was not scored")
    return 5 * BATCH


def rollout(conversation: Conversation) -> Json:
    """The conversation as a dataset row with a model's response."""
    messages = [dict(each) for each in conversation.messages]
    said = [
        {
            "id": f"msg_{number}",
            "type": "message",
            "role": each["role"],
            "status": "completed",
            "content": [{"type": "output_text", "text": each["content"], "annotations": []}],
        }
        for number, each in enumerate(messages)
    ]
    return {
        "task": conversation.scenario,
        "responses_create_params": {"input": messages, "temperature": 1.0, "max_output_tokens": 512, "tools": []},
        "response": {
            "id": "resp_1",
            "object": "response",
            "created_at": 1.0,
            "model": "policy",
            "output": said,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {"input_tokens": 500, "output_tokens": 100, "total_tokens": 600},
        },
    }


async def verified(bare: httpx2.AsyncClient, verify: ServerProcess, rollouts: list[Json]) -> int:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(body: Json) -> None:
        async with places:
            (await bare.post(f"{verify.url}/verify", json=body)).raise_for_status()

    await asyncio.gather(*(one(body) for body in rollouts))
    return len(rollouts)


async def evaluated(labs: httpx2.AsyncClient, conversations: list[Conversation]) -> int:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(conversation: Conversation) -> None:
        async with places:
            body = {k: v for k, v in conversation.item(0).items() if k != "id"}
            (await labs.post("/evaluate", json={**body, "reward_config": STATE_AND_RULE})).raise_for_status()

    await asyncio.gather(*map(one, conversations))
    return len(conversations)


def middle(costs: Costs, name: str) -> Cost:
    """The median of each figure."""
    rows = costs[name]
    return Cost(
        *(statistics.median(getattr(row, field) for row in rows) for field in ("all_ms", "outside_ms", "wall_ms"))
    )


def turn_table(costs: Costs, rounds: int) -> Table:
    table = Table(
        f"a turn of one of {AT_ONCE} episodes at a time, beside a bare ping; median of {rounds} rounds",
        ["", "CPU ms", "of which outside persona and judges", "outside, to a ping"],
    )
    ping = middle(costs, "ping")
    table.add("bare FastAPI ping", f"{ping.all_ms:.2f}", f"{ping.all_ms:.2f}", "1")
    for text in ("seen", "fresh"):
        turn = middle(costs, f"singles, {text}")
        shown = f"{turn.all_ms:.2f}", f"{turn.outside_ms:.2f}", f"{turn.outside_ms / ping.all_ms:.1f}"
        table.add(f"turn, {text} text", *shown)
    return table


def batch_table(costs: Costs, rounds: int) -> Table:
    table = Table(
        f"{EPISODES} turns in one request, beside {EPISODES} requests, {AT_ONCE} at a time; median of {rounds} rounds",
        [
            "",
            "CPU ms a turn",
            "outside persona and judges",
            "wall ms a turn",
            "CPU, times",
            "outside, times",
            "wall, times",
        ],
    )
    for text in ("seen", "fresh"):
        one, many = middle(costs, f"singles, {text}"), middle(costs, f"batches, {text}")
        for name, each in ((f"single turns, {text} text", one), (f"batch, {text} text", many)):
            shown = [f"{figure:.2f}" for figure in (each.all_ms, each.outside_ms, each.wall_ms)]
            times = [one.all_ms / each.all_ms, one.outside_ms / each.outside_ms, one.wall_ms / each.wall_ms]
            table.add(name, *shown, *(f"{figure:.1f}" for figure in times))
    return table


def rule_table(costs: Costs, rounds: int) -> Table:
    table = Table(
        f"/batch/evaluate of {BATCH} conversations that state and rules judge; median of {rounds} rounds",
        ["", "CPU ms a conversation", "outside the rules", "outside, to the floor"],
    )
    floor, rules = middle(costs, "pydantic"), middle(costs, "rules")
    table.add("pydantic in and out", f"{floor.all_ms:.3f}", f"{floor.all_ms:.3f}", "1")
    shown = f"{rules.all_ms:.3f}", f"{rules.outside_ms:.3f}", f"{rules.outside_ms / floor.all_ms:.2f}"
    table.add("Labs, with key, limits and storage", *shown)
    return table


def verify_table(costs: Costs, rounds: int) -> Table:
    table = Table(
        f"a rollout of four exchanges, {AT_ONCE} requests at a time; median of {rounds} rounds",
        ["", "CPU ms a rollout", "to the stand-in", "wall ms a rollout"],
    )
    peer = middle(costs, "verify")
    rows = {
        "stand-in for NeMo Gym's verify: no key, no limits, no storage": peer,
        "Labs, /evaluate, one a request": middle(costs, "evaluate"),
        f"Labs, /batch/evaluate, {BATCH} a request": middle(costs, "rules"),
    }
    for name, each in rows.items():
        table.add(name, f"{each.all_ms:.2f}", f"{each.all_ms / peer.all_ms:.2f}", f"{each.wall_ms:.2f}")
    return table


if __name__ == "__main__":
    main()
