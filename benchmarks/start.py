"""How long a server takes from its start to readiness, and to the first answer of a persona.

Usage: python -m benchmarks.start [--base FOLDER] [--rounds 3] [--write]

A cold start finds an empty data folder, a warm one what the start before left in it (the vectors of authored texts).
Readiness waits for neither: what is missing is encoded in the background, and by the first turn of a scenario.
`--base` is a worktree of another commit, started in turn with this one. CPU is the server's own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx2

from benchmarks.processes import ROOT, ServerProcess, labs_server
from benchmarks.report import Table, environment, write

WHERE = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
WARM_S = 60.0
Start = tuple[float, float, float]
"""Seconds to readiness, CPU seconds until then, seconds of the first turn."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="a worktree of the commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/start.md")
    arguments = parser.parse_args()
    roots = {"this commit": ROOT} | ({"base": arguments.base} if arguments.base else {})
    starts: dict[tuple[str, str], list[Start]] = {}
    for _ in range(arguments.rounds):
        for name, root in roots.items():
            with tempfile.TemporaryDirectory() as folder:
                for kind in ("cold", "warm"):
                    started = start(labs_server(Path(folder), root=root), warms=kind == "cold")
                    starts.setdefault((name, kind), []).append(started)
    table = Table(
        f"from the start of the process, median of {arguments.rounds}",
        ["", "start", "ready after s", "range", "CPU s until ready", "first turn s"],
    )
    for (name, kind), measured in starts.items():
        ready, cpu, turn = (statistics.median(column) for column in zip(*measured, strict=True))
        times = [each[0] for each in measured]
        table.add(name, kind, f"{ready:.1f}", f"{min(times):.1f}-{max(times):.1f}", f"{cpu:.1f}", f"{turn:.2f}")
    print(table.text())
    if arguments.write:
        write("start", f"{environment()}\n\n{table.text()}")


def start(server: ServerProcess, *, warms: bool) -> Start:
    """Start a server, take its times, and stop it; `warms` waits until it has encoded what it will keep."""
    began = time.perf_counter()
    server.start()
    try:
        ready, cpu = time.perf_counter() - began, server.cpu_s()
        turn = first_turn(server)
        if warms:
            settle(server)
        return ready, cpu, turn
    finally:
        server.stop()


def first_turn(server: ServerProcess) -> float:
    """Seconds until a persona has answered."""
    api = server.url + server.prefix
    with httpx2.Client(timeout=120.0) as client:
        episode = client.post(f"{api}/episodes", json=WHERE).raise_for_status().json()["episode_id"]
        said = {"messages": [{"role": "user", "content": "When does it leak?"}]}
        began = time.perf_counter()
        client.post(f"{api}/episodes/{episode}/turns", json=said).raise_for_status()
        return time.perf_counter() - began


def settle(server: ServerProcess) -> None:
    """Wait until the server has nothing left to do."""
    deadline = time.monotonic() + WARM_S
    while time.monotonic() < deadline:
        before = server.cpu_s()
        time.sleep(1.0)
        if server.cpu_s() - before < 0.05:
            return


if __name__ == "__main__":
    main()
