"""The composition root: the one place that builds adapters and wires them together, with the parts in `assembly`.

`create_app` makes an app that owns nothing yet; its lifespan migrates and opens the store, loads the
scenarios and the text encoder, and builds the services. What stops it is one error that says what to do.
On the way out it lets requests in work finish.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial

from fastapi import FastAPI

from reward_server import __version__
from reward_server.api import docs, errors, front
from reward_server.api.boundary import RequestBoundary
from reward_server.api.context import Services
from reward_server.api.edge import KnownHosts
from reward_server.api.middleware import NO_TELEMETRY, App
from reward_server.api.paths import PlainPaths
from reward_server.api.requests_in_work import RequestsInWork
from reward_server.api.routes import (
    agents,
    batches,
    calibrations,
    catalog,
    criterion_labels,
    drift,
    episodes,
    evaluate,
    files,
    jobs,
    keys,
    labs,
    operations,
    own_scenarios,
    preferences,
    rank,
    reward_models,
    sockets,
    training_runs,
    webhooks,
)
from reward_server.compat import mcp, nemo_gym, openai, openenv, openenv_socket, openrlhf, ors, slime, vllm
from reward_server.compat.ors_paths import AtTheRoot
from reward_server.console import mounting as console
from reward_server.llm.budget import Prices
from reward_server.logs.logger import configure_logging, get_logger
from reward_server.server.chores import own, purge, settle_heap, warm
from reward_server.server.infrastructure import BuildInputs, Infrastructure, build_infrastructure
from reward_server.server.ports import Ports
from reward_server.server.rehearsal import rehearse
from reward_server.server.scoring import ScoringParts, load, scoring_of
from reward_server.server.services import services_of
from reward_server.server.signals import hear_hangup
from reward_server.settings import Settings
from reward_server.telemetry.alerts.watch import AlertWatch, alert_watch
from reward_server.telemetry.loop_lag import LoopLag
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.traces import Traces, traces_to
from reward_server.webhooks.delivery import WebhookDeliverer
from reward_server.webhooks.sender import WebhookSender

__all__ = ["Ports", "create_app"]

ROUTES = (
    episodes,
    evaluate,
    batches,
    agents,
    calibrations,
    catalog,
    drift,
    files,
    jobs,
    preferences,
    criterion_labels,
    rank,
    reward_models,
    keys,
    labs,
    training_runs,
    webhooks,
    own_scenarios,
    operations,
    sockets,
)
"""Those called most come first: the framework asks one after the other whether a path is theirs."""
DOORS = (openrlhf, slime, nemo_gym, openenv, openenv_socket, openai, vllm, ors, mcp)
"""For other stacks."""

log = get_logger(__name__)


def create_app(settings: Settings, *, ports: Ports | None = None) -> FastAPI:
    """The app; nothing is opened before its lifespan begins."""
    ports = ports or Ports()
    prices = Prices(*(settings.llm_usd_per_mtok or ()))
    metrics = Metrics(by_scenario=settings.metrics_need_a_key, prices=prices)
    traces = ports.traces or traces_to(settings.otlp_endpoint)
    app = App(
        title="Labs API",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(settings, ports, metrics, traces),
        telemetry=NO_TELEMETRY,
    )
    errors.install(app)
    for module in (*ROUTES, *DOORS, docs, front):
        app.router.routes.extend(module.router.routes)
    if settings.console == "on":
        app.router.routes.extend(console.routes())
    app.add_middleware(AtTheRoot, prefix=ors.PATH)
    app.add_middleware(PlainPaths, prefix=settings.path_prefix)
    app.add_middleware(KnownHosts, names=settings.host_names)
    app.state.in_work = RequestsInWork()
    app.state.path_prefix = settings.path_prefix
    app.state.has_console = settings.console == "on"
    app.add_middleware(
        RequestBoundary,
        max_concurrency=settings.max_concurrency,
        metrics=metrics,
        traces=traces,
        exchanges=app.state.in_work,
    )
    return app


def _lifespan(
    settings: Settings, ports: Ports, metrics: Metrics, traces: Traces
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        configure_logging(settings.log_level, stream=ports.log_stream)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, traces.close)
            app.state.services = await _start(stack, BuildInputs(settings, ports, metrics, traces))
            log.info("started", version=__version__, collections=len(app.state.services.catalog.collections))
            yield
            app.state.services = None

    return lifespan


async def _start(stack: AsyncExitStack, inputs: BuildInputs) -> Services:
    """Everything that is needed to serve, or an error that says what is missing."""
    settings, ports, metrics = inputs.settings, inputs.ports, inputs.metrics
    watch = alert_watch(settings, metrics)
    if ports.turn is None:
        # First what may refuse to start: it shall say so at once.
        infrastructure = await build_infrastructure(stack, inputs)
        loaded = await load(stack, settings, ports, metrics)
    else:
        loaded = await load(stack, settings, ports, metrics)
        await rehearse(stack, inputs, loaded)
        await ports.turn(stack)
        infrastructure = await build_infrastructure(stack, inputs)
    scoring = await scoring_of(stack, inputs, infrastructure.store, loaded)
    # Before what scores is closed.
    stack.push_async_callback(infrastructure.outliving.drain, inputs.settings.drain_s)
    loop_lag = LoopLag(inputs.metrics.loop_lag.set)
    await _begin_chores(stack, inputs, infrastructure, scoring, loop_lag, alerts=watch)
    return await services_of(stack, inputs, infrastructure, scoring, loop_lag)


async def _begin_chores(
    stack: AsyncExitStack,
    inputs: BuildInputs,
    infrastructure: Infrastructure,
    scoring: ScoringParts,
    loop_lag: LoopLag,
    *,
    alerts: AlertWatch,
) -> None:
    """Start the work that goes on beside the requests."""
    settings, ports, metrics, store = inputs.settings, inputs.ports, inputs.metrics, infrastructure.store
    await own(stack, infrastructure.usage.watch())
    await own(stack, infrastructure.key_uses.watch())
    await own(stack, purge(store, ports.clock, infrastructure.tenants, settings))
    await own(stack, loop_lag.watch())
    loop = asyncio.get_running_loop()
    metrics.watch(
        queue_age=lambda: scoring.threads.waiting_s,
        store_waiting=lambda: store.waiting,
        readers_busy=lambda: store.reading_now,
        loop_tasks=lambda: len(asyncio.all_tasks(loop)),
        caches=scoring.caches,
        disk=partial(shutil.disk_usage, settings.data),
    )
    if ports.own_process:
        await own(stack, alerts.watch())
        if alerts.can_reload:
            hear_hangup(stack, alerts.reload)
        sender = WebhookSender(private=settings.private_addresses, names=infrastructure.names)
        stack.push_async_callback(sender.close)
        await own(stack, WebhookDeliverer(store, sender, infrastructure.pepper, ports.clock, metrics).run())
        if ports.turn is None:
            await own(stack, warm(scoring.library, scoring.reader, scoring.matcher, scoring.threads))
            settle_heap()
        else:
            # A standby has done both, and is waited for.
            gc.freeze()
