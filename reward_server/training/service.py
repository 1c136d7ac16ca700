"""Training runs as their labs see them: start, look, read metrics, stop, resume, delete. Workers do the rest."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reward_server.access import collection_for, require_all_of, scenario_for
from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import in_order
from reward_server.clock import Clock, to_iso
from reward_server.errors import (
    Conflict,
    FieldProblem,
    InvalidRequest,
    TooManyAtOnce,
    TrainingRunNotFound,
    TrainingUnavailable,
)
from reward_server.ids import IdPrefix, is_id, new_id
from reward_server.jobs.files import FileService
from reward_server.settings import Settings
from reward_server.store.job_records import TRAIN_POLICY, JobRow, JobStatus
from reward_server.store.records import JsonObject, PageEnd
from reward_server.store.store import Store
from reward_server.store.training_records import OPEN_RUNS, MetricPlace, MetricRow, RunStatus, TrainingRunRow
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.training import config, process
from reward_server.training.folder import run_folder
from scenarios.library import Catalog
from trainer_client.wire import TrainingRunRequest

MOST_OPEN = 20
"""Runs of a lab that wait or run."""
MAX_METADATA_BYTES = 4096


class TrainingRunService:
    """The runs of labs."""

    def __init__(
        self,
        *,
        store: Store,
        files: FileService,
        catalog: Catalog,
        settings: Settings,
        idempotency: Idempotency,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._files = files
        self._catalog = catalog
        self._settings = settings
        self._idempotency = idempotency
        self._clock = clock
        self._wake = wake
        self._checking = asyncio.Semaphore(1)
        """A check takes a process: one at a time is enough."""

    async def start(self, lab: Lab, request: TrainingRunRequest, key: str | None) -> Body:
        """Queue a run whose configuration the learner accepts.

        Raises:
            TrainingUnavailable: this server does not train.
            InvalidRequest: the learner refuses the configuration, or it reaches beyond the run.
            NotFound: a file or a scenario that it names.
            TooManyAtOnce: the lab has as many runs open as it may.
        """
        self.require_available()
        _require_small(request.metadata)
        work = partial(self._start, lab, request)
        return await self._idempotency.answer(lab, key, lambda: ("training-runs", request.model_dump()), work)

    async def get(self, lab: Lab, run_id: str) -> Body:
        """Return the state of a run."""
        return document(await self.find(lab, run_id))

    async def find(self, lab: Lab, run_id: str) -> TrainingRunRow:
        """The lab's run.

        Raises:
            TrainingRunNotFound: the lab has none of that id.
            Forbidden: the key that started it may use collections that this one may not.
        """
        row = None
        if is_id(run_id, IdPrefix.TRAINING_RUN):
            async with self._store.reading() as unit:
                row = await unit.training_runs.get(lab.lab_id, run_id)
        if row is None:
            raise TrainingRunNotFound
        require_all_of(lab, row.collections, "training run")
        return row

    async def page(self, lab: Lab, limit: int, after: PageEnd | None, status: RunStatus | None) -> list[TrainingRunRow]:
        """The lab's runs that `find` finds, newest first."""
        async with self._store.reading() as unit:
            collections = lab.collections
            return await unit.training_runs.page(lab.lab_id, limit, after, status=status, collections=collections)

    async def metrics(self, lab: Lab, run_id: str, after: MetricPlace, limit: int) -> list[MetricRow]:
        """Records of a run beyond a place."""
        async with self._store.reading() as unit:
            return await unit.training_runs.metrics(lab.lab_id, run_id, after, limit)

    async def stop(self, lab: Lab, run_id: str) -> Body:
        """Have the learner write a checkpoint and end. A run that is over stays as it is."""
        await self.find(lab, run_id)
        over = {"status": RunStatus.STOPPED, "finished_at": self._clock.now()}
        async with self._store.transaction() as unit:
            runs = unit.training_runs
            if await runs.move(lab.lab_id, run_id, (RunStatus.QUEUED,), over):
                await unit.jobs.cancel(lab.lab_id, run_id, self._clock.now())
            else:
                await runs.move(lab.lab_id, run_id, (RunStatus.RUNNING,), {"status": RunStatus.STOPPING})
        return await self.get(lab, run_id)

    async def resume(self, lab: Lab, run_id: str) -> Body:
        """Go on with a run that was stopped or that failed, from its newest checkpoint."""
        self.require_available()
        row = await self.find(lab, run_id)
        if row.status is RunStatus.COMPLETE:
            raise Conflict("This run is complete: there is nothing to resume.")
        again = {"status": RunStatus.QUEUED, "error": None, "finished_at": None}
        async with self._store.transaction() as unit:
            if await unit.training_runs.move(lab.lab_id, run_id, (RunStatus.STOPPED, RunStatus.FAILED), again):
                await self._require_few(unit, lab, besides=1)
                await unit.jobs.forget(lab.lab_id, run_id)
                await unit.jobs.add(self._job(lab, row))
        self._wake()
        return await self.get(lab, run_id)

    async def delete(self, lab: Lab, run_id: str) -> Body:
        """Forget a run that is over, with its metrics, checkpoints and policy."""
        row = await self.find(lab, run_id)
        async with self._store.transaction() as unit:
            if not await unit.training_runs.delete(lab.lab_id, run_id):
                raise Conflict("This run is not over: stop it first, and wait until it has ended.")
            await unit.jobs.forget(lab.lab_id, run_id)
        folder = run_folder(self._settings.runs, lab.lab_id, run_id)
        await asyncio.to_thread(shutil.rmtree, folder.place, ignore_errors=True)
        return document(row)

    def require_available(self) -> None:
        """`TrainingUnavailable`, with what the operator can do, where the learner does not run here."""
        settings = self._settings
        if not settings.trains:
            told = "Training runs are off in production." if settings.training_runs == "auto" else None
            raise TrainingUnavailable(f"{told or 'Training runs are off.'} The operator can set LABS_TRAINING_RUNS=on.")
        if (name := process.missing()) is not None:
            raise TrainingUnavailable(
                f"The learner cannot run on this server: {name} is not installed. The operator can run: "
                "pip install './trainer_client' './learner'"
            )

    async def _start(self, lab: Lab, request: TrainingRunRequest, keep: Keep) -> Body:
        resolved = await self._checked(lab, request.config)
        now = self._clock.now()
        row = TrainingRunRow(
            training_run_id=new_id(IdPrefix.TRAINING_RUN),
            lab_id=lab.lab_id,
            status=RunStatus.QUEUED,
            name=request.name,
            config=request.config,
            client_metadata=request.metadata,
            collections=lab.collections,
            steps=resolved["run"]["updates"],
            created_at=now,
        )
        body = document(row)
        async with self._store.transaction() as unit:
            await self._require_few(unit, lab)
            await unit.training_runs.add(row)
            await unit.jobs.add(self._job(lab, row))
            await keep(unit, body)
        self._wake()
        return body

    async def _checked(self, lab: Lab, wanted: JsonObject) -> JsonObject:
        """All settings; refuses what is not the lab's or not a configuration, before anything is kept."""
        models = self._settings.training_models
        config.require_inside(wanted, models)
        if (file_id := config.file_of(wanted)) is not None:
            await self._files.find(lab, file_id)
        toml = config.as_toml(wanted, models=models, rows=Path("rows.jsonl"))
        async with self._checking:
            resolved = await process.check(toml)
        for named in config.scenarios_of(resolved):
            if named.scenario is None:
                collection_for(lab, self._catalog, named.collection)
            else:
                scenario_for(lab, self._catalog, named.collection, named.scenario)
        return resolved

    async def _require_few(self, unit: UnitOfWork, lab: Lab, besides: int = 0) -> None:
        if await unit.training_runs.count(lab.lab_id, OPEN_RUNS) - besides >= MOST_OPEN:
            told = f"This lab has {MOST_OPEN} unfinished training runs; wait for one, or stop one."
            raise TooManyAtOnce(told, retry_after_s=60)

    def _job(self, lab: Lab, row: TrainingRunRow) -> JobRow:
        """The work of a run: one item, which is all of it, with the collections of the key that started it."""
        return JobRow(
            job_id=row.training_run_id,
            lab_id=lab.lab_id,
            key_id=lab.key_id,
            type=TRAIN_POLICY,
            status=JobStatus.QUEUED,
            file_id=config.file_of(row.config) or "",
            params={},
            collections=None if row.collections is None else tuple(row.collections),
            full_scores=False,
            scopes=tuple(scope.value for scope in in_order(lab.scopes)),
            total=1,
            created_at=self._clock.now(),
        )


def _require_small(metadata: JsonObject | None) -> None:
    size = len(json.dumps(metadata or {}, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_METADATA_BYTES:
        raise InvalidRequest(errors=[FieldProblem(("metadata",), "Must be at most 4 kB.")])


def document(row: TrainingRunRow) -> Body:
    """A run as it is shown."""
    body: Body = {
        "training_run_id": row.training_run_id,
        "status": row.status.value,
        "step": row.step,
        "steps": row.steps,
    }
    shown = {
        "name": row.name,
        "reward": row.reward,
        "held_out_reward": row.held_out_reward,
        "error": row.error,
        "config": row.config,
        "metadata": row.client_metadata,
        "created_at": to_iso(row.created_at),
        "started_at": None if row.started_at is None else to_iso(row.started_at),
        "finished_at": None if row.finished_at is None else to_iso(row.finished_at),
    }
    return body | {name: value for name, value in shown.items() if value is not None}
