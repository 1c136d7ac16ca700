"""The process between server and learner, with a learner that only waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reward_server.training import guardian
from tests.faults.server_process import ROOT

LEARNER = """
import os, signal, sys, time
print(os.getpid(), *sys.argv[1:], flush=True)
def hear(*_):
    print("interrupted", flush=True)
    sys.exit(130)
signal.signal(signal.SIGINT, hear)
if "fail" in sys.argv:
    print("learner: no", file=sys.stderr)
    sys.exit(2)
if "killed" in sys.argv:
    os.kill(os.getpid(), 9)
time.sleep(600)
"""
WAIT_S = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "learner.py").write_text(LEARNER)
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "reward_server.training.guardian", str(folder), *arguments],
        stdin=subprocess.PIPE,
        cwd=folder.parent,  # where a module of this name is found first
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


@pytest.fixture
def guarded(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with started(folder, "train", "x.toml") as process:  # which closes its input, and so ends it
        soon(lambda: "x.toml" in log(folder))
        yield process


def log(folder: Path) -> str:
    path = folder / "learner.log"
    return path.read_text() if path.exists() else ""


def soon(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """A process that has ended and was not asked about yet does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_byte_is_an_interrupt_and_the_status_is_the_learners(guarded: subprocess.Popen[bytes], folder: Path) -> None:
    assert guarded.stdin is not None
    guarded.stdin.write(b"\n")
    guarded.stdin.flush()
    assert guarded.wait(WAIT_S) == 130
    assert log(folder).splitlines()[1:] == ["interrupted"]


def test_the_learner_ends_with_whoever_started_its_guardian(guarded: subprocess.Popen[bytes], folder: Path) -> None:
    learner = int(log(folder).split()[0])
    assert runs(learner)
    assert guarded.stdin is not None
    guarded.stdin.close()
    assert guarded.wait(WAIT_S) == -signal.SIGKILL
    soon(lambda: not runs(learner))


def test_a_folder_is_held_until_the_learner_has_ended_too(
    guarded: subprocess.Popen[bytes], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian, "WAIT_S", 0.1)
    assert guardian.main(folder, ["train"]) == guardian.BUSY
    learner = int(log(folder).split()[0])
    guarded.kill()
    guarded.wait()
    assert runs(learner)
    assert guardian.main(folder, ["train"]) == guardian.BUSY
    os.kill(learner, signal.SIGKILL)
    soon(lambda: not runs(learner))
    monkeypatch.undo()
    with started(folder, "fail") as other:
        assert other.wait(WAIT_S) == 2


@pytest.mark.parametrize(("how", "status"), [("fail", 2), ("killed", 128 + signal.SIGKILL)])
def test_how_the_learner_ended_is_told(folder: Path, how: str, status: int) -> None:
    with started(folder, how) as process:
        assert process.wait(WAIT_S) == status
