"""Jobs of type `train_policy`: the learner at work in a run's folder, from its start or its newest checkpoint.

The learner gets a key of its own, for this attempt alone. Its metrics go to the database as it writes them, so that
every replica can show them. When its worker stops, or loses the job, the learner is ended at once: what it did since
its newest checkpoint is done again by whoever takes the job next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reward_server.auth.actor import Actor
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import Lab, Plan
from reward_server.clock import Clock
from reward_server.errors import StoreUnavailable, Unavailable
from reward_server.folders import make_private
from reward_server.jobs.kinds import JobItem, Record, WholeFile, Work, failed, succeeded
from reward_server.jobs.rows import write_rows
from reward_server.settings import Settings
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from reward_server.store.training_records import OPEN_RUNS, MetricRow, RunStatus, TrainingRunRow
from reward_server.telemetry.own_metrics import TrainingMetrics
from reward_server.training.config import as_toml, scopes_of
from reward_server.training.folder import RunFolder, run_folder
from reward_server.training.guardian import BUSY
from reward_server.training.process import REFUSED, Learner, environment
from reward_server.training.tail import Tail, TailRead

LOOK_EVERY_S = 1.0
PATIENCE_S = 600.0
"""For the update that a learner is at when it is asked to stop; then it is asked again, which ends it at once."""
LAST_PATIENCE_S = 30.0
PER_MINUTE = 100_000
"""Requests of a run: its lab's limits of the day hold, the rate of a plan would only make it wait."""
INTERRUPTED = 130
_SIGNALS = 128
RESUME = "POST /training-runs/{id}/resume continues from its newest checkpoint."


@dataclass(frozen=True)
class RunEnd:
    """The end of a run."""

    status: RunStatus
    error: str | None = None


