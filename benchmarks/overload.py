"""Turns a second of a server that far more clients ask than it can answer: retries may not eat what it can do.

Usage: python -m benchmarks.overload [--clients 16 400] [--seconds 20] [--write]

Every client plays episodes, one turn after the other, and sends again what is refused: after the time that the server
names (`Retry-After`), or at once, as an impatient client does. Answered turns are counted, requests that are refused
are not. The smallest number of clients is what the others are held against.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2

from benchmarks.kill_under_load import LINES, TURNS, WHERE
from benchmarks.processes import labs_server, running
from benchmarks.report import Table, environment, write

WARM_UP_S = 10.0
IMPATIENT_S = 0.05


@dataclass
class Count:
    """What the clients of one run saw."""

    turns: int = 0
    refused: int = 0
    failed: int = 0
    """Connections that broke, and answers that are neither a turn nor a refusal."""


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[16, 400])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/overload.md")
    arguments = parser.parse_args()
    table = Table(
        "Answered turns under overload",
        ["clients", "send again", "turns/s", "of the fewest clients'", "refused/s", "failed", "p99 of a turn, s"],
    )
    least = 0.0
    with tempfile.TemporaryDirectory() as folder:
        server = labs_server(Path(folder))
        with running(server):
            asyncio.run(load(server.url, 2, WARM_UP_S, patient=True))  # what is said is read for the first time
            for clients in sorted(arguments.clients):
                for patient in (True, False):
                    count, times = asyncio.run(load(server.url, clients, arguments.seconds, patient=patient))
                    speed = count.turns / arguments.seconds
                    least = least or speed
                    table.add(
                        clients,
                        "when told" if patient else "at once",
                        f"{speed:.0f}",
                        f"{speed / least:.2f}" if least else "-",
                        f"{count.refused / arguments.seconds:.0f}",
                        count.failed,
                        f"{quantiles(times, n=100)[98]:.2f}" if len(times) > 1 else "-",
                    )
    print(table.text())
    if arguments.write:
        write("overload", f"{environment()}\n\n{table.text()}")


async def load(url: str, clients: int, seconds: float, *, patient: bool) -> tuple[Count, list[float]]:
    """So many clients at once; counting begins after a warm-up."""
    count, times = Count(), list[float]()
    crew = [asyncio.create_task(_play(url, number, count, times, patient=patient)) for number in range(clients)]
    await asyncio.sleep(WARM_UP_S)
    count.turns = count.refused = count.failed = 0
    times.clear()
    await asyncio.sleep(seconds)
    kept, taken = Count(count.turns, count.refused, count.failed), list(times)
    for each in crew:
        each.cancel()
    await asyncio.gather(*crew, return_exceptions=True)
    return kept, taken


async def _play(url: str, number: int, count: Count, times: list[float], *, patient: bool) -> None:
    async with httpx2.AsyncClient(base_url=url, timeout=30.0) as http:
        episode = 0
        while True:
            episode += 1
            config = {"seed": number * 1000 + episode}
            begun = await _answered(http, "/api/v1/episodes", {**WHERE, "config": config}, count, patient=patient)
            for turn in range(TURNS):
                started = time.monotonic()
                message = {"role": "user", "content": LINES[(turn + number) % len(LINES)]}
                path = f"/api/v1/episodes/{begun['episode_id']}/turns"
                answer = await _answered(http, path, {"messages": [message]}, count, patient=patient)
                count.turns += 1
                times.append(time.monotonic() - started)
                if answer["episode_complete"]:
                    break


async def _answered(
    http: httpx2.AsyncClient, path: str, body: dict[str, Any], count: Count, *, patient: bool
) -> dict[str, Any]:
    """One request, sent until it is answered."""
    while True:
        try:
            answer = await http.post(path, json=body)
        except httpx2.HTTPError:
            count.failed += 1
            await asyncio.sleep(IMPATIENT_S)
            continue
        if answer.status_code == 200:
            given: dict[str, Any] = answer.json()
            return given
        if answer.status_code in (429, 503):
            count.refused += 1
        else:
            count.failed += 1
        await asyncio.sleep(float(answer.headers.get("retry-after", 1)) if patient else IMPATIENT_S)


if __name__ == "__main__":
    main()
