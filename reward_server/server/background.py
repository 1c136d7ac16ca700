"""Composes what does jobs: the kinds, and the workers of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from reward_server.agents.play import AgentPlayer
from reward_server.api.body import CONVERSATION, off_the_loop, read_json, validate
from reward_server.auth.key_ring import KeyRing
from reward_server.clock import Clock
from reward_server.evaluations.service import EvaluationService
from reward_server.jobs.agreement import MEASURE, MeasureAgreement
from reward_server.jobs.check_scenarios import CHECK, CheckScenarios
from reward_server.jobs.compare import CompareItems
from reward_server.jobs.evaluate import EvaluateItems
from reward_server.jobs.evaluate_agent import EvaluateAgentItems
from reward_server.jobs.kinds import JobKind, LineReader
from reward_server.jobs.learning import (
    MOST_CALIBRATION_ROWS,
    MOST_TRAINING_ROWS,
    FittingItem,
    FittingKind,
)
from reward_server.jobs.rescore import RescoreItems
from reward_server.jobs.worker import JobWorker, WorkerTimings
from reward_server.limits.usage import UsageMeter
from reward_server.scoring.scorer import Scorer
from reward_server.settings import Settings
from reward_server.store.job_records import TRAIN_POLICY, JobRow
from reward_server.store.store import Store
from reward_server.store.training_records import OPEN_RUNS, RunStatus
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics
from reward_server.training.item import RESUME, TrainingItem
from reward_server.training.process import missing
from reward_server.webhooks.events import WebhookEvent, announce
from scenarios.library import Catalog
from trainer_client.wire import MAX_TURNS


def job_kinds(
    *,
    evaluations: EvaluationService,
    player: AgentPlayer,
    scorer: Scorer,
    catalog: Catalog,
    store: Store,
    settings: Settings,
    clock: Clock,
    keys: KeyRing,
    serves: bool,
    metrics: Metrics,
    scenarios_changed: Callable[[], Awaitable[None]],
) -> Mapping[str, JobKind]:
    """All types of jobs that this process can do."""
    lines = line_reader()
    training = FittingKind("train_reward_model", "training", "rm_*", settings.reward_models, MOST_TRAINING_ROWS)
    fitting = FittingKind("calibrate", "calibration", "cal_*.json", settings.calibrations, MOST_CALIBRATION_ROWS)
    runs: dict[str, JobKind] = {}
    # A worker has no address of its own that learners could play against.
    if settings.trains and missing() is None and (serves or settings.training_url is not None):
        runs[TRAIN_POLICY] = TrainingItem(
            store=store, settings=settings, clock=clock, keys=keys, url=settings.own_url, metrics=metrics.training
        )
    return {
        **runs,
        **{each.errand: FittingItem(each, store, settings, clock) for each in (training, fitting)},
        MEASURE: MeasureAgreement(store, settings, catalog),
        CHECK: CheckScenarios(store, settings, scenarios_changed),
        "evaluate": EvaluateItems(evaluations, catalog, lines),
        "compare": CompareItems(evaluations, catalog, lines, store),
        "evaluate_agent": EvaluateAgentItems(player, catalog, lines, store, clock),
        "rescore": RescoreItems(scorer, catalog, lines, store),
    }


def line_reader() -> LineReader:
    """Reads the lines of jobs as requests of one conversation are read."""
    return LineReader(read_json, validate, partial(off_the_loop, limit=CONVERSATION))


def workers_of(
    *, store: Store, kinds: Mapping[str, JobKind], clock: Clock, metrics: Metrics, settings: Settings, usage: UsageMeter
) -> list[JobWorker]:
    """The workers of this process: those for trainings, runs and agents keep no other items waiting."""
    pace = WorkerTimings(slice_deadline_s=settings.batch_deadline_s)
    of_a_game = WorkerTimings(slice_deadline_s=MAX_TURNS * settings.request_deadline_s)

    async def end_run(unit: UnitOfWork, job: JobRow) -> None:
        """Tell of a run, and end it where others than its kind ended the job: all of its workers were lost, say."""
        over = {"status": RunStatus.FAILED, "error": f"{job.error} {RESUME}", "finished_at": clock.now()}
        await unit.training_runs.move(job.lab_id, job.job_id, OPEN_RUNS, over)
        run = await unit.training_runs.get(job.lab_id, job.job_id)
        if run is not None:
            event = {"training_run_id": run.training_run_id, "status": run.status.value, "step": run.step}
            event |= {} if run.error is None else {"error": run.error}
            await announce(unit, job.lab_id, WebhookEvent.TRAINING_RUN_FINISHED, event, clock.now())

    async def tell(unit: UnitOfWork, job: JobRow) -> None:
        if job.type == TRAIN_POLICY:
            await end_run(unit, job)
            return
        event = {"job_id": job.job_id, "type": job.type, "status": job.status.value, "total": job.total}
        event |= {"done": job.done, "failed": job.failed, "dead": job.dead}
        if job.error is not None:
            event["error"] = job.error
        await announce(unit, job.lab_id, WebhookEvent.JOB_FINISHED, event, clock.now())

    of_agents = {name: kind for name, kind in kinds.items() if isinstance(kind, EvaluateAgentItems)}
    of_runs = {name: kind for name, kind in kinds.items() if name == TRAIN_POLICY}
    of_files = {name: kind for name, kind in kinds.items() if kind.whole is not None and name not in of_runs}
    apart = {*of_agents, *of_files, *of_runs}
    of_lines = {name: kind for name, kind in kinds.items() if name not in apart}
    known: list[tuple[Mapping[str, JobKind], WorkerTimings]] = [
        (of_lines, pace),
        (of_agents, of_a_game),
    ] * settings.job_workers
    if settings.job_workers:
        known.append((of_files, pace))
        known += [(of_runs, pace)] * settings.training_run_workers if of_runs else []
    return [
        JobWorker(store=store, kinds=each, clock=clock, metrics=metrics, pace=its, usage=usage, finished=[tell])
        for each, its in known
    ]


class Workers:
    """The workers of this process; they share nothing but the database."""

    def __init__(self, each: list[JobWorker]) -> None:
        self.each = each

    def wake(self) -> None:
        """There is a new job."""
        for worker in self.each:
            worker.wake()
