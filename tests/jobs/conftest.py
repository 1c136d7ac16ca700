"""The template scenario with the server's own encoder and scorer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from personas.reading.matcher import Matcher
from reward_server.offline import workers
from reward_server.offline.recast import RecordedAgentPlayer
from reward_server.offline.rows import InputRow
from reward_server.offline.run import RowScoring, ScoringTask
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import OfflineEngine, load_matcher, offline_engine
from reward_server.settings import Settings
from scenarios.library import Library, load_library
from scenarios.template import begin

COLLECTION, SCENARIO = "my-collection", "my-scenario"


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    """The packaged encoder, loaded once."""
    return load_matcher(Settings())


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template scenario."""
    folder = tmp_path_factory.mktemp("collections")
    begin(f"{COLLECTION}/{SCENARIO}", folder)
    return folder


@pytest.fixture(scope="session")
def library(root: Path) -> Library:
    return load_library(root)


@pytest.fixture(scope="session")
def engine(library: Library, matcher: Matcher) -> Iterator[OfflineEngine]:
    with offline_engine(Settings(), library, matcher) as built:
        yield built


class Here:
    """Scores rows with a scorer that is there already."""

    def __init__(self, scorer: Scorer, task: ScoringTask, recast: RecordedAgentPlayer | None = None) -> None:
        self._scoring = RowScoring(scorer, task, recast)
        self._version = scorer.scoring_version

    def score(self, rows: Iterable[InputRow], done: frozenset[str]) -> Generator[workers.ScoredRows]:
        """As a `WorkerPool` does; not within an event loop."""
        for some in workers.in_batches(rows, workers.BATCH):
            items = [item for row in some for item in self._scoring.items(row) if item.base["key"] not in done]
            yield workers.ScoredRows(asyncio.run(self._scoring.score(items)), "here", 0.0, self._version)


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows to a JSONL file."""

    def write(*rows: Any, name: str = "input.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        return path

    return write
