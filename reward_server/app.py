"""The composition root: the one place that builds adapters and wires them together.

`create_app` makes an app that owns nothing yet; its lifespan migrates and opens the store, loads the
scenarios and the text encoder, and builds the services. What stops it is one error that says what to do.
On the way out it lets requests in work finish.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TextIO

from fastapi import Depends, FastAPI

from personas.library import load_temperaments
from personas.matcher import Matcher
from personas.reading.reader import LocalReader, Reader
from reward_server import __version__
from reward_server.api import docs, errors
from reward_server.api.auth import Gatekeeper
from reward_server.api.boundary import RequestBoundary
from reward_server.api.context import Services
from reward_server.api.cursor import CursorCodec
from reward_server.api.edge import KnownHosts, require_json
from reward_server.api.readiness import OK, Readiness
from reward_server.api.routes import (
    batches,
    calibrations,
    catalog,
    episodes,
    evaluate,
    files,
    jobs,
    keys,
    labs,
    operations,
    preferences,
    rank,
    reward_models,
    sockets,
    webhooks,
)
from reward_server.background import Workers, file_limits, job_kinds, worker_maker
from reward_server.classifier.build import classifier_judge
from reward_server.clock import Clock, SystemClock
from reward_server.coordination.audit import AuditLog
from reward_server.coordination.compute_budget import ComputeBudget
from reward_server.coordination.events import RedisEvents
from reward_server.coordination.fair_threads import FairThreads, lab_at_work
from reward_server.coordination.idempotency import Idempotency, Outliving
from reward_server.coordination.key_ring import KeyRing
from reward_server.coordination.pepper import pepper_of
from reward_server.coordination.places import LabPlaces
from reward_server.coordination.shared import Shared
from reward_server.coordination.storage import StorageQuota
from reward_server.coordination.tenants import Tenants
from reward_server.coordination.tokens import Issuer, Tokens
from reward_server.coordination.usage import UsageMeter
from reward_server.engine import (
    Guests,
    build_scorer,
    llm_judges,
    load_matcher,
    load_reader,
    load_scenarios,
    reader_of,
    reward_model_service,
)
from reward_server.episodes.batches import EpisodeBatches
from reward_server.episodes.scores import TurnScorer
from reward_server.episodes.stage import Stage
from reward_server.episodes.wording import Wording
from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.evaluations.calibrated import Calibrator
from reward_server.evaluations.ranking import RankingService
from reward_server.evaluations.service import EvaluationService
from reward_server.jobs.durable.files import FileService
from reward_server.jobs.durable.service import JobService
from reward_server.judges.pairwise import PairwiseJudge
from reward_server.judges.plugins import load_plugins
from reward_server.judges.ruler import Ruler
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import LanguageModel
from reward_server.llm.budget import Prices
from reward_server.llm.build import language_model
from reward_server.llm.durable import StoredLedger, StoredVerdicts
from reward_server.preferences.service import PreferenceService
from reward_server.production import require_strong
from reward_server.reward_models.calibration import CalibrationShelf
from reward_server.reward_models.micro_batcher import MicroBatcher, usable
from reward_server.reward_models.service import RewardModelService
from reward_server.scoring.lineage import Lineage
from reward_server.scoring.metering import MeteredScorer
from reward_server.scoring.rank import Ranker
from reward_server.scoring.scorer import Scorer
from reward_server.scoring.tie_breaker import TieBreaker
from reward_server.settings import Settings
from reward_server.store.migrate import migrate
from reward_server.store.occupancy import occupied
from reward_server.store.store import Store
from reward_server.telemetry.alerts.watch import alert_watch
from reward_server.telemetry.logs import configure_logging, get_logger
from reward_server.telemetry.loop_lag import LoopLag
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.traces import Traces, traces_to
from reward_server.webhooks.delivery import KEPT, Deliverer
from reward_server.webhooks.sender import Sender
from reward_server.webhooks.service import WebhookService
from scenarios.library import Library

ROUTES = (
    batches,
    calibrations,
    catalog,
    episodes,
    evaluate,
    files,
    jobs,
    preferences,
    rank,
    reward_models,
    keys,
    labs,
    webhooks,
    operations,
    sockets,
)
PURGE_EVERY_S = 3600.0
SWITCH_S = 0.001
WORDING_SHARE = 0.25
"""Of the time to answer a turn, the most that is spent on words; judges may need the rest."""
VERDICT_LIFETIME = timedelta(days=365)
"""For as long the same transcript has the same reward from the same language model."""
JOB_LIFETIME = timedelta(days=30)
"""A job and its results can be read for so long after its end."""
UPLOAD_LIFETIME = timedelta(days=1)
"""An upload that is not complete by then was broken off."""

log = get_logger(__name__)


def _random_seed() -> int:
    return secrets.randbits(63)


@dataclass(frozen=True)
class Ports:
    """What tests hand in; None means the real thing."""

    clock: Clock = field(default_factory=SystemClock)
    new_seed: Callable[[], int] = _random_seed
    matcher: Matcher | None = None
    reader: Reader | None = None
    library: Library | None = None
    language_model: LanguageModel | None = None
    build_scorer: Callable[[Library, Matcher, Reader, Executor, Guests], Scorer] = build_scorer
    log_stream: TextIO | None = None
    serves: bool = True
    """Whether it answers requests; else it only does jobs, and others may use its database."""
    traces: Traces | None = None
    own_process: bool = True
    """Whether the process is the server's own, so that its heap may be tuned and its caches warmed."""


