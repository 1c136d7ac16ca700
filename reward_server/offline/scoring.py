"""Scores rows into results, through either engine; goes on where it was interrupted.

Results go to a journal, batch by batch. Conversations that are in it are not scored again. Where the output is a
folder, the journal stays in it as `results.jsonl`, and a report joins it. Where it is a file, the journal lies beside
it and becomes it when all are done; if none could be scored, there is no output and no journal.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from reward_server.offline.output import check_out, is_file, write
from reward_server.offline.report import UNDECIDED_TITLES, error_line, summarise, why, write_report
from reward_server.offline.results import RESULTS, Result, ResultsFile
from reward_server.offline.rows import InputRow
from reward_server.offline.workers import ScoredRows, WorkerPool

TOLD_ERRORS = 3
TOLD_NAMES = (*UNDECIDED_TITLES, "capped_by")
"""Fields of results that are summed up at the end of a run."""


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
    scoring_version: str = ""
    named: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in TOLD_NAMES})
    """By field of the results: what they name there, and in how many conversations."""

    def count(self, result: Result) -> None:
        """Count a result, of this run or of one before."""
        if result["status"] == "success":
            self.scored += 1
            self.rewards += result["reward"]
            self.lowest, self.highest = min(self.lowest, result["reward"]), max(self.highest, result["reward"])
            self.scoring_version = result["scoring_version"]
            for name, counter in self.named.items():
                counter.update(result.get(name) or ())
        else:
            self.failed += 1
            self.errors[why(result)] = self.errors.get(why(result), 0) + 1
            if len(self.first_errors) < TOLD_ERRORS:
                self.first_errors.append(error_line(result))

    @property
    def all_equal(self) -> bool:
        """Several conversations were scored, and all have the same reward."""
        return self.scored > 1 and self.lowest == self.highest


def journal_of(out: Path) -> Path:
    """The folder in which an unfinished run keeps its results."""
    return out.with_name(f"{out.name}.journal") if is_file(out) else out


def score_into(
    out: Path,
    rows: Iterable[InputRow],
    engine: WorkerPool,
    *,
    source: str,
    resume: bool,
    on_scored: Callable[[int], None],
) -> Summary:
    """Score all rows; `on_scored` hears how many conversations are done.

    Raises:
        InvalidRequest: the output is there already, or an unfinished run is and `resume` was not asked for, or its
            results are of another scoring version.
    """
    check_out(out)
    folder = journal_of(out)
    with ResultsFile(folder, None, resume) as results:
        summary = score_rows(results, rows, engine, on_scored)
        if not is_file(out):
            figures = summarise(results.read(), source, summary.scoring_version)
            rewards = [result["reward"] for result in results.read() if result["status"] == "success"]
            write_report(out, figures, rewards)
    if is_file(out):
        if summary.scored:
            write(out, folder / RESULTS, _read(folder))
        shutil.rmtree(folder)
    return summary


def score_rows(
    results: ResultsFile,
    rows: Iterable[InputRow],
    engine: WorkerPool,
    on_scored: Callable[[int], None] = lambda count: None,
) -> Summary:
    """Score what is not among the results yet."""
    summary = Summary()
    count = len(results.done)
    # Closed by hand: an interruption must not leave a worker open.
    with closing(engine.score(rows, results.done)) as batches:
        for scored in batches:
            count += _keep(scored, results, summary)
            on_scored(count)
    for result in results.read():
        summary.count(result)
    return summary


def _keep(scored: ScoredRows, results: ResultsFile, summary: Summary) -> int:
    """Keep what a worker made; how many of them are new."""
    if not summary.scoring_version:
        summary.scoring_version = scored.scoring_version
        results.require(scored.scoring_version)
    results.append(scored.results)
    did = summary.workers.setdefault(scored.worker, WorkerThroughput())
    did.conversations += len(scored.results)
    did.seconds += scored.seconds
    return len(scored.results)


def _read(folder: Path) -> Iterator[Result]:
    with ResultsFile(folder, None, resume=True) as results:
        yield from results.read()
