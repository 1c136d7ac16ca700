"""What one key at its maximum does to the turns of another lab.

Usage: python -m benchmarks.fairness [--rounds 4] [--seconds 15] [--write]

One server process. A lab plays episodes with fresh text, one at a time and then eight at a time; first alone, then
beside a key without limits of rate that always has four evaluations and two batches in work, each as large as may be
(250,000 characters a conversation, 1,000,000 a request, all of it new to the encoder). Rounds alone and beside take
turns. The p99 of the lab's turns is over all rounds of a kind; the goal is at most three times as long beside the
greedy key as alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import httpx2

from benchmarks.processes import ROOT, ServerProcess, labs_server, new_keys, one_collection, running
from benchmarks.report import Table, environment, write

GOAL = 3.0
WHERE = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
LINES = (
    "I'm sorry to hear that. What is the problem with the blender?",
    "When does it leak?",
    "Is there a batch or serial number on the base?",
    "That must be annoying. How do you clean it?",
    "Has it been dropped?",
    "What would be a good solution for you?",
)
WORDS = (ROOT / "docs" / "concepts.md").read_text().split()
MESSAGES, LONG, SHORT = 48, 9_900, 100
EVALUATIONS, BATCHES, CONVERSATIONS = 4, 2, 4

_numbers = count()


def main() -> None:
    """Measure, print, and fail if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0, help="of one round")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/fairness.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        keys = new_keys(Path(name) / "data", ("greedy", "modest"))
        scenarios = one_collection(Path(name), WHERE["collection_slug"])
        server = labs_server(Path(name), LABS_SCENARIOS=str(scenarios))
        with running(server):
            text = asyncio.run(measure(server, keys, arguments.rounds, arguments.seconds)).text()
    print(text)
    if arguments.write:
        write("fairness", f"{environment()}\n\n{text}")


async def measure(server: ServerProcess, keys: dict[str, str], rounds: int, seconds: float) -> Table:
    """Rounds in turn: one lab alone, and beside the greedy key."""
    table = Table(
        f"Turns of one lab, alone and beside a key that always has {EVALUATIONS} evaluations and {BATCHES} batches of "
        f"the largest size in work; {rounds} rounds of {seconds:g} s each",
        ["episodes at a time", "", "turns", "p50 ms", "p95 ms", "p99 ms", "p99 to alone"],
    )
    async with client(server, keys["modest"]) as modest, client(server, keys["greedy"]) as greedy:
        for episodes in (1, 8):
            await played(modest, episodes, min(seconds, 5.0))
            await idle(server)
            taken: dict[str, list[float]] = {"alone": [], "beside the greedy key": []}
            for _ in range(rounds):
                taken["alone"] += await played(modest, episodes, seconds)
                async with at_its_maximum(greedy):
                    taken["beside the greedy key"] += await played(modest, episodes, seconds)
                await idle(server)
            alone = quantile(taken["alone"], 0.99)
            for name, times in taken.items():
                shown = [f"{1000 * quantile(times, share):.0f}" for share in (0.5, 0.95, 0.99)]
                table.add(episodes, name, len(times), *shown, f"{quantile(times, 0.99) / alone:.2f}")
    return table


def client(server: ServerProcess, key: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=server.url + server.prefix, headers={"Authorization": f"Bearer {key}"}, timeout=600.0
    )


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


async def played(http: httpx2.AsyncClient, episodes: int, seconds: float) -> list[float]:
    """Seconds of each turn that began within so many seconds."""
    taken: list[float] = []
    ends = time.perf_counter() + seconds

    async def play() -> None:
        while time.perf_counter() < ends:
            episode = (await http.post("/episodes", json=WHERE)).raise_for_status().json()["episode_id"]
            for line in LINES:
                message = {"role": "user", "content": f"{line[:-1]}, case {next(_numbers)}?"}
                began = time.perf_counter()
                answer = await http.post(f"/episodes/{episode}/turns", json={"messages": [message]})
                taken.append(time.perf_counter() - began)
                if answer.raise_for_status().json()["episode_complete"] or time.perf_counter() > ends:
                    break

    await asyncio.gather(*(play() for _ in range(episodes)))
    return taken


@asynccontextmanager
async def at_its_maximum(http: httpx2.AsyncClient) -> AsyncIterator[None]:
    """As long as this lasts there always is so much work of that key; what is left of it at the end is given up."""

    async def ask(door: str, conversations: int) -> None:
        while True:
            body = [{**WHERE, "id": str(i), "messages": conversation()} for i in range(conversations)]
            content = json.dumps({"items": body} if conversations > 1 else {**WHERE, "messages": body[0]["messages"]})
            answer = await http.post(door, content=content, headers={"Content-Type": "application/json"})
            # Its own deadline may pass: that is what it gets for asking so much.
            if answer.status_code not in (200, 503):
                raise RuntimeError(answer.text[:300])

    asking = [asyncio.create_task(ask("/evaluate", 1)) for _ in range(EVALUATIONS)]
    asking += [asyncio.create_task(ask("/batch/evaluate", CONVERSATIONS)) for _ in range(BATCHES)]
    await asyncio.sleep(2.0)
    try:
        yield
        for task in asking:
            if task.done():
                task.result()
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


def conversation() -> list[dict[str, str]]:
    """As long as one may be, of words that nobody has seen in this order."""
    return [
        {"role": "user" if i % 2 else "assistant", "content": fresh(SHORT if i % 2 else LONG)} for i in range(MESSAGES)
    ]


def fresh(characters: int) -> str:
    n = next(_numbers)
    words = [WORDS[(n * 7919 + i * 31) % len(WORDS)] + ("." if i % 9 == 8 else "") for i in range(characters // 4)]
    return " ".join([f"Number {n}.", *words])[:characters]


async def idle(server: ServerProcess) -> None:
    """Until the server has nothing left to do: what was given up has ended, and what it warms is warm."""
    async with asyncio.timeout(300.0):
        quiet = 0
        while quiet < 3:
            used = server.cpu_s()
            await asyncio.sleep(1.0)
            quiet = quiet + 1 if server.cpu_s() - used < 0.05 else 0


if __name__ == "__main__":
    main()
