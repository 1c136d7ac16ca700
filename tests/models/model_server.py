"""llama.cpp's own server of a real, small model, as a process: started, frozen, killed, and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2
import pytest

from benchmarks.real_servers import free_port

START_S = 120.0
CONTEXT = 8192
"""Tokens: a rubric, a conversation of some turns and an answer."""


def weights_of(folder: Path) -> Path:
    """The one file of weights in a folder."""
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise pytest.UsageError(f"--models {folder}: needs one *.gguf file, found {len(found)}")
    return found[0]


def program_of(folder: Path) -> str:
    """The server's program, from beside the weights or from the PATH."""
    program = shutil.which("llama-server", path=os.pathsep.join([str(folder), os.environ.get("PATH", "")]))
    if program is None:
        raise pytest.UsageError(f"--models {folder}: llama-server is neither there nor on the PATH")
    return program


class ModelServer:
    """One model, one process, one port that stays the same."""

    def __init__(self, folder: Path, log: Path, *, context: int = CONTEXT, more: tuple[str, ...] = ()) -> None:
        self._port = free_port()
        self._log = log
        self._command = [
            *(program_of(folder), "--model", str(weights_of(folder)), "--host", "127.0.0.1", "--port", str(self._port)),
            *("--ctx-size", str(context), "--parallel", "1", "--threads", str(os.cpu_count() or 1), "--offline"),
            *more,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.name = weights_of(folder).stem
        """What requests and versions call the model."""
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx2.get(f"http://127.0.0.1:{self._port}/health", timeout=5.0).status_code == HTTPStatus.OK:
                    return
            except httpx2.HTTPError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"the model's server did not start: {self._log.read_text(errors='replace')[-2000:]}")

    def freeze(self) -> None:
        """It keeps its connections and says nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.kill()
