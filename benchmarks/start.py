"""How long a server takes from its start to readiness and to the first answer of a persona; and how long until a
standby answers when the server before it was killed.

Usage: python -m benchmarks.start [--base FOLDER] [--rounds 3] [--write]

A cold start finds an empty data folder, a warm one what the start before left in it (the vectors of authored texts).
Readiness waits for neither: what is missing is encoded in the background, and by the first turn of a scenario.
`--base` is a worktree of another commit, started in turn with this one. CPU is the server's own.

A standby (`labs serve --standby`) is started beside a warm server in the middle of an episode. That server is killed,
and a turn of the episode, with a key, is sent again and again until it is answered.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import httpx2

from benchmarks.processes import ROOT, ServerProcess, labs_server, new_keys, running
from benchmarks.report import Table, environment, write

WHERE = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
WARM_S = 60.0
AGAIN_S = 0.01
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
    relieved = [takeover() for _ in range(arguments.rounds)]
    table = Table(
        f"from the start of the process, median of {arguments.rounds}",
        ["", "start", "ready after s", "range", "CPU s until ready", "first turn s"],
    )
    for (name, kind), measured in starts.items():
        ready, cpu, turn = (statistics.median(column) for column in zip(*measured, strict=True))
        times = [each[0] for each in measured]
        table.add(name, kind, f"{ready:.1f}", f"{min(times):.1f}-{max(times):.1f}", f"{cpu:.1f}", f"{turn:.2f}")
    standby = Table(
        f"a standby, from `kill -9` of the server before it, median of {arguments.rounds}",
        ["", "a turn is answered after s", "range"],
    )
    standby.add("this commit", f"{statistics.median(relieved):.2f}", f"{min(relieved):.2f}-{max(relieved):.2f}")
    text = f"{table.text()}\n\n{standby.text()}"
    print(text)
    if arguments.write:
        write("start", f"{environment()}\n\n{text}")


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


def takeover() -> float:
    """Seconds from the end of a server until its standby has answered a turn with a key."""
    with tempfile.TemporaryDirectory() as name:
        key = new_keys(Path(name) / "data", ("acme",))["acme"]
        first = labs_server(Path(name))
        with running(first), first.standby(Path(name) / "standby.log") as standby:
            api, headers = first.url + first.prefix, {"Authorization": f"Bearer {key}"}
            with httpx2.Client(timeout=120.0, headers=headers) as client:
                made = client.post(f"{api}/episodes", json=WHERE).raise_for_status().json()["episode_id"]
                settle(standby)
                first.kill()
                began = time.perf_counter()
                said = {"messages": [{"role": "user", "content": "When does it leak?"}]}
                while not answered(client, f"{api}/episodes/{made}/turns", said):
                    time.sleep(AGAIN_S)
                return time.perf_counter() - began


def answered(client: httpx2.Client, url: str, body: Mapping[str, object]) -> bool:
    """True if somebody is there and does it."""
    try:
        return client.post(url, json=body).status_code == HTTPStatus.OK
    except httpx2.HTTPError:
        return False


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
