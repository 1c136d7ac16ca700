"""Servers as processes of their own: started on a free port, waited for, measured, stopped, or killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import httpx2

from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import Plan
from reward_server.auth.pepper import load_pepper
from reward_server.auth.scopes import USUAL, Scope
from reward_server.clock import SystemClock
from reward_server.store.engine import sqlite_url
from reward_server.store.migrate import migrate
from reward_server.store.store import Store

ROOT = Path(__file__).resolve().parent.parent
START_S = 240.0
UNLIMITED = 100_000
"""Requests a minute of keys made here."""


def free_port() -> int:
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ServerProcess:
    """One server process."""

    def __init__(
        self,
        arguments: Sequence[str],
        port: int,
        ready: str,
        log: Path,
        prefix: str = "",
        root: Path = ROOT,
        **variables: str,
    ) -> None:
        self.prefix = prefix
        self._variables = variables
        self._root = root
        self.url = f"http://127.0.0.1:{port}"
        self._arguments = [sys.executable, "-m", *arguments]
        self._ready = ready
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._start()
        self._wait(self._is_ready)

    def _start(self) -> None:
        paths = os.pathsep.join(filter(None, (str(self._root), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"}
        environment |= self._variables
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._arguments, stdout=log, stderr=log, env=environment, cwd=self._root)

    @contextmanager
    def standby(self, log: Path) -> Iterator[ServerProcess]:
        """A second one with the same arguments that has loaded everything and waits; stopped in the end."""
        waiting = ServerProcess((), 0, self._ready, log, self.prefix, self._root, **self._variables)
        waiting.url = self.url
        waiting._arguments = [*self._arguments, "--standby"]
        try:
            waiting._start()
            waiting._wait(lambda: b"stands by" in log.read_bytes())
            yield waiting
        finally:
            waiting.stop()

    def _is_ready(self) -> bool:
        try:
            return httpx2.get(self.url + self._ready, timeout=5.0).status_code == HTTPStatus.OK
        except httpx2.HTTPError:
            return False

    def _wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"the server stopped: {self._log.read_text(errors='replace')[-2000:]}")
            if done():
                return
            time.sleep(0.05)
        raise RuntimeError("the server did not become ready")

    @property
    def pid(self) -> int:
        """Of the running process."""
        if self._process is None:
            raise RuntimeError("not started")
        return self._process.pid

    def cpu_s(self) -> float:
        """User and system time used so far, in seconds (10 ms ticks)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)


def labs_server(
    folder: Path,
    port: int | None = None,
    root: Path = ROOT,
    command: str = "reward_server.cli.main",
    **variables: str,
) -> ServerProcess:
    """A Labs server with its data in `folder`; the same port when it is started again; `root` holds its code."""
    port = port or free_port()
    arguments = [command, "serve", "--port", str(port), "--data", str(folder / "data")]
    arguments += ["--log-level", "warning"]
    return ServerProcess(arguments, port, "/readyz", folder / "labs.log", "/api/v1", root, **variables)


def new_keys(data: Path, labs: Sequence[str], scopes: Iterable[Scope] = USUAL) -> dict[str, str]:
    """A key without limits for each lab of a server that will have its data in `data`."""
    data.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_new_keys(data, labs, scopes))


async def _new_keys(data: Path, labs: Sequence[str], scopes: Iterable[Scope]) -> dict[str, str]:
    url = sqlite_url(data / "labs.sqlite")
    await migrate(url)
    store = await Store.open(url)
    try:
        ring = KeyRing(store, SystemClock(), load_pepper(data))
        made = [await ring.create(lab, plan=Plan.CUSTOM, rate_per_minute=UNLIMITED, scopes=scopes) for lab in labs]
        return {lab: key.text for lab, key in zip(labs, made, strict=True)}
    finally:
        await store.close()


def one_collection(folder: Path, name: str) -> Path:
    """A folder of collections with a packaged one alone: a server is warm the sooner."""
    shutil.copytree(ROOT / "scenarios" / "collections" / name, folder / "collections" / name)
    return folder / "collections"


def floor_server(folder: Path) -> ServerProcess:
    """The bare FastAPI endpoint that figures are compared with."""
    port = free_port()
    arguments = ["uvicorn", "benchmarks.floor:app", "--port", str(port), "--log-level", "warning"]
    return ServerProcess(arguments, port, "/ping", folder / "floor.log")


def plain_scorer(folder: Path) -> ServerProcess:
    """Sentence-transformers behind a plain endpoint."""
    port = free_port()
    arguments = ["uvicorn", "benchmarks.plain_scorer:app", "--port", str(port), "--log-level", "warning"]
    return ServerProcess(arguments, port, "/ping", folder / "plain.log")


@contextmanager
def running(*servers: ServerProcess) -> Iterator[None]:
    """All servers started, and stopped in the end."""
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.stop()
