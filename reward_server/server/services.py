"""Builds the services that routes call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from personas.case.library import load_temperaments
from reward_server.agents.endpoint import Endpoints
from reward_server.agents.leaderboard import Leaderboard
from reward_server.agents.play import Player
from reward_server.agents.sealing import Sealer
from reward_server.agents.service import AgentService
from reward_server.api.auth import Gatekeeper
from reward_server.api.context import Services
from reward_server.api.cursor import CursorCodec
from reward_server.api.readiness import OK, Readiness
from reward_server.episodes.service import EpisodeService
from reward_server.episodes.stage import Stage
from reward_server.evaluations.calibrated import Calibrator
from reward_server.evaluations.drift import DriftService
from reward_server.evaluations.ranking import RankingService
from reward_server.evaluations.service import EvaluationService
from reward_server.jobs.files import FileService
from reward_server.jobs.kinds import Kind
from reward_server.jobs.service import JobService
from reward_server.judges.ruler import Ruler
from reward_server.limits.compute_budget import ComputeBudget
from reward_server.limits.concurrency_limit import LabPlaces
from reward_server.limits.connections import OpenConnections
from reward_server.limits.fair_threads import lab_at_work
from reward_server.limits.storage import StorageQuota
from reward_server.preferences.service import PreferenceService
from reward_server.reward_models.calibration import CalibrationShelf
from reward_server.scoring.insight import Insights
from reward_server.scoring.rank import Ranker
from reward_server.scoring.tie_breaker import TieBreaker
from reward_server.server.background import Workers, job_kinds, workers_of
from reward_server.server.callers import tokens_of
from reward_server.server.chores import own
from reward_server.server.infrastructure import Given, Ground
from reward_server.server.scoring import Scoring, wording_of
from reward_server.shared_state.events import DATA_DELETED
from reward_server.shared_state.redis_link import RedisLink
from reward_server.store.store import Store
from reward_server.telemetry.loop_lag import LoopLag
from reward_server.telemetry.metrics import Metrics
from reward_server.training.service import TrainingRunService
from reward_server.webhooks.service import WebhookService


async def services_of(
    stack: AsyncExitStack, given: Given, ground: Ground, scoring: Scoring, loop_lag: LoopLag
) -> Services:
    """All that the routes call."""
    settings, clock, metrics, store = given.settings, given.ports.clock, given.metrics, ground.store
    catalog, idempotency = scoring.library.catalog, ground.idempotency
    shelf = CalibrationShelf(settings.calibrations, lab_at_work)
    evaluations = EvaluationService(
        store=store,
        catalog=catalog,
        scorer=scoring.scorer,
        idempotency=idempotency,
        clock=clock,
        metrics=metrics,
        calibrator=Calibrator(shelf, scoring.lineage),
        tie_breaker=_tie_breaker(scoring, metrics),
    )
    episodes = _episodes(given, ground, scoring)
    agents = _agents(stack, given, ground, scoring)
    kinds = job_kinds(
        evaluations=evaluations,
        player=Player(agents, episodes, catalog),
        scorer=scoring.scorer,
        catalog=catalog,
        store=store,
        settings=settings,
        clock=clock,
        keys=ground.keys,
        serves=given.ports.serves,
    )
    work = await _jobs(stack, given, ground, kinds)
    return Services(
        settings=settings,
        clock=clock,
        store=store,
        catalog=catalog,
        gatekeeper=Gatekeeper(
            ground.keys,
            ground.shared.rates,
            open_access=ground.open_access,
            tokens=tokens_of(settings, store, clock),
            audit=ground.audit,
            failed=ground.shared.failed_keys,
            uses=ground.key_uses,
        ),
        cursors=CursorCodec(ground.pepper),
        episodes=episodes,
        evaluations=evaluations,
        files=work.files,
        jobs=work.jobs,
        training_runs=TrainingRunService(
            store=store,
            files=work.files,
            catalog=catalog,
            settings=settings,
            idempotency=idempotency,
            clock=clock,
            wake=work.wake,
        ),
        calibrations=shelf,
        drift=DriftService(store, catalog),
        rankings=_rankings(given, ground, scoring),
        insights=Insights(scoring.scorer, scoring.library.vault),
        preferences=PreferenceService(store=store, catalog=catalog, idempotency=idempotency, clock=clock),
        webhooks=WebhookService(
            store=store,
            idempotency=idempotency,
            clock=clock,
            pepper=ground.pepper,
            private=settings.private_addresses,
            names=ground.names,
        ),
        agents=agents,
        leaderboard=Leaderboard(store, catalog, scoring.scorer),
        reward_models=scoring.learned,
        metrics=metrics,
        traces=given.traces,
        places=LabPlaces(settings.max_concurrency, ground.shared.leases),
        connections=OpenConnections(),
        compute=ComputeBudget(ground.shared.minutes, ground.usage),
        usage=ground.usage,
        storage=StorageQuota(store, settings.learned_of),
        audit=ground.audit,
        keys=ground.keys,
        tenants=ground.tenants,
        outliving=ground.outliving,
        readiness=_readiness(store, scoring, loop_lag, ground.shared.link),
    )


def _episodes(given: Given, ground: Ground, scoring: Scoring) -> EpisodeService:
    wording = wording_of(scoring.model, given.settings, given.metrics)
    vault, temperaments = scoring.library.vault, load_temperaments()
    episodes = EpisodeService(
        store=ground.store,
        catalog=scoring.library.catalog,
        stage=Stage(vault, temperaments, scoring.reader, scoring.matcher, scoring.threads, wording=wording),
        scorer=scoring.scorer,
        idempotency=ground.idempotency,
        clock=given.ports.clock,
        metrics=given.metrics,
        new_seed=given.ports.new_seed,
        locks=ground.shared.locks,
    )
    ground.shared.events.hear(DATA_DELETED, episodes.in_play.forget_lab)
    given.metrics.cache_bytes.labels("episodes").set_function(lambda: episodes.in_play.held_bytes)
    return episodes


def _agents(stack: AsyncExitStack, given: Given, ground: Ground, scoring: Scoring) -> AgentService:
    settings = given.settings
    private = settings.private_addresses
    endpoints = Endpoints(private=private, names=ground.names, timeout_s=settings.agent_deadline_s)
    stack.push_async_callback(endpoints.close)
    return AgentService(
        store=ground.store,
        catalog=scoring.library.catalog,
        idempotency=ground.idempotency,
        clock=given.ports.clock,
        sealer=Sealer(ground.pepper),
        endpoints=endpoints,
        private=private,
        names=ground.names,
    )


def _tie_breaker(scoring: Scoring, metrics: Metrics) -> TieBreaker | None:
    """A language model or a decision model decides ties, where there is one."""
    return None if scoring.pairs is None else TieBreaker(scoring.pairs, scoring.library.vault, metrics)


def _rankings(given: Given, ground: Ground, scoring: Scoring) -> RankingService:
    ruler = None if scoring.model is None else Ruler(scoring.model, scoring.reader)
    return RankingService(
        catalog=scoring.library.catalog,
        scorer=scoring.scorer,
        ranker=Ranker(scoring.scorer, scoring.library.vault, given.metrics, ruler),
        idempotency=ground.idempotency,
        metrics=given.metrics,
    )


@dataclass(frozen=True)
class _Work:
    """What is done in the background."""

    files: FileService
    jobs: JobService
    wake: Callable[[], None]
    """There is more of it."""


async def _jobs(stack: AsyncExitStack, given: Given, ground: Ground, kinds: Mapping[str, Kind]) -> _Work:
    """Uploads and jobs, with the workers of this process."""
    settings, clock, store = given.settings, given.ports.clock, ground.store
    workers = Workers(
        workers_of(store=store, kinds=kinds, clock=clock, metrics=given.metrics, settings=settings, usage=ground.usage)
    )
    for worker in workers.each:
        await own(stack, worker.run())
    uploads = FileService(store, clock)
    jobs = JobService(
        store=store, files=uploads, kinds=kinds, idempotency=ground.idempotency, clock=clock, wake=workers.wake
    )
    return _Work(uploads, jobs, workers.wake)


def _readiness(store: Store, scoring: Scoring, loop_lag: LoopLag, redis: RedisLink | None) -> Readiness:
    fixed = {
        "encoder": OK if scoring.matcher.version else "missing",
        "scenarios": OK if scoring.library.catalog.collections else "missing",
    }
    return Readiness(store, scoring.threads, loop_lag, fixed=fixed, redis=redis)
