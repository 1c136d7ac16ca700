"""The server as a process on one port, which can be stopped and started again on the same data."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx2

ROOT = Path(__file__).parents[2]
START_S = 240.0


class LiveServer:
    """Without keys, on loopback, with the packaged scenarios."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        command = ["serve", "--port", str(self.port), "--data", str(self._folder)]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "reward_server.cli.main", *command], env=variables, stdout=log, stderr=log
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        """Until it answers."""
        until = time.monotonic() + START_S
        while True:
            try:
                if httpx2.get(f"{self.url}/healthz", trust_env=False).status_code == 200:
                    return
            except httpx2.HTTPError:
                pass
            if time.monotonic() > until:
                raise TimeoutError((self._folder / "server.log").read_text()[-2000:])
            time.sleep(0.2)