class TrainingItem:
    """Runs the learner."""

    slice_size = 1

    def __init__(
        self,
        *,
        store: Store,
        settings: Settings,
        clock: Clock,
        keys: KeyRing,
        url: str,
        metrics: TrainingMetrics,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`url`: where learners find the API."""
        self._store = store
        self._settings = settings
        self._clock = clock
        self._keys = keys
        self._url = url
        self._metrics = metrics
        self._monotonic = monotonic
        # The deadline is kept here, where the learner can write a checkpoint first.
        spare_s = PATIENCE_S + 2 * LAST_PATIENCE_S
        self.whole = WholeFile(0, settings.training_run_deadline_s + spare_s)

    async def check(self, _lab: Lab, _params: JsonObject) -> None:
        """Runs are checked where they are submitted."""

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Have the learner run until it ends, and record how."""
        [item] = items
        row = await self._begun(work)
        if row is None:
            return  # it was stopped or deleted meanwhile, and its job with it
        end = RunEnd(RunStatus.STOPPED) if row.status is RunStatus.STOPPING else await self._train(work, row)
        outcome = succeeded(item.index, {}) if end.error is None else failed(item.index, "training_failed", end.error)
        changes = {"status": end.status, "error": end.error, "finished_at": self._clock.now()}
        async with self._store.transaction() as unit:
            await unit.training_runs.move(row.lab_id, row.training_run_id, OPEN_RUNS, changes)
            await record(unit, [outcome])

    async def _begun(self, work: Work) -> TrainingRunRow | None:
        """The run, which is under way now; one that was asked to stop before that is only to be ended."""
        lab_id, run_id = work.lab.lab_id, work.job_id
        async with self._store.transaction() as unit:
            # One that runs already goes on; the time of a resumed run counts from when it was resumed.
            begun = {"status": RunStatus.RUNNING, "started_at": self._clock.now()}
            await unit.training_runs.move(lab_id, run_id, (RunStatus.QUEUED,), begun)
            row = await unit.training_runs.get(lab_id, run_id)
        return row if row is not None and row.is_open else None

    async def _train(self, work: Work, row: TrainingRunRow) -> RunEnd:
        folder = run_folder(self._settings.runs, row.lab_id, row.training_run_id)
        await asyncio.to_thread(make_private, folder.place)
        if work.file_id:
            await write_rows(self._store, work, folder.rows)
        toml = as_toml(row.config, models=self._settings.training_models, rows=folder.rows)
        await asyncio.to_thread(folder.config.write_text, toml)
        since = await asyncio.to_thread(folder.log_size)
        async with self._key(work.lab, row) as key:
            learner = await Learner.start(folder, environment(self._url, key))
            try:
                left = await self._follow(learner, row, folder)
            finally:
                self._metrics.forget(row.training_run_id)
                await learner.end()
        said = await asyncio.to_thread(folder.last_line, since)
        return _end(left, said)

    async def _follow(self, learner: Learner, row: TrainingRunRow, folder: RunFolder) -> _Left:
        """Until the learner ends."""
        tail, stopping = Tail(folder.metrics), _Stopping(learner, self._monotonic)
        late_at = self._monotonic() + self._settings.training_run_deadline_s
        is_late = False
        while (status := await learner.ended(LOOK_EVERY_S)) is None:
            with suppress(StoreUnavailable):  # the records are there the next time, too
                await self._store_new(tail, row)
                is_late = is_late or self._monotonic() >= late_at
                if is_late or await self._is_unwanted(row):
                    await stopping.go_on()
        await self._store_new(tail, row)
        return _Left(status, was_asked=stopping.began, is_late=is_late)

    async def _is_unwanted(self, row: TrainingRunRow) -> bool:
        async with self._store.reading() as unit:
            found = await unit.training_runs.get(row.lab_id, row.training_run_id)
        return found is None or found.status is not RunStatus.RUNNING

    async def _store_new(self, tail: Tail, row: TrainingRunRow) -> None:
        """Store what the learner has written since the last time."""
        found = await asyncio.to_thread(tail.read)
        if found is None:
            return
        changes = _standing(found)
        async with self._store.transaction() as unit:
            runs = unit.training_runs
            if found.is_whole:
                await runs.rewind(row.lab_id, row.training_run_id, changes.get("step", 0))
            # First the run: of one that was deleted meanwhile there are no metrics either.
            if not changes or await runs.move(row.lab_id, row.training_run_id, OPEN_RUNS, changes):
                await runs.add_metrics(row.lab_id, row.training_run_id, found.rows)
        tail.accept(found)
        for each in found.rows:
            self._metrics.note(row.training_run_id, each.kind, each.step, each.record)

    @asynccontextmanager
    async def _key(self, lab: Lab, row: TrainingRunRow) -> AsyncIterator[str | None]:
        """A key for this attempt alone; None where the server asks nobody for one."""
        by = Actor(lab.lab_id, lab.key_id, "")
        await self._forget_keys(row, by)  # of attempts that were killed
        if self._settings.jwt_key is None and await self._keys.is_empty():
            yield None
            return
        made = await self._keys.create(
            row.lab_id,
            name=row.training_run_id,
            plan=Plan.CUSTOM,
            rate_per_minute=PER_MINUTE,
            collections=lab.collections,
            scopes=scopes_of(row.config),
            expires_in=timedelta(seconds=self.whole.deadline_s),
            by=by,
        )
        try:
            yield made.text
        finally:
            with suppress(StoreUnavailable):  # it expires by itself, and nobody knows it any more
                await self._keys.forget(made.row.key_id, by)

    async def _forget_keys(self, row: TrainingRunRow, by: Actor) -> None:
        for key in await self._keys.list():
            if key.name == row.training_run_id and key.lab_id == row.lab_id:
                await self._keys.forget(key.key_id, by)


@dataclass(frozen=True)
class _Left:
    """A learner that has ended."""

    status: int
    was_asked: bool
    """To stop."""
    is_late: bool
    """Whether its time was up."""


def _end(left: _Left, said: str | None) -> RunEnd:
    """The meaning of an exit for the run; `Unavailable` where another attempt may go better."""
    if left.status == 0:
        return RunEnd(RunStatus.COMPLETE)
    was_killed = left.status > _SIGNALS or left.status < 0
    if left.was_asked and (was_killed or left.status == INTERRUPTED):
        if left.is_late:
            return RunEnd(RunStatus.FAILED, f"It took longer than LABS_TRAINING_RUN_DEADLINE_S allows. {RESUME}")
        return RunEnd(RunStatus.STOPPED)
    if left.status == BUSY:
        raise Unavailable("Another process still works in the folder of this run.")
    if left.status == INTERRUPTED:
        raise Unavailable("The learner was interrupted.")
    if left.status == REFUSED and said is not None:
        return RunEnd(RunStatus.FAILED, said)
    if was_killed:
        return RunEnd(RunStatus.FAILED, f"The learner was killed, perhaps because memory ran out. {RESUME}")
    return RunEnd(RunStatus.FAILED, "The learner failed; learner.log in the folder of the run says how.")


class _Stopping:
    """Asks a learner to end, more firmly the longer that takes."""

    def __init__(self, learner: Learner, monotonic: Callable[[], float]) -> None:
        self._learner = learner
        self._monotonic = monotonic
        self._asked: list[float] = []

    @property
    def began(self) -> bool:
        """True if it was asked at all."""
        return bool(self._asked)

    async def go_on(self) -> None:
        """It is still there: ask it the first time, again, or end it."""
        now = self._monotonic()
        patience = (0.0, PATIENCE_S, LAST_PATIENCE_S)[min(len(self._asked), 2)]
        if self._asked and now - self._asked[-1] < patience:
            return
        if len(self._asked) < 2:
            self._learner.interrupt()
        else:
            await self._learner.end()
        self._asked.append(now)


def _standing(found: TailRead) -> dict[str, Any]:
    """The changes of a run by these records."""
    changes: dict[str, Any] = {"step": max((row.step for row in found.rows), default=0)} if found.rows else {}
    for name, kind in (("reward", "train"), ("held_out_reward", "eval")):
        rewards = [_reward(row) for row in found.rows if row.kind == kind]
        known = [reward for reward in rewards if reward is not None]
        if known:
            changes[name] = known[-1]
    return changes


def _reward(row: MetricRow) -> float | None:
    found = row.record.get("reward/mean")
    return float(found) if isinstance(found, int | float) else None
