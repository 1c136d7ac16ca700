"""Twenty minutes of everything with text that nobody has said before: does anything grow that should not?

Usage: python -m benchmarks.mixed_load [--minutes 20] [--texts N] [--write]

One server process with a metrics page. At any time there are four episodes in play, an evaluation, a batch of eight, a
comparison, and a WebSocket that plays and is closed again; every text is new. Each half minute memory, file handles,
threads, tasks of the event loop, what caches hold, and answers so far are noted. The first third is the warm-up, in
which caches fill. After it the slope of a straight line through the notes is printed, per minute.

With `--texts N` the same N lines and conversations are said over and over: nothing new is encoded after the warm-up,
and only caches of what was played go on filling.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from statistics import linear_regression
from typing import Any

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect

from benchmarks.fairness import LINES, WHERE, client, fresh
from benchmarks.processes import ServerProcess, labs_server, new_keys, one_collection, running
from benchmarks.report import Table, environment, write

NOTE_EVERY_S = 30.0
WARM_UP = 1 / 3
EPISODES = 4
GROWN = {
    "memory, MB": "process_resident_memory_bytes",
    "file handles": "process_open_fds",
    "event loop tasks": "labs_loop_tasks",
    "caches, MB": "labs_cache_bytes",
}
IN_MB = ("memory, MB", "caches, MB")

Json = dict[str, Any]
_numbers = count()


class Texts:
    """What is said: something new each time, or one of a number of texts that were said before."""

    def __init__(self) -> None:
        self.most: int | None = None
        self._kept: dict[int, list[Json]] = {}

    def pick(self, make: Callable[[], list[Json]], kind: int) -> list[Json]:
        """Messages of a kind."""
        if self.most is None:
            return make()
        key = 2 * (next(_numbers) % self.most) + kind
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


texts = Texts()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--texts", type=int, help="say this many texts over and over; default: new ones")
    parser.add_argument(
        "--write",
        action="store_true",
        help="also write benchmarks/results/mixed_load.md, or with --texts benchmarks/results/mixed_load_again.md",
    )
    arguments = parser.parse_args()
    texts.most = arguments.texts
    with tempfile.TemporaryDirectory() as name:
        keys = new_keys(Path(name) / "data", ("acme",))
        scenarios = one_collection(Path(name), WHERE["collection_slug"])
        server = labs_server(Path(name), LABS_SCENARIOS=str(scenarios))
        with running(server):
            text = asyncio.run(measure(server, keys["acme"], arguments.minutes)).text()
    print(text)
    if arguments.write:
        write("mixed_load_again" if arguments.texts else "mixed_load", f"{environment()}\n\n{text}")


async def measure(server: ServerProcess, key: str, minutes: float) -> Table:
    """All kinds of load at once, and what is noted of the server meanwhile."""
    notes: list[tuple[float, dict[str, float]]] = []
    answers = 0
    async with client(server, key) as http:

        async def on_and_on(work: Callable[[], Awaitable[int]]) -> None:
            nonlocal answers
            while True:
                answers += await work()

        work: list[Callable[[], Awaitable[int]]] = [lambda: episode(http)] * EPISODES
        work += [lambda: evaluation(http), lambda: batch(http), lambda: comparison(http)]
        work += [lambda: over_a_socket(server, key)]
        loads = [asyncio.create_task(on_and_on(each)) for each in work]
        began = time.monotonic()
        while (minute := (time.monotonic() - began) / 60) < minutes:
            await asyncio.sleep(min(NOTE_EVERY_S, minutes * 60 / 12))
            for each in loads:
                if each.done():
                    each.result()
            notes.append((minute, await looked_at(http, server)))
        for each in loads:
            each.cancel()
        await asyncio.gather(*loads, return_exceptions=True)
    return table_of(notes, minutes, answers)


def table_of(notes: list[tuple[float, dict[str, float]]], minutes: float, answers: int) -> Table:
    """First and last note, and the slope after the warm-up."""
    said = f"{texts.most} texts said again and again" if texts.most else "fresh text"
    caption = f"{minutes:g} minutes of mixed load with {said}, {answers} answers; the first third is the warm-up"
    table = Table(caption, ["", "at the start", "after the warm-up", "at the end", "a minute, after the warm-up"])
    warm = [note for note in notes if note[0] >= minutes * WARM_UP]
    for name in notes[0][1]:
        slope = linear_regression([at for at, _ in warm], [seen[name] for _, seen in warm]).slope
        shown = [f"{seen[name]:.0f}" for seen in (notes[0][1], warm[0][1], warm[-1][1])]
        table.add(name, *shown, f"{slope:+.2f}")
    return table


async def looked_at(http: httpx2.AsyncClient, server: ServerProcess) -> dict[str, float]:
    """What the metrics page and the system say of the server."""
    page = (await http.get(f"{server.url}/metrics")).raise_for_status().text
    families = {family.name: family for family in text_string_to_metric_families(page)}
    seen = {name: sum(sample.value for sample in families[metric].samples) for name, metric in GROWN.items()}
    for name in IN_MB:
        seen[name] /= 1_000_000
    return seen | {"threads": threads_of(server)}


def threads_of(server: ServerProcess) -> float:
    return float(len(list(Path(f"/proc/{server.pid}/task").iterdir())))


def talk() -> list[Json]:
    """A conversation of three exchanges."""
    return texts.pick(new_talk, 0)


def new_talk() -> list[Json]:
    return [{"role": "user" if i % 2 else "assistant", "content": fresh(160)} for i in range(6)]


def line(text: str) -> list[Json]:
    """A turn."""
    return texts.pick(lambda: new_line(text), 1)


def new_line(text: str) -> list[Json]:
    return [{"role": "user", "content": f"{text[:-1]}, {fresh(40)} {next(_numbers)}?"}]


async def episode(http: httpx2.AsyncClient) -> int:
    made = (await http.post("/episodes", json=WHERE)).raise_for_status().json()["episode_id"]
    for number, text in enumerate(LINES):
        played = await http.post(f"/episodes/{made}/turns", json={"messages": line(text)})
        if played.raise_for_status().json()["episode_complete"]:
            return number + 2
    return len(LINES) + 1


async def evaluation(http: httpx2.AsyncClient) -> int:
    (await http.post("/evaluate", json={**WHERE, "messages": talk()})).raise_for_status()
    return 1


async def batch(http: httpx2.AsyncClient) -> int:
    items = [{**WHERE, "id": str(number), "messages": talk()} for number in range(8)]
    (await http.post("/batch/evaluate", json={"items": items})).raise_for_status()
    return 1


async def comparison(http: httpx2.AsyncClient) -> int:
    sides = {"response_a": {"messages": talk()}, "response_b": {"messages": talk()}}
    (await http.post("/compare", json={**WHERE, **sides})).raise_for_status()
    return 1


async def over_a_socket(server: ServerProcess, key: str) -> int:
    where = f"ws{server.url.removeprefix('http')}{server.prefix}/episodes/ws"
    async with connect(where, additional_headers={"Authorization": f"Bearer {key}"}, compression=None) as ws:
        await ws.send(json.dumps({"op": "create", **WHERE}))
        made = json.loads(await ws.recv())["episode_id"]
        for text in LINES[:3]:
            await ws.send(json.dumps({"op": "turn", "episode_id": made, "messages": line(text)}))
            await ws.recv()
    return 4


if __name__ == "__main__":
    main()
