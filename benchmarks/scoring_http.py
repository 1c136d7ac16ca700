"""Scoring by a learned model over HTTP: Labs beside sentence-transformers behind a plain FastAPI endpoint.

Usage: python -m benchmarks.scoring_http [--rounds 2] [--write]

Both servers run as one process on the same single core (Linux), this client on the others; rounds are interleaved.
Every conversation is new to both: its sentences were never encoded before. A reward model is trained first, on
conversations labelled by rule: quality does not matter here. "Learned" asks for that model alone, "rubric" for the
whole scoring by rubric that a request without a reward_config gets. Labs takes at most 100 conversations a request,
so its 256 arrive as three requests at once; every figure of Labs includes validation and the durable write.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.conversations import Conversation, fresh, played
from benchmarks.processes import ServerProcess, labs_server, plain_scorer, running
from benchmarks.report import Table, environment, write
from reward_server.encoders.minilm import packaged_folder, read_checkpoint
from reward_server.server.engine import load_reader
from reward_server.settings import load_settings
from scenarios.library import load_library

TURNS = 2
PER_REQUEST = 100
BATCH = 256
LOADS = {1: 12, 16: 48, 64: 96}
"""Requests at each concurrency."""
TRAINED_ON = 60
TRAIN = ("train", "--epochs", "20", "--reads", "words")
"""The plain endpoint reads all words, so this model does, too: one that reads answers alone has half as much to do."""
LEARNED = {
    "composite": {"combine": "weighted_sum", "parts": [{"judge": "reward_model", "weight": 1}]},
    "skip_safety_gate": True,
}

Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What one load on one server cost."""

    rate: float
    cpu_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Door:
    """A server and how it is asked."""

    name: str
    server: ServerProcess
    path: str
    config: Json | None = None

    def requests(self, conversations: Sequence[Conversation]) -> list[tuple[str, bytes]]:
        """Path and body of the requests that hold these conversations."""
        if self.path == "/score":
            return [
                (self.path, json.dumps({"conversations": [list(each.messages) for each in conversations]}).encode())
            ]
        items = [each.item(number) for number, each in enumerate(conversations)]
        if self.config is not None:
            items = [{**item, "reward_config": self.config} for item in items]
        if len(items) == 1:
            return [("/evaluate", json.dumps({k: v for k, v in items[0].items() if k != "id"}).encode())]
        starts = range(0, len(items), PER_REQUEST)
        return [("/batch/evaluate", json.dumps({"items": items[at : at + PER_REQUEST]}).encode()) for at in starts]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/scoring_http.md")
    arguments = parser.parse_args()
    conversations = played(load_library(), load_reader(load_settings()), turns=TURNS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        serve_a_model(folder, conversations)
        labs, plain = labs_server(folder), plain_scorer(folder)
        with the_same_core(), running(labs, plain):
            doors = [
                Door("sentence-transformers, plain endpoint", plain, "/score"),
                Door("Labs, learned", labs, "/evaluate", LEARNED),
                Door("Labs, rubric", labs, "/evaluate"),
            ]
            on_the_others()
            tables = asyncio.run(measured(doors, conversations, arguments.rounds))
    lengths = token_counts(fresh_everywhere(conversations, BATCH, seed=1))
    about = (
        f"Conversations of {TURNS} turns, mean {statistics.mean(lengths):.0f} tokens; {arguments.rounds} rounds; each "
        f"server one process on one core; ratios are to the plain endpoint, round by round: median [range]."
    )
    text = "\n\n".join([about, *(table.text() for table in tables), environment()])
    print(text)
    if arguments.write:
        write("scoring_http", f"# Scoring over HTTP\n\n{text}")


# --- preparation ----------------------------------------------------------------------------------


def serve_a_model(folder: Path, conversations: Sequence[Conversation]) -> None:
    """Train a reward model and let it serve in `folder`."""
    rows = []
    for number, each in enumerate(fresh(list(conversations), TRAINED_ON, seed=5)):
        words = sum(len(m["content"].split()) for m in each.messages if m["role"] == "assistant")
        rows.append({"messages": each.messages, "score": min(1.0, words / 150), "group": f"g{number % 12}"})
    data, model = folder / "rows.jsonl", folder / "model"
    data.write_text("\n".join(json.dumps(row) for row in rows))
    command = [sys.executable, "-m", "reward_server.cli.main", "reward-model"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for arguments in (
        [*TRAIN, str(data), "--out", str(model), "--data", str(folder / "data")],
        ["activate", str(model), "--data", str(folder / "data")],
    ):
        subprocess.run([*command, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)


@contextmanager
def the_same_core() -> Iterator[None]:
    """Whatever is started here runs on one core, and knows it."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def on_the_others() -> None:
    """Let this process use all cores but that one."""
    cores = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)


def fresh_everywhere(conversations: Sequence[Conversation], count: int, seed: int) -> list[Conversation]:
    """Conversations none of whose sentences, of either party, was said before."""
    source = random.Random(seed)
    reworded = fresh(list(conversations), count, seed)

    def vary(message: Json) -> Json:
        if message["role"] == "assistant":
            return message
        return {**message, "content": f"{message['content'].rstrip('.!? ')}, I think, since {source.randrange(10**6)}."}

    return [Conversation(c.collection, c.scenario, tuple(map(vary, c.messages))) for c in reworded]


def token_counts(conversations: Sequence[Conversation]) -> list[int]:
    """Tokens of whole conversations."""
    tokenizer = read_checkpoint(packaged_folder()).tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = ["\n".join(f"{m['role']}: {m['content']}" for m in each.messages) for each in conversations]
    return [len(found.ids) for found in tokenizer.encode_batch(texts)]


# --- measuring ------------------------------------------------------------------------------------


async def measured(doors: Sequence[Door], conversations: Sequence[Conversation], rounds: int) -> list[Table]:
    """All loads, the doors one after the other in each round."""
    seeds = count(100)
    for door in doors:  # not counted: the first time, and for Labs the authored texts of every scenario
        await load(door, fresh_everywhere(conversations, len(conversations), next(seeds)), 4, 1)
    tables = []
    for concurrency, requests in LOADS.items():
        runs: dict[str, list[Run]] = {door.name: [] for door in doors}
        for _ in range(rounds):
            for door in doors:
                chosen = fresh_everywhere(conversations, requests, next(seeds))
                runs[door.name].append(await load(door, chosen, concurrency, 1))
        tables.append(table_of(f"{concurrency} at a time, one conversation a request", runs, latencies=True))
    runs = {door.name: [] for door in doors}
    for _ in range(rounds):
        for door in doors:
            chosen = fresh_everywhere(conversations, BATCH, next(seeds))
            runs[door.name].append(await load(door, chosen, 8, BATCH))
    tables.append(table_of(f"A batch of {BATCH}", runs, latencies=False))
    return tables


async def load(door: Door, conversations: Sequence[Conversation], concurrency: int, at_once: int) -> Run:
    """Send all, `concurrency` requests at a time."""
    groups = [conversations[at : at + at_once] for at in range(0, len(conversations), at_once)]
    waiting = iter([request for group in groups for request in door.requests(group)])
    latencies: list[float] = []
    cpu, started = door.server.cpu_s(), time.perf_counter()
    async with httpx2.AsyncClient(timeout=300.0, limits=httpx2.Limits(max_connections=concurrency)) as client:
        await asyncio.gather(*(send(client, door.server, waiting, latencies) for _ in range(concurrency)))
    elapsed = time.perf_counter() - started
    spent = door.server.cpu_s() - cpu
    ordered = sorted(latencies)
    return Run(
        rate=len(conversations) / elapsed,
        cpu_ms=1000 * spent / len(conversations),
        p50_ms=1000 * ordered[len(ordered) // 2],
        p99_ms=1000 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
    )


async def send(
    client: httpx2.AsyncClient, server: ServerProcess, waiting: Iterator[tuple[str, bytes]], latencies: list[float]
) -> None:
    """One connection's share of the requests."""
    for path, body in waiting:
        started = time.perf_counter()
        answer = await client.post(server.url + server.prefix + path, content=body, headers=JSON)
        answer.raise_for_status()
        latencies.append(time.perf_counter() - started)
        if any(result["status"] != "success" for result in answer.json().get("results", [])):
            raise RuntimeError("an item was not scored")


JSON = {"Content-Type": "application/json"}


def table_of(caption: str, runs: dict[str, list[Run]], *, latencies: bool) -> Table:
    """Medians, and ratios to the first door."""
    head = ["", "conversations/s", "times plain", "CPU ms/conversation", "plain CPU/this"]
    table = Table(caption, [*head, *(["p50 ms", "p99 ms", "plain p99/this"] if latencies else [])])
    [plain, *_] = runs.values()
    for name, found in runs.items():
        cells = [
            f"{statistics.median(run.rate for run in found):.1f}",
            ratio([run.rate / base.rate for run, base in zip(found, plain, strict=True)]),
            f"{statistics.median(run.cpu_ms for run in found):.1f}",
            ratio([base.cpu_ms / max(run.cpu_ms, 1e-9) for run, base in zip(found, plain, strict=True)]),
        ]
        if latencies:
            cells += [
                f"{statistics.median(getattr(run, which) for run in found):.0f}" for which in ("p50_ms", "p99_ms")
            ]
            cells.append(ratio([base.p99_ms / run.p99_ms for run, base in zip(found, plain, strict=True)]))
        table.add(name, *cells)
    return table


def ratio(found: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(found):.2f} [{min(found):.2f}-{max(found):.2f}]"


if __name__ == "__main__":
    main()
