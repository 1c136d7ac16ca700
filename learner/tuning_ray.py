"""A search whose trials run at the same time, on the machines of a Ray cluster: Ray Tune hands them out.

Optuna proposes from the same journal as a search of one process, so either goes on where the other ended. All machines
must see the folder of the search, the file of the run and the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learner.config import ConfigError

METRIC = "reward"
TOLD_LINES = 3


@dataclass(frozen=True)
class SearchTask:
    """The part of a search that a worker needs to know."""

    file: str
    folder: str
    changes: Sequence[str]
    url: str | None
    path: Sequence[str]
    """Where its modules are found."""
    score: Callable[[Path], float]
    """The figure of a run in this folder."""


def play_trials(task: SearchTask, search: Any, trials: int, workers: int, gpus: float) -> None:
    """Play so many more trials, `workers` of them at a time; `search` is what proposes them."""
    try:
        import ray
        from ray import tune
    except ImportError:
        raise ConfigError("tune --workers needs a package that is not installed: pip install 'ray[tune]'") from None
    with _own_signals():
        ray.init(
            address=os.environ.get("RAY_ADDRESS"),
            num_cpus=None if "RAY_ADDRESS" in os.environ else workers,
            include_dashboard=False,
            log_to_driver=False,
        )
        try:
            played = tune.Tuner(
                tune.with_resources(tune.with_parameters(_trial, task=task), {"cpu": 1, "gpu": gpus}),
                tune_config=tune.TuneConfig(search_alg=search, num_samples=trials, max_concurrent_trials=workers),
                run_config=tune.RunConfig(name="ray", storage_path=str(Path(task.folder).resolve()), verbose=0),
            ).fit()
        finally:
            ray.shutdown()
    if played.errors:
        reason = str(played.errors[0]).strip().splitlines()[-1]
        raise ConfigError(f"{len(played.errors)} of {len(played)} trials failed: {reason}")


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray answers Ctrl-C itself, and keeps doing so when it is done, which would swallow the next one."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where neither Ray nor anybody else can set them
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _trial(config: Mapping[str, Any], task: SearchTask) -> None:
    """One run, in a process of its own on a worker."""
    from ray import tune

    folder = Path(task.folder) / config["folder"]
    address = [] if task.url is None else ["--url", task.url]
    changes = [part for change in (*task.changes, *config["changes"]) for part in ("--set", change)]
    done = subprocess.run(  # noqa: S603 - our own command, without a shell
        [sys.executable, "-m", "learner", "train", task.file, "--out", str(folder), *address, *changes],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(task.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(" ".join(done.stderr.strip().splitlines()[-TOLD_LINES:]) or f"status {done.returncode}")
    tune.report({METRIC: task.score(folder)})
