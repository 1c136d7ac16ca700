"""Builds the services that routes call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from personas.case.library import load_temperaments
from reward_server.agents.endpoint import Endpoints
from reward_server.agents.leaderboard import Leaderboard
from reward_server.agents.play import AgentPlayer
from reward_server.agents.sealing import Sealer
from reward_server.agents.service import AgentService
from reward_server.api.auth import Gatekeeper
from reward_server.api.context import Services
from reward_server.api.cursor import CursorCodec
from reward_server.api.readiness import OK, ReadinessChecks
from reward_server.auth.lab import Lab
from reward_server.authoring.service import OwnScenarios
from reward_server.authoring.shelf import OwnShelf
from reward_server.episodes.service import EpisodeService
from reward_server.episodes.stage import PersonaStage
from reward_server.evaluations.calibrated import Calibrator
from reward_server.evaluations.drift import DriftService
from reward_server.evaluations.ranking import RankingService
from reward_server.evaluations.service import EvaluationService
from reward_server.jobs.check_scenarios import CHECK
from reward_server.jobs.files import FileService
from reward_server.jobs.kinds import JobKind
from reward_server.jobs.service import JobService
from reward_server.judges.ruler import LlmGroupJudge
from reward_server.limits.bytes_in_flight import BytesInFlight
from reward_server.limits.compute_budget import ComputeBudget
from reward_server.limits.concurrency_limit import LabConcurrencyLimit
from reward_server.limits.connections import OpenConnections
from reward_server.limits.fair_threads import lab_at_work
from reward_server.limits.storage import StorageQuota
from reward_server.preferences.criteria import CriterionLabels
from reward_server.preferences.service import PreferenceService
from reward_server.reward_models.calibration import CalibrationShelf
from reward_server.scoring.given import GivenRubrics
from reward_server.scoring.insight import Insights
from reward_server.scoring.rank import Ranker
from reward_server.scoring.tie_breaker import TieBreaker
from reward_server.server.background import Workers, job_kinds, workers_of
from reward_server.server.callers import tokens_of
from reward_server.server.chores import own
from reward_server.server.infrastructure import BuildInputs, Infrastructure
from reward_server.server.scoring import ScoringParts
from reward_server.shared_state.events import DATA_DELETED, SCENARIOS_CHANGED
from reward_server.shared_state.redis_link import RedisLink
from reward_server.store.store import Store
from reward_server.telemetry.loop_lag import LoopLag
from reward_server.telemetry.metrics import Metrics
from reward_server.training.service import TrainingRunService
from reward_server.training.serving import ServedRuns
from reward_server.webhooks.service import WebhookService
from scenarios.library import Catalog
from trainer_client.wire import JobRequest


async def services_of(
    stack: AsyncExitStack, inputs: BuildInputs, infrastructure: Infrastructure, scoring: ScoringParts, loop_lag: LoopLag
) -> Services:
    """All that the routes call."""
    settings, clock, metrics, store = inputs.settings, inputs.ports.clock, inputs.metrics, infrastructure.store
    catalog, idempotency = scoring.library.catalog, infrastructure.idempotency
    rubrics = GivenRubrics(scoring.scorer)
    shelf = CalibrationShelf(settings.calibrations, lab_at_work)
    insights = Insights(scoring.scorer, scoring.library.vault)
    evaluations = _evaluations(inputs, infrastructure, scoring, shelf, rubrics)
    episodes = _episodes(inputs, infrastructure, scoring)
    agents = _agents(stack, inputs, infrastructure, scoring)
    own_shelf = await _own_shelf(stack, infrastructure, scoring)
    kinds = _kinds(inputs, infrastructure, scoring, evaluations, AgentPlayer(agents, episodes, catalog))
    work = await _jobs(stack, inputs, infrastructure, kinds)
    runs = _training_runs(inputs, infrastructure, scoring, work)
    return Services(
        settings=settings,
        clock=clock,
        store=store,
        catalog=catalog,
        gatekeeper=_gatekeeper(inputs, infrastructure),
        cursors=CursorCodec(infrastructure.pepper),
        episodes=episodes,
        evaluations=evaluations,
        files=work.files,
        jobs=work.jobs,
        training_runs=runs,
        served_runs=await _served_runs(stack, inputs, runs, catalog),
        calibrations=shelf,
        drift=DriftService(store, catalog),
        rankings=_rankings(inputs, infrastructure, scoring, rubrics),
        insights=insights,
        criterion_labels=CriterionLabels(
            store=store,
            episodes=episodes,
            evaluations=evaluations,
            insights=insights,
            idempotency=idempotency,
            clock=clock,
        ),
        preferences=PreferenceService(store=store, catalog=catalog, idempotency=idempotency, clock=clock),
        webhooks=_webhooks(inputs, infrastructure),
        agents=agents,
        own_scenarios=OwnScenarios(store, clock, own_shelf, partial(_submit_check, work.jobs)),
        leaderboard=Leaderboard(store, catalog, scoring.scorer),
        reward_models=scoring.learned,
        metrics=metrics,
        traces=inputs.traces,
        concurrency_limit=LabConcurrencyLimit(settings.max_concurrency, infrastructure.shared.leases),
        connections=OpenConnections(),
        bytes_in_flight=BytesInFlight(),
        compute=ComputeBudget(infrastructure.shared.compute_buckets, infrastructure.usage),
        usage=infrastructure.usage,
        storage=StorageQuota(store, settings.learned_of),
        audit=infrastructure.audit,
        keys=infrastructure.keys,
        tenants=infrastructure.tenants,
        outliving=infrastructure.outliving,
        readiness=_readiness(store, scoring, loop_lag, infrastructure.shared.link),
    )


def _gatekeeper(inputs: BuildInputs, infrastructure: Infrastructure) -> Gatekeeper:
    return Gatekeeper(
        infrastructure.keys,
        infrastructure.shared.rates,
        open_access=infrastructure.open_access,
        tokens=tokens_of(inputs.settings, infrastructure.store, inputs.ports.clock),
        audit=infrastructure.audit,
        failed=infrastructure.shared.failed_keys,
        uses=infrastructure.key_uses,
    )


def _evaluations(
    inputs: BuildInputs,
    infrastructure: Infrastructure,
    scoring: ScoringParts,
    shelf: CalibrationShelf,
    rubrics: GivenRubrics,
) -> EvaluationService:
    return EvaluationService(
        store=infrastructure.store,
        catalog=scoring.library.catalog,
        scorer=scoring.scorer,
        idempotency=infrastructure.idempotency,
        clock=inputs.ports.clock,
        metrics=inputs.metrics,
        calibrator=Calibrator(shelf, scoring.lineage),
        rubrics=rubrics,
        tie_breaker=_tie_breaker(scoring, inputs.metrics),
    )


def _kinds(
    inputs: BuildInputs,
    infrastructure: Infrastructure,
    scoring: ScoringParts,
    evaluations: EvaluationService,
    player: AgentPlayer,
) -> Mapping[str, JobKind]:
    """The types of jobs, by name."""
    return job_kinds(
        evaluations=evaluations,
        player=player,
        scorer=scoring.scorer,
        catalog=scoring.library.catalog,
        store=infrastructure.store,
        settings=inputs.settings,
        clock=inputs.ports.clock,
        keys=infrastructure.keys,
        serves=inputs.ports.serves,
        metrics=inputs.metrics,
        scenarios_changed=partial(infrastructure.shared.events.tell, SCENARIOS_CHANGED, ""),
    )


def _training_runs(
    inputs: BuildInputs, infrastructure: Infrastructure, scoring: ScoringParts, work: _Work
) -> TrainingRunService:
    return TrainingRunService(
        store=infrastructure.store,
        files=work.files,
        catalog=scoring.library.catalog,
        settings=inputs.settings,
        idempotency=infrastructure.idempotency,
        clock=inputs.ports.clock,
        wake=work.wake,
    )


async def _served_runs(
    stack: AsyncExitStack, inputs: BuildInputs, runs: TrainingRunService, catalog: Catalog
) -> ServedRuns:
    """The policies of finished runs, with the task that ends those that nobody asks."""
    served = ServedRuns(runs, catalog, inputs.settings.runs)
    stack.push_async_callback(served.close)
    await own(stack, served.sweep())
    return served


def _webhooks(inputs: BuildInputs, infrastructure: Infrastructure) -> WebhookService:
    return WebhookService(
        store=infrastructure.store,
        idempotency=infrastructure.idempotency,
        clock=inputs.ports.clock,
        pepper=infrastructure.pepper,
        private=inputs.settings.private_addresses,
        names=infrastructure.names,
    )


async def _submit_check(jobs: JobService, lab: Lab, slug: str, version: int) -> str:
    """Have a version of a lab's own collection checked; the id of the job."""
    job = await jobs.submit(lab, JobRequest(type=CHECK, items=[{"collection": slug, "version": version}]), None)
    return str(job["job_id"])


