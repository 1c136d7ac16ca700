"""Workers that score: one loads the engine once; a pool runs one in this process.

What goes to a worker and comes back is plain data, so that it can be sent elsewhere; floats keep every digit.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from reward_server.offline.recast import RecordedAgentPlayer
from reward_server.offline.results import Result
from reward_server.offline.rows import InputRow
from reward_server.offline.run import BATCH, RowScoring, ScoringTask
from reward_server.settings import Settings
from scenarios.library import NO_SCENARIOS


@dataclass(frozen=True)
class Setup:
    """The parts that a worker is made from."""

    settings: Settings
    root: Path | None
    task: ScoringTask
    persona_answers: bool = False
    """Whether the scenario's persona answers instead of the recorded party."""


@dataclass(frozen=True)
class ScoredRows:
    """The outcome of some rows."""

    results: list[Result]
    worker: str
    seconds: float
    """Spent on scoring, without loading."""
    scoring_version: str


class WorkerPool(Protocol):
    """Workers, however many and wherever."""

    def score(self, rows: Iterable[InputRow], done: frozenset[str]) -> Generator[ScoredRows]:
        """The results of all rows, in their order, some at a time; conversations with these keys are left out."""
        ...


class RowWorker:
    """Scores rows; close it."""

    def __init__(self, setup: Setup, done: frozenset[str]) -> None:
        from personas.case.library import load_temperaments
        from reward_server.llm.build import language_model
        from reward_server.server.engine import load_scenarios, offline_engine

        self._done = done
        with ExitStack() as stack:
            # One loop for all batches: connections of a language model belong to the one that opened them.
            self._loop = asyncio.new_event_loop()
            stack.callback(self._loop.close)
            # With a rubric nothing else is scored, so the others are not read.
            root, shelf = setup.root or setup.settings.scenarios, setup.settings.libraries
            library = NO_SCENARIOS if setup.task.rubric else load_scenarios(root, shelf)
            model = language_model(setup.settings)
            if model is not None:
                stack.callback(lambda: self._loop.run_until_complete(model.close()))
            engine = stack.enter_context(offline_engine(setup.settings, library, model=model))
            recast = (
                RecordedAgentPlayer(library.vault, load_temperaments(), engine.reader)
                if setup.persona_answers
                else None
            )
            self._scoring = RowScoring(engine.scorer, setup.task, recast)
            self._stack = stack.pop_all()
        self._name = f"{os.uname().nodename}:{os.getpid()}"
        self.scoring_version = self._scoring.scoring_version

    def score(self, rows: Sequence[InputRow]) -> ScoredRows:
        """The results of these rows."""
        started = time.perf_counter()
        items = [item for row in rows for item in self._scoring.items(row) if item.base["key"] not in self._done]
        results = self._loop.run_until_complete(self._scoring.score(items))
        return ScoredRows(results, self._name, time.perf_counter() - started, self.scoring_version)

    def close(self) -> None:
        """Give back threads and connections."""
        self._stack.close()


class LocalWorkerPool:
    """One worker, in this process."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def score(self, rows: Iterable[InputRow], done: frozenset[str]) -> Generator[ScoredRows]:
        """As `WorkerPool` says."""
        worker = RowWorker(self._setup, done)
        try:
            for some in in_batches(rows, BATCH):
                yield worker.score(some)
        finally:
            worker.close()


def in_batches(rows: Iterable[InputRow], size: int) -> Iterator[list[InputRow]]:
    """The rows, so many at a time."""
    waiting = iter(rows)
    while some := list(islice(waiting, size)):
        yield some