def create_app(settings: Settings, *, ports: Ports | None = None) -> FastAPI:
    """The app; nothing is opened before its lifespan begins."""
    ports = ports or Ports()
    prices = Prices(settings.llm_usd_per_mtok_in or 0.0, settings.llm_usd_per_mtok_out or 0.0)
    metrics = Metrics(by_scenario=settings.metrics_need_a_key, prices=prices)
    traces = ports.traces or traces_to(settings.otlp_endpoint)
    app = FastAPI(
        title="Labs API",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=_lifespan(settings, ports, metrics, traces),
        dependencies=[Depends(require_json)],
    )
    errors.install(app)
    for module in (*ROUTES, docs):
        app.include_router(module.router)
    app.add_middleware(KnownHosts, names=settings.host_names)
    app.add_middleware(RequestBoundary, max_concurrency=settings.max_concurrency, metrics=metrics, traces=traces)
    return app


def _lifespan(
    settings: Settings, ports: Ports, metrics: Metrics, traces: Traces
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        configure_logging(settings.log_level, settings.log_format, ports.log_stream)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, traces.close)
            app.state.services = await _start(stack, settings, ports, metrics)
            log.info("started", version=__version__, collections=len(app.state.services.catalog.collections))
            yield
            app.state.services = None

    return lifespan


@dataclass(frozen=True)
class _Scoring:
    """What scores, and what it is made of."""

    library: Library
    matcher: Matcher
    reader: Reader
    threads: FairThreads
    model: LanguageModel | None
    verdicts: VerdictCache
    learned: RewardModelService
    scorer: MeteredScorer
    lineage: Lineage


