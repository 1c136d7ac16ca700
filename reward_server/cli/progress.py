"""Progress of long work: a bar for each stage on a terminal, now and then a line in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Report = Callable[[str, int, int], None]
"""A stage, how much of it is done, and out of how much."""
EVERY = 30.0
"""Seconds between two lines about one stage."""


@contextmanager
def shown(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Reports go to the terminal of this console; where it is a file or a pipe, to standard error as lines."""
    if not console.is_terminal:
        yield _lines(Console(stderr=True, width=200), clock)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        stages = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=total)
            bar.update(stages[stage], completed=done, total=total)

        yield report


@contextmanager
def busy(console: Console, what: str) -> Iterator[None]:
    """Says on a terminal what takes its time and cannot be counted; nothing of it stays."""
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def _lines(log: Console, clock: Callable[[], float]) -> Report:
    """Report by lines; a stage of less than half a minute is not worth one."""
    told: dict[str, float] = {}
    started: dict[str, float] = {}

    def report(stage: str, done: int, total: int) -> None:
        now = clock()
        begun = started.setdefault(stage, now)
        if now - told.setdefault(stage, begun) >= EVERY:
            told[stage] = now
            log.print(f"{stage}: {done} of {total} after {now - begun:.0f} s", highlight=False, markup=False)

    return report