async def _own_shelf(stack: AsyncExitStack, infrastructure: Infrastructure, scoring: ScoringParts) -> OwnShelf:
    """What labs brought, kept up to date."""
    shelf = OwnShelf(infrastructure.store, scoring.library, scoring.scorer)
    await shelf.refresh()
    changes: set[asyncio.Task[None]] = set()

    def changed(_: str) -> None:
        task = asyncio.create_task(shelf.refresh())
        changes.add(task)
        task.add_done_callback(changes.discard)

    infrastructure.shared.events.hear(SCENARIOS_CHANGED, changed)
    await own(stack, shelf.follow())
    return shelf


def _episodes(inputs: BuildInputs, infrastructure: Infrastructure, scoring: ScoringParts) -> EpisodeService:
    vault, temperaments = scoring.library.vault, load_temperaments()
    episodes = EpisodeService(
        store=infrastructure.store,
        catalog=scoring.library.catalog,
        stage=PersonaStage(
            vault, temperaments, scoring.reader, scoring.matcher, scoring.threads, speaker=scoring.speaker
        ),
        scorer=scoring.scorer,
        idempotency=infrastructure.idempotency,
        clock=inputs.ports.clock,
        metrics=inputs.metrics,
        new_seed=inputs.ports.new_seed,
        locks=infrastructure.shared.locks,
    )
    infrastructure.shared.events.hear(DATA_DELETED, episodes.in_play.forget_lab)
    inputs.metrics.cache_bytes.labels("episodes").set_function(lambda: episodes.in_play.held_bytes)
    return episodes


