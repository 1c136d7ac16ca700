"""Jobs of types `train_reward_model` and `calibrate`: the whole file is one item, done in a process of its own.

What they make belongs to the lab: no other sees it or is served by it. What an attempt had begun lies in the cache
until the job is over, so that another worker on the same folder goes on with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.errors import StorageExhausted
from reward_server.jobs.kinds import JobItem, Record, WholeFile, Work
from reward_server.jobs.rows import RowsErrand, own_folder
from reward_server.settings import Settings
from reward_server.store.records import JsonObject
from reward_server.store.store import Store

MOST_TRAINING_ROWS = 20_000
MOST_CALIBRATION_ROWS = 100_000
DEADLINE_S = 21_600.0
"""Of an attempt; the next one goes on from what it had made."""
MOST_KEPT = 100
"""Models, and calibrations, of one lab."""


@dataclass(frozen=True)
class FittingKind:
    """A kind of errand, and where what it makes goes."""

    errand: str
    options: str
    """The name of its options among the job's parameters."""
    kept_as: str
    """How the files of what it makes are called."""
    folder: Path
    """Of what all labs share; a lab's own lies below it."""
    most_lines: int


class FittingItem:
    """Makes something of a file of rows."""

    slice_size = 1

    def __init__(self, learning: FittingKind, store: Store, settings: Settings, clock: Clock) -> None:
        self._learning = learning
        self._errand = RowsErrand(store, settings.learning)
        self._settings = settings
        self._clock = clock
        self.whole = WholeFile(learning.most_lines, DEADLINE_S)

    async def check(self, lab: Lab, _params: JsonObject) -> None:
        """`StorageExhausted` where the lab keeps as many as it may."""
        own = own_folder(self._learning.folder, lab)
        if len(list(own.glob(self._learning.kept_as))) >= MOST_KEPT:
            raise StorageExhausted(f"This lab keeps {MOST_KEPT} of these; delete some first.")

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Have it made; what is wrong with the rows fails the job."""
        [item] = items
        own = own_folder(self._learning.folder, work.lab)
        order: JsonObject = {
            "models": str(own),
            "calibrations": str(own),
            "encoder": self._settings.encoder,
            "created": self._clock.now().isoformat(),
            "options": work.params.get(self._learning.options, {}),
        }
        await self._errand.run(self._learning.errand, order, work, item, record)


def forget_begun(folder: Path, before: datetime, open_jobs: Collection[str], lab_id: str = "*") -> None:
    """Delete what was begun, for a lab or for all, and never finished: of jobs that were cancelled, say.

    What a job that is not over has made so far stays, however old it is: the job works there, or goes on from it.
    """
    for place in folder.glob(f"labs/{lab_id}/*"):
        if place.name in open_jobs:
            continue
        with suppress(FileNotFoundError):  # finished meanwhile
            if datetime.fromtimestamp(place.stat().st_mtime, UTC) < before:
                shutil.rmtree(place, ignore_errors=True)
