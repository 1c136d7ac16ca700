"""Batch scoring and turn latency, next to a bare FastAPI endpoint measured in the same run.

Usage: python -m benchmarks.throughput [--rounds 3] [--write]

Both servers run as single processes with one numeric thread; this client shares their cores. Rounds are
interleaved (floor, Labs, floor, Labs, …) and the median with the range is printed. "fresh" conversations hold no
sentence the encoder has seen, "seen" ones are all in its cache (a group of rollouts of one scenario lies
between the two). Every Labs figure includes validation, scoring, the durable write and serialisation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2

from benchmarks.conversations import Conversation, fresh, played
from benchmarks.processes import ServerProcess, floor_server, labs_server, running
from benchmarks.report import Table, environment, write
from reward_server.server.engine import load_reader
from reward_server.settings import load_settings
from scenarios.library import load_library

BATCH = 100
TURNS = 8
STATE_AND_RULE = {
    "quality_weights": {
        "success_metrics": 1,
        "failure_metrics": 1,
        "best_practices": 1,
        "discovery": 1,
        "decision_match": 1,
    }
}


Play = Callable[[httpx2.AsyncClient, ServerProcess, int, list[float]], Awaitable[None]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/throughput.md")
    arguments = parser.parse_args()
    conversations = played(load_library(), load_reader(load_settings()), turns=TURNS)
    with tempfile.TemporaryDirectory() as name:
        labs, floor = labs_server(Path(name)), floor_server(Path(name))
        with running(labs, floor):
            tables = [
                batch_table(labs, floor, conversations, arguments.rounds),
                asyncio.run(turn_table(labs, floor, arguments.rounds)),
            ]
    text = "\n\n".join(table.text() for table in tables)
    print(text)
    if arguments.write:
        write("throughput", f"{environment()}\n\n{text}")


def batch_table(labs: ServerProcess, floor: ServerProcess, conversations: list[Conversation], rounds: int) -> Table:
    """Conversations per second through /batch/evaluate."""
    seen = fresh(conversations, BATCH, seed=0)
    cases: dict[str, Callable[[int], tuple[list[Conversation], bool]]] = {
        "state and rule, seen": lambda _: (seen, True),
        "all families, seen": lambda _: (seen, False),
        "state and rule, fresh": lambda n: (fresh(conversations, BATCH, seed=1000 + n), True),
        "all families, fresh": lambda n: (fresh(conversations, BATCH, seed=2000 + n), False),
    }
    with httpx2.Client(timeout=300.0) as client:
        post(client, labs, body(seen, narrow=True))
        post(client, labs, body(seen, narrow=False))
        base: list[float] = []
        rates: dict[str, list[float]] = {case: [] for case in cases}
        cpu: dict[str, list[float]] = {case: [] for case in cases}
        for n in range(rounds):
            base.append(timed(client, floor, body(seen, narrow=False))[0])
            for case, make in cases.items():
                chosen, narrow = make(n)
                rate, cost = timed(client, labs, body(chosen, narrow=narrow))
                rates[case].append(rate)
                cpu[case].append(cost)
    table = Table(
        f"/batch/evaluate, {BATCH} conversations of {TURNS} turns a request, one connection",
        ["", "conversations/s", "range", "CPU ms/conversation", "floor/Labs"],
    )
    floor_rate = statistics.median(base)
    table.add("bare FastAPI endpoint", f"{floor_rate:.0f}", spread(base), "-", "1")
    for case in cases:
        rate = statistics.median(rates[case])
        cost = statistics.median(cpu[case])
        table.add(case, f"{rate:.0f}", spread(rates[case]), f"{cost:.2f}", f"{floor_rate / rate:.1f}")
    return table


def body(conversations: list[Conversation], *, narrow: bool) -> bytes:
    """A batch request."""
    items = [conversation.item(i) for i, conversation in enumerate(conversations)]
    if narrow:
        items = [{**item, "reward_config": STATE_AND_RULE} for item in items]
    return json.dumps({"items": items}).encode()


def post(client: httpx2.Client, server: ServerProcess, content: bytes) -> None:
    """One batch; every item has to be scored."""
    answer = client.post(
        server.url + server.prefix + "/batch/evaluate", content=content, headers={"Content-Type": "application/json"}
    )
    answer.raise_for_status()
    if any(result["status"] != "success" for result in answer.json()["results"]):
        raise RuntimeError("an item was not scored")


def timed(client: httpx2.Client, server: ServerProcess, content: bytes) -> tuple[float, float]:
    """Conversations per second and server CPU milliseconds per conversation."""
    cpu, started = server.cpu_s(), time.perf_counter()
    post(client, server, content)
    elapsed = time.perf_counter() - started
    return BATCH / elapsed, (server.cpu_s() - cpu) / BATCH * 1000


async def turn_table(labs: ServerProcess, floor: ServerProcess, rounds: int) -> Table:
    """Milliseconds per turn of an episode."""
    table = Table(
        "POST /episodes/{id}/turns, 6 turns an episode, every turn durable before it is answered",
        ["", "concurrency", "turns/s", "p50 ms", "p99 ms", "CPU ms/turn", "CPU ratio to floor"],
    )
    for concurrency in (1, 16):
        measured: dict[str, list[tuple[float, list[float], float]]] = {"floor": [], "labs": []}
        for n in range(rounds):
            measured["floor"].append(await load(floor, concurrency, n, play_floor))
            measured["labs"].append(await load(labs, concurrency, n, play_labs))
        costs = {name: statistics.median(cost for _, _, cost in runs) for name, runs in measured.items()}
        for name, label in (("floor", "bare FastAPI endpoint"), ("labs", "Labs")):
            times = sorted(t for _, run, _ in measured[name] for t in run)
            rate = statistics.median(rate for rate, _, _ in measured[name])
            ratio = costs[name] / costs["floor"] if costs["floor"] else float("nan")
            p50, p99 = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
            table.add(
                label, concurrency, f"{rate:.0f}", f"{p50:.1f}", f"{p99:.1f}", f"{costs[name]:.2f}", f"{ratio:.1f}"
            )
    return table


LINES = (
    "I'm sorry to hear that. What is the problem with the blender?",
    "When does it leak?",
    "Is there a batch or serial number on the base?",
    "That must be annoying. How do you clean it?",
    "Has it been dropped?",
    "What would be a good solution for you?",
)


async def load(server: ServerProcess, concurrency: int, seed: int, play: Play) -> tuple[float, list[float], float]:
    """Turns per second, seconds per turn, server CPU milliseconds per turn."""
    times: list[float] = []
    async with httpx2.AsyncClient(timeout=60.0) as client:
        await play(client, server, seed, [])
        cpu, started = server.cpu_s(), time.perf_counter()
        episodes = 8 if concurrency == 1 else 3

        async def work(worker: int) -> None:
            for n in range(episodes):
                await play(client, server, seed * 1000 + worker * 10 + n, times)

        await asyncio.gather(*(work(worker) for worker in range(concurrency)))
        elapsed = time.perf_counter() - started
    return len(times) / elapsed, times, (server.cpu_s() - cpu) / len(times) * 1000


async def play_labs(client: httpx2.AsyncClient, server: ServerProcess, seed: int, times: list[float]) -> None:
    """One episode; sentences carry a number so that the encoder has not seen them."""
    api = server.url + "/api/v1"
    where = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender", "config": {"seed": seed}}
    episode = (await client.post(f"{api}/episodes", json=where)).raise_for_status().json()["episode_id"]
    for n, line in enumerate(LINES):
        message = {"role": "user", "content": f"{line[:-1]}, case {seed}-{n}?"}
        started = time.perf_counter()
        answer = await client.post(f"{api}/episodes/{episode}/turns", json={"messages": [message]})
        times.append(time.perf_counter() - started)
        if answer.raise_for_status().json()["episode_complete"]:
            return


async def play_floor(client: httpx2.AsyncClient, server: ServerProcess, seed: int, times: list[float]) -> None:
    """The same requests to the bare endpoint."""
    for n, line in enumerate(LINES):
        message = {"role": "user", "content": f"{line[:-1]}, case {seed}-{n}?"}
        started = time.perf_counter()
        (await client.post(f"{server.url}/turns", json={"messages": [message]})).raise_for_status()
        times.append(time.perf_counter() - started)


def spread(values: list[float]) -> str:
    """`low-high`."""
    return f"{min(values):.0f}-{max(values):.0f}"


if __name__ == "__main__":
    main()
