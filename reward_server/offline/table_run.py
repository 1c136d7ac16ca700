"""Scores a data set into a file, through either engine; goes on where it was interrupted.

Results go to a journal beside the output, batch by batch. Rows that are in it are not handed to a worker again. When
all are done the journal becomes the output; if none could be scored, there is no output and no journal.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reward_server.offline.output import check_out, write
from reward_server.offline.report import error_line
from reward_server.offline.results import RESULTS, Result, ResultsFile
from reward_server.offline.rows import InputRow
from reward_server.offline.workers import WorkerPool

TOLD_ERRORS = 3


@dataclass
class WorkerThroughput:
    """The rows and the time of a worker."""

    conversations: int = 0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Conversations in a second of scoring."""
        return self.conversations / self.seconds if self.seconds else 0.0


@dataclass
class Summary:
    """The summary of a run."""

    scored: int = 0
    failed: int = 0
    rewards: float = 0.0
    lowest: float = 1.0
    highest: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    first_errors: list[str] = field(default_factory=list)
    """A line for each of the first few."""
    workers: dict[str, WorkerThroughput] = field(default_factory=dict)
    undecided: dict[str, int] = field(default_factory=dict)
    """Criteria of a rubric that came with the command, and in how many conversations nobody could decide them."""

    def count(self, result: Result) -> None:
        """Count a result, of this run or of one before."""
        if result["status"] == "success":
            self.scored += 1
            self.rewards += result["reward"]
            for criterion in result.get("undecided") or ():
                self.undecided[criterion] = self.undecided.get(criterion, 0) + 1
            self.lowest, self.highest = min(self.lowest, result["reward"]), max(self.highest, result["reward"])
        else:
            self.failed += 1
            self.errors[result["code"]] = self.errors.get(result["code"], 0) + 1
            if len(self.first_errors) < TOLD_ERRORS:
                self.first_errors.append(error_line(result))

    @property
    def all_equal(self) -> bool:
        """Several conversations were scored, and all have the same reward."""
        return self.scored > 1 and self.lowest == self.highest


def journal_of(out: Path) -> Path:
    """The folder in which an unfinished run keeps its results."""
    return out.with_name(f"{out.name}.journal")


def score_into(
    out: Path, rows: Iterable[InputRow], engine: WorkerPool, *, resume: bool, on_scored: Callable[[int], None]
) -> Summary:
    """Score all rows; `on_scored` hears how many conversations are done.

    Raises:
        InvalidRequest: the output is there already, or an unfinished run is and `resume` was not asked for, or its
            results are of another scoring version.
    """
    check_out(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    summary, folder = Summary(), journal_of(out)
    version: str | None = None
    results = ResultsFile(folder, None, resume)
    with results:
        done_rows = {result["row"] for result in results.read()}
        # The last row may have been cut off between two of its conversations.
        last = max(done_rows, default=0)
        count = len(results.done)
        for scored in engine.score(_pending(rows, done_rows - {last})):
            if version is None:
                version = scored.scoring_version
                results.require(version)
            fresh = [result for result in scored.results if result["key"] not in results.done]
            results.append(fresh)
            did = summary.workers.setdefault(scored.worker, WorkerThroughput())
            did.conversations += len(scored.results)
            did.seconds += scored.seconds
            count += len(fresh)
            on_scored(count)
        for result in results.read():
            summary.count(result)
    if summary.scored:
        write(out, folder / RESULTS, _read(folder))
    shutil.rmtree(folder)
    return summary


def _pending(rows: Iterable[InputRow], done: set[int]) -> Iterator[InputRow]:
    return (row for row in rows if row.number not in done)


def _read(folder: Path) -> Iterator[Result]:
    with ResultsFile(folder, None, resume=True) as results:
        yield from results.read()