async def _start(stack: AsyncExitStack, settings: Settings, ports: Ports, metrics: Metrics) -> Services:
    """Everything that is needed to serve, or an error that says what is missing."""
    await migrate(settings.database)
    if ports.serves:
        stack.enter_context(occupied(settings.database))
    store = await Store.open(settings.database)
    stack.push_async_callback(store.close)
    pepper = await asyncio.to_thread(pepper_of, settings)
    shared = await _shared(stack, settings, metrics)
    keys = KeyRing(store, ports.clock, pepper, events=shared.events)
    await keys.note_pepper()
    keyless = await keys.is_empty()
    await asyncio.to_thread(partial(require_strong, settings, keyless=keyless and ports.serves))
    open_access = ports.serves and may_be_open(settings, keyless=keyless)
    scoring = await _scoring(stack, settings, ports, metrics, store)
    outliving = Outliving(settings.batch_deadline_s)
    stack.push_async_callback(outliving.drain, settings.drain_s)
    idempotency = Idempotency(store, ports.clock, outliving, shared.locks)
    shelf = CalibrationShelf(settings.calibrations, lab_at_work)
    usage, audit, tenants = _accounts(stack, store, ports.clock, shared)
    await _own(stack, usage.watch())
    await _own(stack, _purge(store, ports.clock, tenants))
    loop_lag = LoopLag(metrics.loop_lag.set)
    await _own(stack, loop_lag.watch())
    metrics.watch(lambda: scoring.threads.waiting_s, lambda: store.waiting)
    if ports.own_process:
        await _own(stack, alert_watch(settings, metrics).watch())
        sender = Sender(private=settings.webhook_private_addresses)
        stack.push_async_callback(sender.close)
        await _own(stack, Deliverer(store, sender, pepper, ports.clock).run())
        await _own(stack, _warm(scoring.library, scoring.reader))
        _settle_heap()
    catalog, vault, model = scoring.library.catalog, scoring.library.vault, scoring.model
    wording = _wording(model, settings, metrics)
    evaluations = EvaluationService(
        store=store,
        catalog=catalog,
        scorer=scoring.scorer,
        idempotency=idempotency,
        clock=ports.clock,
        metrics=metrics,
        calibrator=Calibrator(shelf, scoring.lineage),
        tie_breaker=None
        if model is None
        else TieBreaker(PairwiseJudge(model, scoring.verdicts, scoring.reader), vault, metrics),
    )
    kinds = job_kinds(evaluations, scoring.scorer, catalog, store)
    maker = worker_maker(store=store, kinds=kinds, clock=ports.clock, metrics=metrics, settings=settings)
    workers = Workers(settings.job_workers, maker)
    for worker in workers.each:
        await _own(stack, worker.run())
    uploads = FileService(store, ports.clock, file_limits(settings))
    return Services(
        settings=settings,
        clock=ports.clock,
        store=store,
        catalog=catalog,
        gatekeeper=Gatekeeper(
            keys, shared.rates, open_access=open_access, tokens=_tokens(settings, store, ports.clock), audit=audit
        ),
        cursors=CursorCodec(pepper),
        episodes=EpisodeBatches(
            store=store,
            catalog=catalog,
            stage=Stage(vault, load_temperaments(), scoring.reader, scoring.matcher, scoring.threads, wording=wording),
            scorer=TurnScorer(scoring.scorer),
            idempotency=idempotency,
            clock=ports.clock,
            metrics=metrics,
            new_seed=ports.new_seed,
            locks=shared.locks,
        ),
        evaluations=evaluations,
        files=uploads,
        jobs=JobService(
            store=store, files=uploads, kinds=kinds, idempotency=idempotency, clock=ports.clock, wake=workers.wake
        ),
        calibrations=shelf,
        rankings=RankingService(
            catalog=catalog,
            scorer=scoring.scorer,
            ranker=Ranker(scoring.scorer, vault, metrics, None if model is None else Ruler(model, scoring.reader)),
            idempotency=idempotency,
            metrics=metrics,
        ),
        preferences=PreferenceService(store=store, catalog=catalog, idempotency=idempotency, clock=ports.clock),
        webhooks=WebhookService(
            store=store,
            idempotency=idempotency,
            clock=ports.clock,
            pepper=pepper,
            private=settings.webhook_private_addresses,
        ),
        reward_models=scoring.learned,
        metrics=metrics,
        places=LabPlaces(settings.max_concurrency),
        compute=ComputeBudget(usage=usage),
        usage=usage,
        storage=StorageQuota(store),
        audit=audit,
        keys=keys,
        tenants=tenants,
        readiness=Readiness(
            store,
            scoring.threads,
            loop_lag,
            fixed={
                "encoder": OK if scoring.matcher.version else "missing",
                "scenarios": OK if catalog.collections else "missing",
            },
        ),
    )


def _accounts(
    stack: AsyncExitStack, store: Store, clock: Clock, shared: Shared
) -> tuple[UsageMeter, AuditLog, Tenants]:
    """What labs use and what is done to them."""
    usage = UsageMeter(store, clock)
    stack.push_async_callback(usage.flush)
    return usage, AuditLog(store, clock), Tenants(store, clock, shared.events)


def _tokens(settings: Settings, store: Store, clock: Clock) -> Tokens | None:
    """Tokens of an issuer that the operator trusts, if there is one."""
    if settings.jwt_issuer is None or settings.jwt_audience is None or settings.jwt_key is None:
        return None
    return Tokens(
        Issuer.of(settings.jwt_issuer, settings.jwt_audience, settings.jwt_key.get_secret_value()), store, clock
    )


async def _shared(stack: AsyncExitStack, settings: Settings, metrics: Metrics) -> Shared:
    """What replicas share; a Redis that is lost from the start is only said, as one that is lost later."""
    if settings.redis_url is None:
        return Shared.local()
    shared = Shared.through(settings.redis_url.get_secret_value(), metrics.redis_lost.set)
    if shared.link is not None and isinstance(shared.events, RedisEvents):
        stack.push_async_callback(shared.link.close)
        await _own(stack, shared.events.listen())
    return shared


async def _scoring(stack: AsyncExitStack, settings: Settings, ports: Ports, metrics: Metrics, store: Store) -> _Scoring:
    """Scenarios, encoders, judges, and the scorer on all of them."""
    batcher = MicroBatcher(usable(settings.scoring_threads))
    stack.push_async_callback(asyncio.to_thread, batcher.close)
    library, matcher, reader = await _knowledge(settings, ports, metrics, batcher)
    threads = FairThreads(settings.scoring_threads)
    stack.callback(threads.shutdown, cancel_futures=True)
    model = await _language_model(stack, settings, ports, store, metrics)
    verdicts = VerdictCache(StoredVerdicts(store, ports.clock))
    if isinstance(reader, LocalReader):
        reader = reader_of(settings, reader, model, verdicts)
    learned = reward_model_service(settings, batcher, matcher, lab_at_work)
    await learned.current()
    guests = Guests(
        asked=llm_judges(model, settings, verdicts, reader),
        plugins=await asyncio.to_thread(load_plugins, settings.plugin_names),
        classifier=await asyncio.to_thread(classifier_judge, settings, matcher),
        reward_model=lambda: learned.at_hand,
    )
    scorer = MeteredScorer(ports.build_scorer(library, matcher, reader, threads, guests), library.vault, metrics)
    lineage = Lineage(library.vault, guests.conversation_judges)
    return _Scoring(library, matcher, reader, threads, model, verdicts, learned, scorer, lineage)


