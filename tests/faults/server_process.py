"""The server as a process of its own, with keys for some labs, on the small scenarios of the tests."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import Plan
from reward_server.auth.pepper import load_pepper
from reward_server.auth.scopes import USUAL, Scope
from reward_server.clock import SystemClock
from reward_server.store.migrate import migrate
from reward_server.store.store import Store

ROOT = Path(__file__).parents[2]
COLLECTIONS = ROOT / "tests" / "data" / "collections"
WHERE = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
START_S = 240.0


@dataclass
class ServerProcess:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    url: str
    data: Path
    keys: dict[str, str]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, lab: str, timeout_s: float = 60.0) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self.keys[lab]}"}
        return httpx2.AsyncClient(base_url=f"{self.url}/api/v1", headers=headers, timeout=timeout_s)

    def wait(self) -> int:
        """Until it has ended; its exit code."""
        return self.process.wait(timeout=START_S)

    def rss_mb(self) -> float:
        """Memory that it holds at this moment."""
        [line] = [
            each for each in Path(f"/proc/{self.pid}/status").read_text().splitlines() if each.startswith("VmRSS")
        ]
        return int(line.split()[1]) / 1000


@contextmanager
def server_process(
    folder: Path,
    *,
    keys: tuple[str, ...],
    plan: Plan = Plan.CUSTOM,
    scopes: frozenset[Scope] = USUAL,
    **environment: str,
) -> Iterator[ServerProcess]:
    """Start one, wait for it, and kill it in the end if it still runs; `plan` and `scopes` are those of all keys."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    texts = asyncio.run(_made(data, keys, plan, scopes)) if not _in_loop() else _in_thread(data, keys, plan, scopes)
    variables = {
        **os.environ,
        "LABS_SCENARIOS": str(COLLECTIONS),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        **environment,
    }
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "reward_server.cli.main", "serve", "--port", "0", "--data", str(data)],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            yield ServerProcess(process, _announced(process), data, texts)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(data: Path, labs: tuple[str, ...], plan: Plan, scopes: frozenset[Scope]) -> dict[str, str]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_made(data, labs, plan, scopes))).result()


async def _made(data: Path, labs: tuple[str, ...], plan: Plan, scopes: frozenset[Scope]) -> dict[str, str]:
    """A key for each lab."""
    url = f"sqlite:///{data / 'labs.sqlite'}"
    await migrate(url)
    store = await Store.open(url)
    try:
        ring = KeyRing(store, SystemClock(), load_pepper(data))
        rate = 100_000 if plan is Plan.CUSTOM else None
        made = {lab: await ring.create(lab, plan=plan, rate_per_minute=rate, scopes=scopes) for lab in labs}
        return {lab: key.text for lab, key in made.items()}
    finally:
        await store.close()


def _announced(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(rb"http://127\.0\.0\.1:\d+", line)
        if found:
            return found[0].decode()
    raise AssertionError("the server ended before it was ready")