def _agents(
    stack: AsyncExitStack, inputs: BuildInputs, infrastructure: Infrastructure, scoring: ScoringParts
) -> AgentService:
    settings = inputs.settings
    private = settings.private_addresses
    endpoints = Endpoints(private=private, names=infrastructure.names, timeout_s=settings.request_deadline_s)
    stack.push_async_callback(endpoints.close)
    return AgentService(
        store=infrastructure.store,
        catalog=scoring.library.catalog,
        idempotency=infrastructure.idempotency,
        clock=inputs.ports.clock,
        sealer=Sealer(infrastructure.pepper),
        endpoints=endpoints,
        private=private,
        names=infrastructure.names,
    )


def _tie_breaker(scoring: ScoringParts, metrics: Metrics) -> TieBreaker | None:
    """A language model or a decision model decides ties, where there is one."""
    return None if scoring.pairs is None else TieBreaker(scoring.pairs, scoring.library.vault, metrics)


def _rankings(
    inputs: BuildInputs, infrastructure: Infrastructure, scoring: ScoringParts, rubrics: GivenRubrics
) -> RankingService:
    ruler = None if scoring.model is None else LlmGroupJudge(scoring.model, scoring.reader)
    return RankingService(
        catalog=scoring.library.catalog,
        scorer=scoring.scorer,
        ranker=Ranker(scoring.scorer, scoring.library.vault, inputs.metrics, ruler),
        idempotency=infrastructure.idempotency,
        metrics=inputs.metrics,
        rubrics=rubrics,
    )


@dataclass(frozen=True)
class _Work:
    """Tasks in the background."""

    files: FileService
    jobs: JobService
    wake: Callable[[], None]
    """There is more of it."""


async def _jobs(
    stack: AsyncExitStack, inputs: BuildInputs, infrastructure: Infrastructure, kinds: Mapping[str, JobKind]
) -> _Work:
    """Uploads and jobs, with the workers of this process."""
    settings, clock, store = inputs.settings, inputs.ports.clock, infrastructure.store
    workers = Workers(
        workers_of(
            store=store, kinds=kinds, clock=clock, metrics=inputs.metrics, settings=settings, usage=infrastructure.usage
        )
    )
    for worker in workers.each:
        await own(stack, worker.run())
    uploads = FileService(store, clock)
    jobs = JobService(
        store=store, files=uploads, kinds=kinds, idempotency=infrastructure.idempotency, clock=clock, wake=workers.wake
    )
    return _Work(uploads, jobs, workers.wake)


def _readiness(store: Store, scoring: ScoringParts, loop_lag: LoopLag, redis: RedisLink | None) -> ReadinessChecks:
    fixed = {
        "encoder": OK if scoring.matcher.version else "missing",
        "scenarios": OK if scoring.library.catalog.collections else "missing",
    }
    return ReadinessChecks(store, scoring.threads, loop_lag, fixed=fixed, redis=redis)