async def _knowledge(
    settings: Settings, ports: Ports, metrics: Metrics, batcher: MicroBatcher
) -> tuple[Library, Matcher, Reader]:
    """Scenarios beside text encoder and reader; all are read off the loop."""

    async def scenarios() -> Library:
        return await asyncio.to_thread(load_scenarios, settings.scenarios) if ports.library is None else ports.library

    async def encoders() -> tuple[Matcher, Reader]:
        matcher, reader = ports.matcher, ports.reader
        if matcher is None:
            matcher = await asyncio.to_thread(load_matcher, settings, metrics.encoder_looked_up, batcher)
        if reader is None:
            reader = await asyncio.to_thread(load_reader, settings, metrics.encoder_looked_up, batcher)
        return matcher, reader

    library, (matcher, reader) = await asyncio.gather(scenarios(), encoders())
    return library, matcher, reader


async def _language_model(
    stack: AsyncExitStack, settings: Settings, ports: Ports, store: Store, metrics: Metrics
) -> LanguageModel | None:
    """Who LLM judges ask; an SDK takes a second to import, so that is done off the loop."""
    if ports.language_model is not None:
        return ports.language_model
    ledger = StoredLedger(store)
    model = await asyncio.to_thread(language_model, settings, ledger, meter=metrics.llm, clock=ports.clock)
    if model is not None:
        stack.push_async_callback(model.close)
        log.info("language_model", **model.describe())
    return model


def _wording(model: LanguageModel | None, settings: Settings, metrics: Metrics) -> Wording | None:
    """Who words what personas say, if not their templates."""
    if model is None or settings.persona_wording == "templates":
        return None
    return Wording(model, metrics, min(settings.llm_deadline_s, WORDING_SHARE * settings.request_deadline_s))


def may_be_open(settings: Settings, *, keyless: bool) -> bool:
    """Whether calls need no key: on loopback while there is none, and no tokens are taken.

    Elsewhere a server without keys does not start.
    """
    if not keyless or settings.jwt_key is not None:
        return False
    if not settings.is_loopback:
        raise ConfigurationError(
            f"Binding {settings.host} without an API key would open the server to everyone; "
            "create one: ./labs keys create NAME --lab LAB"
        )
    return True


async def _own(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run in the background until the app stops."""
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)


async def _purge(store: Store, clock: Clock, tenants: Tenants) -> None:
    """Forget, now and every hour, what is too old: answers to Idempotency-Keys, decisions and bookings of calls, jobs
    that are over, uploads that were broken off, and conversations that labs do not let be kept for so long.
    """
    while True:
        try:
            async with store.transaction() as unit:
                purged = await unit.answers.purge(clock.now())
                forgotten = await unit.llm_answers.purge(clock.now() - VERDICT_LIFETIME)
                await unit.spending.purge(clock.now())
                await unit.webhooks.purge(clock.now() - KEPT)
                await unit.jobs.purge(clock.now() - JOB_LIFETIME)
                await unit.files.purge(clock.now() - UPLOAD_LIFETIME)
            expired = await tenants.expire()
            log.info("answers_purged", count=purged, decisions=forgotten, expired=expired)
        except StoreUnavailable:
            log.warning("answers_not_purged")
        await asyncio.sleep(PURGE_EVERY_S)


async def _warm(library: Library, reader: Reader) -> None:
    """Encode the authored texts: the first conversation shall be as fast as the others."""
    prepare = getattr(reader, "prepare", None)
    if prepare is None:
        return
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="labs-warming", initializer=_yield_to_others) as thread:
        for name in library.vault.names():
            await loop.run_in_executor(thread, prepare, library.vault.open(*name).case)
    log.info("reader_warm")


def _yield_to_others() -> None:
    """Requests come first. On Linux a thread has a priority of its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)


def _settle_heap() -> None:
    """Keep what lives as long as the process out of garbage collection: half the cost of a validation.

    And let threads that read long texts hand the interpreter over sooner: a turn takes it a dozen times.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
